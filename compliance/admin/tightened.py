"""On the page of a system: which parameters of policies are tightened there, by whom, and the way to another tightening."""

from django.http import HttpRequest
from django.urls import reverse

from compliance.admin.requests import request_link
from compliance.admin.sighted import sight
from compliance.selectors.sight import visible_requests
from compliance.selectors.tightening import Tightened, tightened_at
from evaluations.kernel.display import ActorReference, Cell, Section, Table, anchor, code, instant, link
from evaluations.kernel.numbers import plain
from policies.admin.marks import domain_words
from policies.admin.systems import SystemAdmin
from policies.models import System

COLUMNS = ("Policy", "Parameter", "Its own → here", "Stated for", "Signed last by", "Recorded", "Request")


@SystemAdmin.add_section
def tightened_here(row: System, request: HttpRequest) -> Section:
    found = tightened_at(row)
    uids = {item.binding.sign_off_request for item in found}
    asked = {each.uid: each for each in visible_requests(sight(request)).filter(uid__in=uids)} if uids else {}
    rows: list[list[Cell]] = []
    for item in found:
        made = asked.get(item.binding.sign_off_request)
        rows.append(
            [
                link(item.policy) if item.version is None else link(item.version),
                code(item.name),
                _counts(item),
                "this system" if item.binding.system_id else f"the domain {domain_words(item.binding.domain)}",
                ActorReference(item.binding.bound_by),
                instant(item.binding.recorded_at),
                "one that you do not see" if made is None else request_link(made),
            ]
        )
    way = anchor(reverse("admin:compliance_signoffrequest_ask_binding_at", args=[row.pk]), "Tighten a policy here")
    empty = "Every policy counts here with its own numbers: no binding is signed for this system or its domain."
    return Table("Policies that are stricter here", COLUMNS, rows, empty=empty, more=way)


def _counts(item: Tightened) -> str:
    """Say what a stated number makes of the policy's own at the system."""
    if item.version is None:
        return f"{plain(item.stated)} is stated; the policy is not in force"
    if item.own is None or item.here is None:
        return f"{plain(item.stated)} is stated; this version has no such parameter"
    if item.here == item.own:
        return f"{plain(item.own)}, as the policy has it; {plain(item.stated)} is no stricter"
    told = f"{plain(item.own)} → {plain(item.here)}"
    return told if item.here == item.stated else f"{told}; {plain(item.stated)} is stated"
