"""What a policy version would change if it came into force: four numbers, which open to lists."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from compliance.selectors.impact import is_kept, read_impact
from compliance.selectors.proposals import plain_value
from evaluations.kernel.canonical import canonical_bytes
from evaluations.kernel.clock import now
from evaluations.kernel.display import Custom, Section
from policies.admin.marks import domain_words, said_words
from policies.admin.policies import PolicyVersionAdmin
from policies.language.compiler import PolicyRefused
from policies.models import PolicyVersion
from policies.selectors.policies import version_in_force

TITLE = "What it would change"
TEMPLATE = "writegate/sections/impact.html"


@PolicyVersionAdmin.add_section
def impact_of_version(row: PolicyVersion, request: HttpRequest) -> Section:
    """Show a version that may come into force beside the one that is; an older one is judged only when somebody asks for it."""
    before = version_in_force(row.policy)
    if before is not None and before.pk == row.pk:
        return Custom(TITLE, TEMPLATE, {"told": "Nothing: it is in force."})
    if not is_kept(row):
        told = "It is not kept judged, since a newer version is. What it would change is told by:"
        return Custom(TITLE, TEMPLATE, {"told": told, "command": f"manage.py policy impact {row.policy.name}@{row.number}"})
    try:
        impact = read_impact(row, at=now())
    except PolicyRefused:
        return Custom(TITLE, TEMPLATE, {"told": "Nobody can say: the text of the version in force cannot be read."})
    against = "no version is in force" if before is None else f"against version {before.number}, which is in force"
    return Custom(TITLE, TEMPLATE, {**shown_impact(plain_value(canonical_bytes(impact.as_value()))), "against": against})


def shown_impact(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a page shows of an impact: `value` is as dossiers hold it, also those of a time in which less was told."""
    numbers = [
        ("Newly permitted", value["newly_permitted_count"], _rows(value["newly_permitted"])),
        ("Newly refused", value["newly_refused_count"], _rows(value["newly_refused"])),
        ("Unchanged", value["unchanged"], []),
    ]
    if "nearest" in value:
        numbers.append(("Near the edge", value["near_edge_count"], _rows(value["nearest"])))
    if value["unjudged"]:
        numbers.append(("Not judged yet", value["unjudged"], []))
    return {
        "numbers": numbers,
        "grants": value["grants_refused_count"],
        "no_new_access": value["no_new_access"],
        "why": "; ".join(value.get("why", ())),
    }


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    told = []
    for row in rows:
        place = f"{row['subject']} v{row['subject_version']} in {domain_words(row['domain'])}"
        if row.get("systems"):
            place += f" ({row['systems']})"
        before, after = (said_words(row[side]) for side in ("before", "after"))
        words = after if before == after else f"{before} → {after}"
        distance = row.get("distance")
        told.append(f"{place}: {words}" + (f", {Decimal(distance):.1f} points from turning" if distance is not None else ""))
    return told
