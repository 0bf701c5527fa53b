"""What the conformance profile is asked with: the policies in force that have it, and the properties that are registered.

It answers only where `WRITEGATE_CONFORMANCE` is set and the database holds no grant; else every question is read as ever. The
database holds to the same, when it records an answer.
"""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from compliance.deciding.conformance import MARK
from compliance.deciding.facts import Question
from compliance.models import Grant
from compliance.selectors.deciding.read import Asked, Caller, read_in_parts, read_questions
from policies.language.compiled import CompiledPolicy
from policies.models import PolicyVersion
from policies.selectors.applicable import CONFORMANCE
from policies.selectors.policies import compile_versions, versions_in_force
from policies.vocabulary import ANY_DOMAIN

Attributes = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Properties by type and id."""


class AttributesRefused(ValueError):
    """The file of attributes cannot be read, or is not of the form `{type: {id: {property: value}}}`."""


def is_on() -> bool:
    """True where the conformance profile answers: it is switched on, and there is no grant."""
    return bool(settings.CONFORMANCE) and not Grant.objects.exists()


def read_asked(
    questions: Sequence[Question], *, token_digests: Sequence[str], at: datetime
) -> tuple[list[Caller | None], list[Asked]]:
    """Return who asks and each question with its facts, as `read_questions` does; by the conformance profile where it answers."""
    callers, asked = read_questions(questions, token_digests=token_digests, at=at)
    if not is_on():
        return callers, asked
    policies, attributes = _policies_in_force(), read_attributes()
    return callers, [_conforming(item.question, policies, attributes) for item in asked]


def read_asked_in_parts(
    questions: Sequence[Question], *, token_digests: Sequence[str], at: datetime
) -> Generator[tuple[list[Caller | None], list[Asked]]]:
    """Return the same part by part, as `read_in_parts` does."""
    if is_on():
        yield read_asked(questions, token_digests=token_digests, at=at)
    else:
        yield from read_in_parts(questions, token_digests=token_digests, at=at)


def actions_in_force() -> list[str]:
    """Return the actions that the profile's policies in force name, in order."""
    return sorted({action for _, compiled in _policies_in_force() for action in compiled.actions})


def read_attributes() -> Attributes:
    """Return the registered properties, none where no file is named. Read once a process. Raises `AttributesRefused`."""
    return _attributes(str(settings.CONFORMANCE_ATTRIBUTES))


@lru_cache(maxsize=4)
def _attributes(path: str) -> Attributes:
    if not path:
        return {}
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise AttributesRefused(f"{path} cannot be read: {type(error).__name__}") from None
    for kind, held in found.items() if isinstance(found, dict) else [("", None)]:
        if not isinstance(held, dict) or not all(isinstance(properties, dict) for properties in held.values()):
            raise AttributesRefused(f"{path} is not of the form {{type: {{id: {{property: value}}}}}}, at type `{kind}`")
    return found


class _Policy(NamedTuple):
    version: PolicyVersion
    compiled: CompiledPolicy


def _policies_in_force() -> list[_Policy]:
    versions = versions_in_force()
    found = zip(versions, compile_versions(versions), strict=True)
    return [_Policy(version, compiled) for version, compiled in found if compiled.profile == CONFORMANCE]


def _conforming(question: Question, policies: Iterable[_Policy], attributes: Attributes) -> Asked:
    naming = [held for held in policies if question.action in held.compiled.actions]
    facts = {
        "alias": None,
        MARK: {
            "subject": _text(attributes, question.subject_type, question.subject),
            "resource": _text(attributes, question.resource_type, question.system),
        },
        "known_subject": False,
        "policies": [
            {
                "policy": version.policy.name,
                "version": version.number,
                "digest": version.digest,
                "profile": compiled.profile,
                "params_digest": "",
                "domain": str(ANY_DOMAIN),
            }
            for version, compiled in naming
        ],
        "question": question.as_value(),
        "subject": None,
        "system": None,
    }
    return Asked(question, facts, {version.digest: compiled for version, compiled in naming}, [], None, None, {})


def _text(attributes: Attributes, kind: str, identifier: str) -> str:
    return json.dumps(attributes.get(kind, {}).get(identifier, {}), sort_keys=True)
