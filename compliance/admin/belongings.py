"""What belongs to a person, as tables of her page: accounts, roles, holds and tokens, each with the acts on it."""

from typing import Any

from django.utils.html import format_html

from compliance.admin.acts import ACTS
from compliance.models import Person, RoleMembership, ServiceToken
from compliance.selectors.access import factor_counts
from evaluations.kernel.clock import now
from evaluations.kernel.display import ActorReference, Cell, Mark, Table, anchor, chip, instant, link, said, words, yes_no

SHOWN = 50
FACTOR_WORDS = {"totp": "authenticator app", "webauthn": "passkeys and keys", "recovery_codes": "recovery codes"}


def account_table(person: Person, *, acting: bool) -> Table:
    """Return a person's accounts with their factors, and the acts on each."""
    rows = []
    for account in person.accounts.order_by("email")[:SHOWN]:
        counts = factor_counts(user_id=account.pk)
        factors = ", ".join(f"{FACTOR_WORDS[name]} ({count})" for name, count in counts.items() if name in FACTOR_WORDS)
        keys = ["deactivate" if account.is_active else "reactivate", "reset-password", "reset-factors"]
        rows.append(
            [
                account.email,
                yes_no(account.is_active),
                yes_no(account.is_staff),
                yes_no(account.must_change_password),
                said(factors, empty="none"),
                instant(account.last_login, empty="never"),
                *([_links(keys, person, account)] if acting else []),
            ]
        )
    columns = ("E-mail", "Active", "May sign in here", "Has a one-time password", "Second factors", "Last signed in")
    empty = "No account: this person cannot sign in."
    return Table("Accounts", (*columns, *(["Change"] if acting else [])), rows, empty=empty)


def role_table(person: Person, *, acting: bool) -> Table:
    """Return the roles that a person held and holds, and the acts on each."""
    moment = now()
    rows = []
    for item in person.roles.select_related("team").order_by("-id")[:SHOWN]:
        holds = holds_now(item, moment)
        rows.append(
            [
                item.get_role_display(),
                link(item.team, empty="every team"),
                instant(item.starts_at),
                instant(item.ends_at, empty="open"),
                yes_no(holds),
                ActorReference(item.given_by),
                *([_links(["end-role"], person, item) if holds else ""] if acting else []),
            ]
        )
    columns = ("Role", "Team", "From", "Until", "Holds now", "Given by")
    more = anchor(ACTS["give-role"].address(person, person), "Give a role") if acting else ""
    empty = "No role: this person may read, and decides nothing."
    return Table("Roles", (*columns, *(["Change"] if acting else [])), rows, empty=empty, more=more)


def hold_table(person: Person, *, acting: bool) -> Table:
    """Return the holds on a person's signing, and the act on each that stands."""
    rows = [
        [
            item.get_cause_display(),
            instant(item.placed_at),
            ActorReference(item.placed_by),
            instant(item.lifted_at, empty="it stands"),
            ActorReference(item.lifted_by) if item.lifted_by else "nobody",
            *([_links(["lift-hold"], person, item) if item.lifted_at is None else ""] if acting else []),
        ]
        for item in person.signing_holds.order_by("-id")[:SHOWN]
    ]
    columns = ("Cause", "Placed", "Placed by", "Lifted", "Lifted by")
    empty = "No hold: her signatures count, where her roles allow them."
    return Table("Holds on signing", (*columns, *(["Change"] if acting else [])), rows, empty=empty)


def token_table(person: Person, *, acting: bool) -> Table:
    """Return the tokens that act for a person, and the act on each that lives."""
    rows = [
        [
            link(item),
            token_chip(item),
            words(item.scopes),
            instant(item.expires_at),
            *([_links(["revoke-token"] if item.is_live(now()) else [], person, item)] if acting else []),
        ]
        for item in person.tokens.order_by("-created_at")[:SHOWN]
    ]
    columns = ("Token", "State", "Scopes", "Ends", *(["Change"] if acting else []))
    return Table("Tokens", columns, rows, empty="No token acts for this person.")


def token_chip(token: ServiceToken) -> Cell:
    """Say whether a token may be used now."""
    if token.revoked_at is not None:
        return chip(Mark("revoked", "fail", "block"))
    if not token.is_live(now()):
        return chip(Mark("expired", "stale", "schedule"))
    return chip(Mark("active", "pass", "check_circle"))


def holds_now(membership: RoleMembership, moment: Any) -> bool:
    return membership.starts_at <= moment and (membership.ends_at is None or moment < membership.ends_at)


def _links(keys: list[str], person: Person, row: Any) -> Cell:
    found = [anchor(ACTS[key].address(person, row), ACTS[key].button) for key in keys]
    return format_html("<br>".join(["{}"] * len(found)), *found)
