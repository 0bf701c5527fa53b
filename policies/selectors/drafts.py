"""Reads about drafts of policies."""

from collections.abc import Sequence
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from evaluations.kernel.errors import Problem
from policies.language.compiler import PolicyRefused, compile_policy
from policies.models import PolicyDraft, PolicyVersion
from policies.selectors.policies import known_names


def find_drafts(*, name: str) -> QuerySet[Any]:
    """Return what was saved as drafts of a policy, newest first, each with `version`: the number of the version with its very bytes."""
    same = PolicyVersion.objects.filter(policy__name=OuterRef("policy_name"), digest=OuterRef("digest")).values("number")[:1]
    return PolicyDraft.objects.filter(policy_name=name).annotate(version=Subquery(same)).order_by("-id")


def open_draft(name: str) -> PolicyDraft | None:
    """Return a policy's draft: what was saved last, unless its very bytes are a version already."""
    newest = find_drafts(name=name).first()
    return None if newest is None or newest.version is not None else newest


def problems_of_draft(draft: PolicyDraft) -> Sequence[Problem]:
    """Return everything that keeps a draft from being proposed, by what is registered now."""
    try:
        compiled = compile_policy(bytes(draft.text), known_names())
    except PolicyRefused as refused:
        return refused.problems
    return () if compiled.name == draft.policy_name else (misnamed(compiled.name, draft.policy_name),)


def misnamed(stated: str, expected: str) -> Problem:
    """Return the problem of a text that names another policy than the one it is a draft of."""
    hint = f"write `name: {expected}`, or save it as a draft of `{stated}`"
    return Problem(f"the text names the policy `{stated}`", field="metadata.name", code="other_policy", hint=hint)
