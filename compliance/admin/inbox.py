"""What waits for the signed-in person's signature, the next to expire first."""

from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html

from compliance.admin.requests import EMERGENCY, about_words, by_herself
from compliance.admin.sighted import name_people, person_reference, sight, time_left
from compliance.selectors.access_tasks import called_emergency
from compliance.selectors.requests import inbox
from evaluations.kernel.clock import now
from evaluations.kernel.display import anchor, chip, instant, url_of

SHOWN = 20
COUNTED = 1_000
SOON_HOURS = 24


def waiting(request: HttpRequest) -> dict[str, Any] | None:
    """Return the inbox for the home page: the first of what waits and how much more there is; None where nothing does."""
    at = now()
    person = sight(request).person
    found = inbox(person, sight(request), at=at)
    # Which they are is asked first: what is shown of each would else be read for every one that waits, before they are put in order.
    first = list(found.values_list("pk", flat=True)[: SHOWN + 1])
    if not first:
        return None
    rows = list(found.filter(pk__in=first))
    more = 0
    if len(rows) > SHOWN:
        more = found.order_by().values("pk")[: COUNTED + 1].count() - SHOWN
    shown = []
    for row in rows[:SHOWN]:
        left = time_left(row.expires_at, at)
        soon = (row.expires_at - at).total_seconds() < SOON_HOURS * 3600
        by_machine, reason = not by_herself(row), " · ".join(row.reason.split("\n\n"))
        shown.append(
            {
                "link": anchor(url_of(row), f"{row.get_kind_display()}: {about_words(row)}"),
                "systems": ", ".join(item.system.title or item.system.key for item in row.about_systems.all()),
                "by": person_reference(row.requester_id),
                "by_machine": by_machine,
                "urgent": chip(EMERGENCY) if by_machine and called_emergency(row) else "",
                "reason": reason if len(reason) <= 120 else f"{reason[:119]}…",
                "left": format_html("<strong>{}</strong>", left) if soon else left,
                "until": instant(row.expires_at),
            }
        )
    name_people(row["by"] for row in shown)
    return {"rows": shown, "more": more, "many": more > COUNTED - SHOWN}
