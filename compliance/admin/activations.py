"""On a policy version's page: who has signed for its activation, who may still, and the way to ask for it."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join

from compliance.admin.requests import request_link
from compliance.admin.sighted import name_people, person_reference, sight
from compliance.models import SignOff, SignOffRequest
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.requests import status_at
from compliance.selectors.sight import visible_requests
from compliance.selectors.signers import read_quorum
from compliance.services.sign_offs import APPROVING
from compliance.vocabulary import RequestKind, RequestStatus
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, Section, Table, anchor
from evaluations.kernel.errors import InputRefused
from policies.admin.policies import PolicyVersionAdmin
from policies.language.compiler import PolicyRefused
from policies.models import PolicyVersion
from policies.selectors.linting import check_version
from policies.selectors.policies import version_in_force

SHOWN = 10


@PolicyVersionAdmin.add_section
def activation_of(row: PolicyVersion, request: HttpRequest) -> Section:
    """Show each request for an activation that the reader may see, newest first."""
    asked = visible_requests(sight(request)).filter(kind=RequestKind.ACTIVATION, policy_version=row)
    rows = [_row(item) for item in asked.select_related("dossier", "policy_version__policy").order_by("-id")[:SHOWN]]
    address = reverse("admin:compliance_signoffrequest_ask_activation", args=[row.pk])
    before = version_in_force(row.policy)
    in_force = before is not None and before.pk == row.pk
    why = "It is in force." if in_force else _why_not(row)
    return Table(
        "Activation: who has signed, who may still",
        ("Request", "Stands", "Signed by", "May still sign"),
        rows,
        empty="Nobody has asked that it comes into force.",
        note=why,
        more="" if why else anchor(address, "Ask for activation"),
    )


def _why_not(row: PolicyVersion) -> str:
    """Say why an activation would be refused by the text alone, "" where it would not."""
    try:
        checked = check_version(row)
    except (InputRefused, ValueError):
        return "It cannot come into force: its stored text cannot be read."
    found = [f"the lint finds {item.code} at line {item.line}" for item in checked.blocking]
    found += [f"its test “{told.report.name}” fails" for told in checked.red]
    if checked.untested:
        found.append("it has no test of its own")
    return f"It cannot come into force: {'; '.join(found)}." if found else ""


def _row(item: SignOffRequest) -> list[Cell]:
    at = now()
    status = status_at(item, at)
    may: Sequence[str] = ()
    signed = SignOff.objects.filter(request=item, dossier=item.dossier_id).order_by("id").values_list("person_id", "meaning")
    last = dict(signed)
    if status == RequestStatus.OPEN and item.dossier is not None:
        # Where a text cannot be read there is nothing to sign, and the page says so elsewhere.
        with suppress(PolicyRefused):
            may = list(read_quorum(item, build_dossier(item, at=at), item.dossier, at=at).assessment.may_sign)
    people = [person for person, meaning in last.items() if meaning in APPROVING]
    return [request_link(item), RequestStatus(status).label, named(people, "nobody yet"), named(may, "nobody")]


def named(people: Sequence[UUID | str], empty: str) -> Cell:
    """Return people by their names, by two queries at most."""
    references = [person_reference(person) for person in people]
    name_people(references)
    return format_html_join(", ", "{}", ((reference,) for reference in references)) or empty
