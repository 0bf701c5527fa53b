"""The doors of AuthZEN Authorization API 1.0, by their address under `/access/v1/`. Django's own addresses do not name them."""

from collections.abc import Callable, Mapping

from compliance.api.authzen.frame import Incoming, Outgoing
from compliance.api.authzen.requesting import access_requests
from compliance.api.authzen.search import search_action, search_resource, search_subject
from compliance.api.authzen.views import evaluation, evaluations

PREFIX = "/access/v1/"
DOORS: Mapping[str, Callable[[Incoming], Outgoing]] = {
    "evaluation": evaluation,
    "evaluations": evaluations,
    "search/subject": search_subject,
    "search/resource": search_resource,
    "search/action": search_action,
    "requests": access_requests,
}
TASK_ADDRESSES = ("requests/<str:name>", "requests/<str:name>/cancel")
"""Those of a task, which hold its name: `task_door` finds them."""
