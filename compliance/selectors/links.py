"""What rows about requests and grants name beside themselves, as far as the reader may see it: the rest is left empty."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from compliance.models import PersonName
from compliance.selectors.sight import Sight, visible_grants, visible_requests


def with_request_links(rows: QuerySet[Any], sight: Sight) -> QuerySet[Any]:
    """Return requests with `requester_name` (None once it is erased), `about_grant` and `made` (ids of grants that are seen)."""
    return rows.annotate(
        requester_name=_name("requester"),
        about_grant=Subquery(visible_grants(sight).filter(pk=OuterRef("grant")).order_by().values("uid")[:1]),
        made=Subquery(visible_grants(sight).filter(request=OuterRef("pk")).order_by().values("uid")[:1]),
    )


def with_grant_links(rows: QuerySet[Any], sight: Sight) -> QuerySet[Any]:
    """Return grants with `requester_name`, `seen_request` and `seen_renews` (ids of a request and a grant that are seen)."""
    return rows.annotate(
        requester_name=_name("requester"),
        seen_request=Subquery(visible_requests(sight).filter(pk=OuterRef("request")).order_by().values("uid")[:1]),
        seen_renews=Subquery(visible_grants(sight).filter(pk=OuterRef("renews")).order_by().values("uid")[:1]),
    )


def with_waiver_links(rows: QuerySet[Any], sight: Sight) -> QuerySet[Any]:
    """Return waivers with `seen_request`, the id of their request where it is seen."""
    seen = visible_requests(sight).filter(pk=OuterRef("request")).order_by().values("uid")
    return rows.annotate(seen_request=Subquery(seen[:1]))


def _name(person: str) -> Subquery:
    return Subquery(PersonName.objects.filter(person=OuterRef(person)).order_by("-id").values("name")[:1])
