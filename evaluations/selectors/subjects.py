"""Reads about subjects, their versions and names."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Max, Min, Q

from evaluations.importers.fields import closest
from evaluations.kernel.errors import InputRefused, NotFound, Problem
from evaluations.kernel.names import key_problem
from evaluations.models import Subject, SubjectVersion
from evaluations.vocabulary import SubjectKind

MAX_REACHABLE = 100

_VERSION = re.compile(r"(.+)@([1-9][0-9]{0,8})\Z")


def get_subject(key: str) -> Subject:
    """Return the subject with this key. Raises `NotFound`."""
    subject = Subject.objects.filter(key=key).first()
    if subject is None:
        raise NotFound(f"no subject `{key}`")
    return subject


def current_versions(
    *, known_at: datetime, candidates_only: bool = False, keys: Iterable[str] | None = None
) -> list[SubjectVersion]:
    """Return one version of each subject, ordered by the subject's key: the newest that was registered by `known_at`.

    A subject registered later stands there with its first version: asking what was known about it then is a fair question, and the
    answer is that nothing was.
    """
    versions = SubjectVersion.objects.all()
    if candidates_only:
        versions = versions.filter(subject__candidate=True)
    if keys is not None:
        versions = versions.filter(subject__key__in=list(keys))
    chosen = versions.values("subject").annotate(newest=Max("id", filter=Q(registered_at__lte=known_at)), first=Min("id"))
    ids = [row["newest"] or row["first"] for row in chosen]
    return list(SubjectVersion.objects.filter(id__in=ids).select_related("subject").order_by("subject__key"))


def model_versions_named(names: Iterable[str], *, field: str = "models") -> list[SubjectVersion]:
    """Return the model versions that the names mean, each once, ordered by key and number, with `subject` loaded.

    A name is `key@number`, or `key` alone for the version that was registered last. Raises `InputRefused` naming every name that means
    no model version, and for a set that is empty or larger than `MAX_REACHABLE`.
    """
    given = list(names)
    if not given:
        hint = "list every model that can answer, as `key` or `key@number`"
        raise InputRefused([Problem("the set of reachable models is empty", field=field, code="empty", hint=hint)])
    if len(given) > MAX_REACHABLE:
        raise InputRefused([Problem(f"{len(given)} models are named", field=field, hint=f"name at most {MAX_REACHABLE}")])
    problems: list[Problem] = []
    wanted = [_wanted(name, f"{field}[{place}]", problems) for place, name in enumerate(given)]
    versions = SubjectVersion.objects.filter(subject__key__in={key for key, _ in wanted}).select_related("subject")
    by_key: dict[str, list[SubjectVersion]] = {}
    for version in versions.order_by("subject__key", "number"):
        by_key.setdefault(version.subject.key, []).append(version)
    chosen: dict[int, SubjectVersion] = {}
    for place, (key, number) in enumerate(wanted):
        if not key:
            continue
        found = _one_of(key, number, by_key.get(key, ()), f"{field}[{place}]", problems)
        if found is not None:
            chosen[found.pk] = found
    if problems:
        raise InputRefused(problems)
    return sorted(chosen.values(), key=lambda version: (version.subject.key, version.number))


def newest_version(subject: Subject) -> SubjectVersion | None:
    """Return the version of a subject that was registered last, or None."""
    return SubjectVersion.objects.filter(subject=subject).order_by("-number").first()


def pinned_parts(version: SubjectVersion) -> dict[str, Any]:
    """Return what the pin of a version states, as parsed: for an agent `prompt_digest`, `tool_manifest_digest` and `harness`."""
    content: dict[str, Any] = json.loads(bytes(version.pin))
    parts: dict[str, Any] = dict(content.get("pin", content))
    return parts


def _wanted(name: object, field: str, problems: list[Problem]) -> tuple[str, int | None]:
    """Return key and number (None for the newest) that a name states, or an empty key with a problem added."""
    problem = key_problem(name, field=field)
    if problem is not None:
        problems.append(problem)
        return "", None
    numbered = _VERSION.match(str(name))
    return (numbered[1], int(numbered[2])) if numbered else (str(name), None)


def _one_of(
    key: str, number: int | None, versions: Sequence[SubjectVersion], field: str, problems: list[Problem]
) -> SubjectVersion | None:
    if not versions:
        problems.append(_no_version(key, field))
        return None
    if versions[0].subject.kind != SubjectKind.MODEL:
        kind = versions[0].subject.kind
        hint = "name the models that stand behind it, one by one"
        problems.append(Problem(f"`{key}` is registered as a {kind}, not as a model", field=field, code="not_a_model", hint=hint))
        return None
    if number is None:
        return versions[-1]
    found = next((version for version in versions if version.number == number), None)
    if found is None:
        hint = f"its newest version is `{key}@{versions[-1].number}`"
        problems.append(Problem(f"`{key}` has no version {number}", field=field, code="unknown_model", hint=hint))
    return found


def _no_version(key: str, field: str) -> Problem:
    if Subject.objects.filter(key=key).exists():
        hint = "register a version of it first"
        return Problem(f"`{key}` has no version yet", field=field, code="unknown_model", hint=hint)
    models = Subject.objects.filter(kind=SubjectKind.MODEL).values_list("key", flat=True)
    return Problem(f"no model `{key}`", field=field, code="unknown_model", hint=closest(key, models, what="models"))
