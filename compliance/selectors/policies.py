"""Policies, their versions and verdicts, as the API lists them."""

import uuid
from typing import Any, NamedTuple

from django.db.models import Case, Exists, IntegerField, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.fields import CharField

from evaluations.kernel.errors import DomainError
from policies.language.compiled import LooserParameter
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.explain import sentence
from policies.language.facts import FactsUnreadable, from_document
from policies.language.flip_sentences import flip_value
from policies.language.flipping import flips_of
from policies.language.names import Names
from policies.language.results import SEMANTICS, Outcome
from policies.models import FactsDocument, Policy, PolicyActivation, PolicyVersion, Verdict
from policies.selectors.costs import digests_in, task_costs
from policies.vocabulary import VersionState


def find_policies() -> QuerySet[Any]:
    """Return policies, each with `active_version` and `latest_version` (numbers, or None)."""
    in_force = PolicyActivation.objects.filter(policy=OuterRef("pk")).order_by("-id").values("version__number")[:1]
    newest = PolicyVersion.objects.filter(policy=OuterRef("pk")).order_by("-number").values("number")[:1]
    return Policy.objects.annotate(
        active_version=Subquery(in_force, output_field=IntegerField()),
        latest_version=Subquery(newest, output_field=IntegerField()),
    )


def get_policy(*, name: str) -> Policy | None:
    return find_policies().filter(name=name).first()


def find_policy_versions(*, name: str) -> QuerySet[Any]:
    """Return the versions of the policy with this name, each with `state`, derived from the activations as `state_of` does it."""
    activations = PolicyActivation.objects.order_by("-id")
    in_force = Subquery(activations.filter(policy=OuterRef("policy")).values("version")[:1])
    rows: QuerySet[Any] = (
        PolicyVersion.objects.filter(policy__name=name)
        .select_related("policy")
        .annotate(
            state=Case(
                When(pk=in_force, then=Value(VersionState.ACTIVE.value)),
                When(Exists(activations.filter(version=OuterRef("pk"))), then=Value(VersionState.RETIRED.value)),
                default=Value(VersionState.PROPOSED.value),
                output_field=CharField(),
            )
        )
    )
    return rows


def get_policy_version(*, name: str, number: int) -> PolicyVersion | None:
    return find_policy_versions(name=name).filter(number=number).first()


def find_verdicts(
    *,
    policy: str | None = None,
    version: int | None = None,
    subject: str | None = None,
    domain: str | None = None,
    outcome: str | None = None,
) -> QuerySet[Any]:
    """Return verdicts with policy version, subject version and the digest of their facts; core and facts stay behind."""
    given = {
        "policy_version__policy__name": policy,
        "policy_version__number": version,
        "subject_version__subject__key": subject,
        "domain": domain,
        "outcome": outcome,
    }
    # The bodies behind the digests: long, and shown by answers of their own.
    bodies = ("core", "facts__content", "policy_version__text", "policy_version__resolved", "subject_version__pin")
    rows = _verdicts().defer(*bodies)
    return rows.filter(**{field: value for field, value in given.items() if value is not None})


def get_verdict(*, uid: uuid.UUID) -> Verdict | None:
    """Return one verdict, with its core and what is needed to explain it."""
    return _verdicts().filter(uid=uid).first()


def get_facts(*, uid: uuid.UUID) -> FactsDocument | None:
    """Return the facts document that a verdict rests on."""
    return FactsDocument.objects.filter(verdicts__uid=uid).first()


class Told(NamedTuple):
    """What is said of one rule of a verdict: a plain sentence, and what would flip it (as `flip_value` gives it; none if it passes)."""

    message: str = ""
    flips: tuple[dict[str, Any], ...] = ()


NOTHING_TOLD = Told()


def sentences_of(verdict: Verdict) -> dict[str, Told]:
    """Return what can be said of each rule of a verdict, by rule id, made by judging again what was kept.

    Empty where that cannot be done, or does not give the stored core: then nothing but the core speaks.
    """
    if verdict.semantics != SEMANTICS:
        return {}
    try:
        facts = from_document(bytes(verdict.facts.content))
        compiled = compile_policy(bytes(verdict.policy_version.text), Names.for_replay(facts.metrics))
        judgement = judge(compiled, facts, as_of=verdict.as_of)
    except (FactsUnreadable, DomainError, LooserParameter):
        return {}
    if judgement.core_bytes() != bytes(verdict.core):
        return {}
    costs = {} if judgement.outcome == Outcome.PASS else task_costs(digests_in(facts), known_at=verdict.known_at)
    flips = flips_of(compiled, facts, judgement, as_of=verdict.as_of, costs=costs)
    return {
        rule.id: Told(sentence(rule, compiled), tuple(flip_value(flip, compiled) for flip in flips if flip.rule == rule.id))
        for rule in judgement.rules
    }


def _verdicts() -> QuerySet[Any]:
    return Verdict.objects.select_related("policy_version__policy", "subject_version__subject", "facts")
