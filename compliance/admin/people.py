"""People with their accounts and roles, teams, and tokens. No secret is kept, so none is shown."""

from collections import defaultdict
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from compliance.admin.acts import ActingPages, is_administrator
from compliance.admin.belongings import account_table, hold_table, holds_now, role_table, token_chip, token_table
from compliance.models import Person, PersonName, RoleMembership, ServiceToken, Team, User
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Fields,
    Record,
    instant,
    link,
    list_link,
    words,
)

NAMELESS = "name erased"


@admin.register(Person)
class PersonAdmin(ActingPages, ReadOnlyAdmin):
    about = "The humans who submit, judge and sign. A name can be erased; what the person did stays provable."
    change_list_template = "writegate/person_list.html"
    list_display = ("name", "team", "accounts_shown", "roles_shown", "since")
    list_filter = (("team", AutocompleteSelectFilter),)
    list_select_related = ("team",)
    search_fields = ("names__name", "accounts__email", "team__key")
    ordering = ("-created_at", "id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        newest = PersonName.objects.filter(person=OuterRef("pk")).order_by("-id").values("name")[:1]
        queryset: QuerySet[Any] = super().get_queryset(request).annotate(newest_name=Subquery(newest))
        return queryset

    def prepare_rows(self, rows: Any) -> None:
        accounts: defaultdict[Any, list[str]] = defaultdict(list)
        for person_id, email in User.objects.filter(person__in=rows).values_list("person_id", "email"):
            accounts[person_id].append(email)
        roles: defaultdict[Any, list[str]] = defaultdict(list)
        moment = now()
        for membership in RoleMembership.objects.filter(person__in=rows).order_by("id"):
            if holds_now(membership, moment):
                roles[membership.person_id].append(str(membership.get_role_display()))
        for row in rows:
            row.shown_accounts, row.shown_roles = accounts[row.pk], roles[row.pk]

    @admin.display(description="name", ordering="newest_name")
    def name(self, row: Any) -> str:
        return row.newest_name or f"{NAMELESS} ({row.pk})"

    @admin.display(description="accounts")
    def accounts_shown(self, row: Any) -> Cell:
        return words(row.shown_accounts)

    @admin.display(description="roles")
    def roles_shown(self, row: Any) -> str:
        return ", ".join(row.shown_roles) or "none"

    @admin.display(description="registered", ordering="created_at")
    def since(self, row: Person) -> Cell:
        return instant(row.created_at)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"acting": is_administrator(request), **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        return [*self.acting_urls(), *super().get_urls()]

    def describe(self, row: Any, request: HttpRequest) -> Record:
        acting = is_administrator(request)
        return Record(
            lead=row.newest_name or NAMELESS,
            target=("person", str(row.pk)),
            sections=[
                Fields(
                    "Person",
                    [
                        ("Name", row.newest_name or NAMELESS),
                        ("Identifier", str(row.pk)),
                        ("Team", link(row.team, empty="none")),
                        ("Registered", instant(row.created_at)),
                    ],
                ),
                account_table(row, acting=acting),
                role_table(row, acting=acting),
                hold_table(row, acting=acting),
                token_table(row, acting=acting),
            ],
        )


@admin.register(Team)
class TeamAdmin(ActingPages, ReadOnlyAdmin):
    about = "Teams own systems; people and tokens belong to one."
    empty_sentence = "An administrator registers teams. Policies ask for signatures from outside the requester's own."
    change_list_template = "writegate/team_list.html"
    list_display = ("key", "title", "since")
    search_fields = ("key", "title")
    ordering = ("key",)

    @admin.display(description="registered", ordering="created_at")
    def since(self, row: Team) -> Cell:
        return instant(row.created_at)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"acting": is_administrator(request), **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        register = self.admin_site.admin_view(self.register_team_view)
        return [path("register/", register, name="compliance_team_register"), *super().get_urls()]

    def describe(self, row: Team, request: HttpRequest) -> Record:
        rows: list[tuple[str, Cell]] = [
            ("Key", row.key),
            ("Title", row.title),
            ("Registered", instant(row.created_at)),
            ("People", list_link(Person, "People of this team", team__id__exact=row.pk)),
            ("Tokens", list_link(ServiceToken, "Tokens of this team", team__id__exact=row.pk)),
        ]
        return Record(lead=row.title, target=("team", row.key), sections=[Fields("Team", rows)])


@admin.register(ServiceToken)
class ServiceTokenAdmin(ReadOnlyAdmin):
    about = (
        "What machines sign in with. Each belongs to a person, is scoped, and ends. Only a hash is kept, so no secret is shown."
    )
    empty_sentence = "`manage.py create_token` makes one, on the server. An administrator revokes it on its person's page."
    list_display = ("name", "state", "begins", "scopes_shown", "acts_for", "team", "ends", "used")
    list_filter = (("team", AutocompleteSelectFilter),)
    list_select_related = ("person", "team")
    search_fields = ("name", "^prefix")
    ordering = ("-created_at",)

    def prepare_rows(self, rows: Any) -> None:
        for row in rows:
            row.shown_person = ActorReference(f"person:{row.person_id}")
        self.name_actors([row.shown_person for row in rows])

    @admin.display(description="state")
    def state(self, row: ServiceToken) -> Cell:
        return token_chip(row)

    @admin.display(description="begins with", ordering="prefix")
    def begins(self, row: ServiceToken) -> Cell:
        return words([f"{row.prefix}…"])

    @admin.display(description="scopes")
    def scopes_shown(self, row: ServiceToken) -> Cell:
        return words(row.scopes)

    @admin.display(description="acts for")
    def acts_for(self, row: Any) -> Cell:
        return row.shown_person.__html__()

    @admin.display(description="ends", ordering="expires_at")
    def ends(self, row: ServiceToken) -> Cell:
        return instant(row.expires_at)

    @admin.display(description="last used", ordering="last_used_at")
    def used(self, row: ServiceToken) -> Cell:
        return instant(row.last_used_at, empty="never")

    def describe(self, row: ServiceToken, request: HttpRequest) -> Record:
        return Record(
            lead=f"A token that acts for {row.person}.",
            mark=token_chip(row),
            target=("token", str(row.pk)),
            sections=[
                Fields(
                    "Token",
                    [
                        ("Name", row.name),
                        ("State", token_chip(row)),
                        ("Begins with", words([f"{row.prefix}…"])),
                        ("Secret", "not kept: it was shown once, when the token was made"),
                        ("Scopes", words(row.scopes)),
                        ("Acts for", link(row.person)),
                        ("Team", link(row.team, empty="none")),
                        ("Created", instant(row.created_at)),
                        ("Ends", instant(row.expires_at)),
                        ("Revoked", instant(row.revoked_at, empty="no")),
                        ("Last used", instant(row.last_used_at, empty="never")),
                    ],
                )
            ],
        )
