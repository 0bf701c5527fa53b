"""Agents, routes and models registered whole: the subject and one exact version of it, in one transaction."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evaluations.importers.fields import is_clean_line
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import foreign, key_problem
from evaluations.kernel.services import service
from evaluations.models import Subject, SubjectVersion
from evaluations.selectors.subjects import model_versions_named, newest_version
from evaluations.services.subjects import apply_announce_version, apply_register_subject, apply_register_subject_version
from evaluations.vocabulary import SubjectKind

MAX_LINE = 120
MAX_TITLE = 200
MAX_FALLBACKS = 20
HARNESS_PARTS = ("name", "version")

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")

Running = Callable[[Subject], SubjectVersion | None]
"""Says which version of a subject runs: the newest one, as far as this floor knows; who knows of roll-backs hands in more."""


class Registered(NamedTuple):
    """What a registration gave: `is_new` is false where exactly this version had been registered before."""

    subject: Subject
    version: SubjectVersion
    is_new: bool


@service(refused="subject_version.refused")
def register_agent(
    *,
    actor: Actor,
    key: str,
    title: str = "",
    provider: str = "",
    candidate: bool = True,
    models: Iterable[str],
    prompt_digest: str,
    tool_manifest_digest: str,
    harness: Mapping[str, str],
    closed: bool = True,
    request_id: str = "",
) -> Registered:
    """Register an agent and one version of it: the closed set of models it can reach, its prompts, its tools and its harness.

    `models` are names as `model_versions_named` takes them, in any order; `harness` has `name` and `version`. Any change makes a new
    version, the same again gives the version that is there. `closed=False` says that other models may answer too: such a version gets
    no verdict. Raises `InputRefused` naming all that lacks, and `SubjectExists`.
    """
    return apply_register_agent(
        actor=actor,
        key=key,
        title=title,
        provider=provider,
        candidate=candidate,
        models=models,
        prompt_digest=prompt_digest,
        tool_manifest_digest=tool_manifest_digest,
        harness=harness,
        closed=closed,
        request_id=request_id,
    )


@service(refused="subject_version.refused")
def register_route(
    *,
    actor: Actor,
    key: str,
    title: str = "",
    provider: str = "",
    candidate: bool = True,
    models: Iterable[str],
    closed: bool = True,
    request_id: str = "",
) -> Registered:
    """Register a route and one version of it: the closed set of models that can answer behind its name. Raises as `register_agent`."""
    return apply_register_route(
        actor=actor,
        key=key,
        title=title,
        provider=provider,
        candidate=candidate,
        models=models,
        closed=closed,
        request_id=request_id,
    )


@service(refused="subject_version.refused")
def register_model(
    *,
    actor: Actor,
    key: str,
    title: str = "",
    provider: str,
    candidate: bool = True,
    snapshot: str,
    effort: str | None = None,
    quantisation: str | None = None,
    fallbacks: Sequence[str] = (),
    request_id: str = "",
) -> Registered:
    """Register a model and one version of it: provider, exact snapshot, effort, quantisation, and what it falls back to, in order."""
    return apply_register_model(
        actor=actor,
        key=key,
        title=title,
        provider=provider,
        candidate=candidate,
        snapshot=snapshot,
        effort=effort,
        quantisation=quantisation,
        fallbacks=fallbacks,
        request_id=request_id,
    )


def apply_register_agent(
    *,
    actor: Actor,
    key: str,
    title: str = "",
    provider: str = "",
    candidate: bool = True,
    models: Iterable[str],
    prompt_digest: str,
    tool_manifest_digest: str,
    harness: Mapping[str, str],
    closed: bool = True,
    request_id: str = "",
    running: Running = newest_version,
) -> Registered:
    """Register an agent's version inside an open service transaction."""
    problems = _common_problems(key, title, provider)
    for field, digest in (("prompt_digest", prompt_digest), ("tool_manifest_digest", tool_manifest_digest)):
        if not digest:
            problems.append(_missing(field, "`writegate fingerprint` computes it from the agent's files"))
        elif not isinstance(digest, str) or not _DIGEST.match(digest):
            problems.append(Problem("it is no digest", field=field, hint="write sha256: and 64 hexadecimal digits"))
    problems += _harness_problems(harness)
    members = _members(models, problems)
    pin = {
        "prompt_digest": prompt_digest,
        "tool_manifest_digest": tool_manifest_digest,
        "harness": {part: harness[part] for part in HARNESS_PARTS},
    }
    return _register(
        SubjectKind.AGENT,
        pin,
        members,
        closed=closed,
        actor=actor,
        key=key,
        title=title,
        provider=provider,
        candidate=candidate,
        request_id=request_id,
        running=running,
    )


def apply_register_route(
    *,
    actor: Actor,
    key: str,
    title: str = "",
    provider: str = "",
    candidate: bool = True,
    models: Iterable[str],
    closed: bool = True,
    deployments: Iterable[str] | None = None,
    request_id: str = "",
    running: Running = newest_version,
) -> Registered:
    """Register a route's version inside an open service transaction.

    `deployments` are what a gateway's inventory names behind it, as written there: they are pinned too, and a route that is not closed
    may then reach nothing that is registered.
    """
    problems = _common_problems(key, title, provider)
    names = list(models)
    members = [] if not (names or closed or deployments is None or problems) else _members(names, problems)
    return _register(
        SubjectKind.ROUTE,
        {"provider": provider, **({} if deployments is None else {"deployments": sorted(set(deployments))})},
        members,
        closed=closed,
        actor=actor,
        key=key,
        title=title,
        provider=provider,
        candidate=candidate,
        request_id=request_id,
        running=running,
    )


def apply_register_model(
    *,
    actor: Actor,
    key: str,
    title: str = "",
    provider: str,
    candidate: bool = True,
    snapshot: str,
    effort: str | None = None,
    quantisation: str | None = None,
    fallbacks: Sequence[str] = (),
    request_id: str = "",
    running: Running = newest_version,
) -> Registered:
    """Register a model's version inside an open service transaction."""
    problems = _common_problems(key, title, provider)
    if not provider:
        problems.append(_missing("provider", "say who serves the model"))
    if not snapshot:
        problems.append(_missing("snapshot", "name the exact snapshot, such as 2026-06-01: an alias may move"))
    problems += _identity_problems({"snapshot": snapshot, "effort": effort or "", "quantisation": quantisation or ""})
    if len(fallbacks) > MAX_FALLBACKS:
        problems.append(Problem(f"{len(fallbacks)} are named", field="fallbacks", hint=f"name at most {MAX_FALLBACKS}"))
    found = (key_problem(name, field=f"fallbacks[{place}]") for place, name in enumerate(fallbacks))
    problems += [problem for problem in found if problem is not None]
    if problems:
        raise InputRefused(problems)
    pin = {"provider": provider, "snapshot": snapshot, "effort": effort or None, "fallbacks": list(fallbacks)}
    if quantisation:
        # Only where it is stated: what was pinned without it keeps its digest.
        pin["quantisation"] = quantisation
    return _register(
        SubjectKind.MODEL,
        pin,
        (),
        closed=True,
        actor=actor,
        key=key,
        title=title,
        provider=provider,
        candidate=candidate,
        request_id=request_id,
        running=running,
    )


def _register(
    kind: str,
    pin: Mapping[str, Any],
    members: Sequence[SubjectVersion],
    *,
    closed: bool,
    actor: Actor,
    key: str,
    request_id: str,
    running: Running,
    **facts: Any,
) -> Registered:
    subject = apply_register_subject(actor=actor, key=key, kind=kind, request_id=request_id, **facts)
    # From here on one at a time for this subject: which version ran until now is part of what is recorded.
    Subject.objects.select_for_update().get(pk=subject.pk)
    before, newest = running(subject), newest_version(subject)
    version = apply_register_subject_version(
        actor=actor, subject=subject, pin=pin, members=members, closed=closed, request_id=request_id
    )
    is_new = newest is None or version.number > newest.number
    if before is not None and not is_new and version.pk != before.pk:
        # A roll-back, or the way forward again: a known configuration runs in place of another one, and what was granted to that one
        # no longer describes what runs.
        audit.record(
            audit.Event(
                action="subject_version.reinstated",
                actor=actor,
                target=("subject_version", f"{key}@{version.number}"),
                old={"version": before.number},
                new={"version": version.number},
                digests={"subject_version": version.digest},
                request_id=request_id,
            )
        )
        apply_announce_version(version)
    return Registered(subject, version, is_new)


def _members(models: Iterable[str], problems: list[Problem]) -> list[SubjectVersion]:
    """Return the versions that are meant. Raises `InputRefused` with these problems and those of the names, all at once."""
    try:
        members = model_versions_named(models)
    except InputRefused as refused:
        raise InputRefused([*problems, *refused.problems]) from None
    if problems:
        raise InputRefused(problems)
    return members


def _common_problems(key: str, title: str, provider: str) -> list[Problem]:
    problem = key_problem(key, field="key")
    found = [problem] if problem is not None else []
    return found + _line_problems({"title": title}, limit=MAX_TITLE) + _identity_problems({"provider": provider})


def _harness_problems(harness: Mapping[str, str]) -> list[Problem]:
    if not harness:
        return [_missing("harness", "give its name and version")]
    problems = [
        _missing(f"harness.{part}", "a harness has a name and a version") for part in HARNESS_PARTS if not harness.get(part)
    ]
    problems += [
        Problem(
            "there is no such part", field=f"harness.{part}", code="unknown_member", hint="a harness has a name and a version"
        )
        for part in harness
        if part not in HARNESS_PARTS
    ]
    return problems + _identity_problems({f"harness.{part}": harness.get(part) or "" for part in HARNESS_PARTS})


def _line_problems(texts: Mapping[str, Any], *, limit: int = MAX_LINE) -> list[Problem]:
    hint = f"write one line of at most {limit} printable characters"
    return [
        Problem("it is no plain line of text", field=field, hint=hint)
        for field, text in texts.items()
        if text and (not isinstance(text, str) or not is_clean_line(text, limit=limit))
    ]


def _identity_problems(texts: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with parts of an identity: plain lines, and in ASCII, so that none looks like another."""
    found = _line_problems(texts)
    found += [
        Problem(f"`{text}` holds {foreign(text)}", field=field, code="look_alike", hint="write it in ASCII")
        for field, text in texts.items()
        if isinstance(text, str) and is_clean_line(text, limit=MAX_LINE) and foreign(text)
    ]
    return found


def _missing(field: str, hint: str) -> Problem:
    return Problem("it is missing", field=field, code="missing", hint=hint)
