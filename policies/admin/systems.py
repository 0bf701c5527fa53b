"""The production systems to which write access is asked."""

from django.contrib import admin
from django.http import HttpRequest

from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import Cell, Custom, Fields, Record, instant, number, said, yes_no
from policies.models import System
from policies.selectors.blast_radius import MOST, BlastRadius, blast_radius

NOT_KNOWN = "not stated: the worst is taken"


def blast_section(radius: BlastRadius, *, title: str = "Blast radius") -> Custom:
    """Return the section that shows how much a wrong write could do: a bar, and every part with its reason."""
    return Custom(title, "writegate/sections/blast.html", {"radius": radius, "of": MOST, "actions": ", ".join(radius.actions)})


@admin.register(System)
class SystemAdmin(ReadOnlyAdmin):
    about = "The production systems to which write access is asked."
    empty_sentence = "A system owner, security or an administrator registers one by POST /api/v1/systems, as the README shows."
    list_display = ("key", "title", "domain", "environment", "takes_back", "incident", "owner")
    list_filter = ("domain", "environment", "reversible", "open_incident")
    search_fields = ("key", "title", "owner")
    ordering = ("key",)

    @admin.display(description="writes can be taken back", ordering="reversible")
    def takes_back(self, row: System) -> str:
        return yes_no(row.reversible)

    @admin.display(description="open incident", ordering="open_incident")
    def incident(self, row: System) -> str:
        return yes_no(row.open_incident)

    def describe(self, row: System, request: HttpRequest) -> Record:
        rows: list[tuple[str, Cell]] = [
            ("Key", row.key),
            ("Title", row.title),
            ("Domain", row.get_domain_display()),
            ("Environment", row.get_environment_display()),
            ("Writes can be taken back", yes_no(row.reversible)),
            ("Open incident", yes_no(row.open_incident)),
            ("Owning team", said(row.owner)),
            ("People affected", number(row.people_affected, empty=NOT_KNOWN)),
            ("Personal data", NOT_KNOWN if row.holds_personal_data is None else yes_no(row.holds_personal_data)),
            ("Money at stake in one write", number(row.money_at_stake_usd, "usd", empty=NOT_KNOWN)),
            ("Writes a day", number(row.writes_per_day, empty=NOT_KNOWN)),
            ("Registered", instant(row.registered_at)),
        ]
        return Record(
            lead=f"{row.title}: {row.get_environment_display()}, {row.get_domain_display()}.",
            target=("system", row.key),
            sections=[Fields("System", rows), blast_section(blast_radius(row))],
        )
