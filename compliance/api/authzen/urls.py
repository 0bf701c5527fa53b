"""Addresses of AuthZEN Authorization API 1.0 under `/access/v1/`. The lean path answers them; here they have their names."""

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse
from django.urls import path

from compliance.api.authzen.search import search_action, search_resource, search_subject
from compliance.api.authzen.views import evaluation, evaluations

app_name = "authzen"

PREFIX = "/access/v1/"
VIEWS: Mapping[str, Callable[[HttpRequest], HttpResponse]] = {
    "evaluation": evaluation,
    "evaluations": evaluations,
    "search/subject": search_subject,
    "search/resource": search_resource,
    "search/action": search_action,
}

urlpatterns = [path(address, view, name=address.replace("/", "-")) for address, view in VIEWS.items()]
