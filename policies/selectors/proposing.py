"""Policy texts that somebody wants to propose: what each would become, and every problem of all of them at once."""

from collections.abc import Sequence
from typing import NamedTuple

from evaluations.kernel.errors import InputRefused, Problem
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.models import PolicyVersion
from policies.selectors.policies import known_names


class Draft(NamedTuple):
    """A text, the file it stands in and the policy it must name ("" for any).

    `base` is the number of the version that it was written from, None where there was none. `settled` says that whoever proposes it
    knows of every version that came since.
    """

    text: bytes
    filename: str = ""
    policy: str = ""
    base: int | None = None
    settled: bool = False


class Examined(NamedTuple):
    """A draft that compiles; `known` is the version that holds these very bytes, None where the text is new."""

    draft: Draft
    compiled: CompiledPolicy
    known: PolicyVersion | None


def examine_drafts(drafts: Sequence[Draft]) -> list[Examined]:
    """Compile drafts and hold each against the newest version of its policy. Raises `InputRefused` with every problem of all."""
    names = known_names()
    problems: list[Problem] = []
    compiled: list[tuple[Draft, CompiledPolicy]] = []
    for draft in drafts:
        try:
            compiled.append((draft, compile_policy(draft.text, names, filename=draft.filename)))
        except InputRefused as refusal:
            problems += refusal.problems
    newest = _newest([policy.name for _, policy in compiled])
    found: list[Examined] = []
    taken: dict[str, str] = {}
    for draft, policy in compiled:
        examined = Examined(draft, policy, _holding(policy))
        problem = _problem(examined, newest.get(policy.name), taken)
        taken.setdefault(policy.name, draft.filename)
        if problem is None:
            found.append(examined)
        else:
            problems.append(problem)
    if problems:
        raise InputRefused(problems)
    return found


def _newest(names: Sequence[str]) -> dict[str, int]:
    rows = PolicyVersion.objects.filter(policy__name__in=names).order_by("policy", "number")
    return dict(rows.values_list("policy__name", "number"))


def _holding(policy: CompiledPolicy) -> PolicyVersion | None:
    return PolicyVersion.objects.filter(policy__name=policy.name, digest=policy.digest).select_related("policy").first()


def _problem(examined: Examined, newest: int | None, taken: dict[str, str]) -> Problem | None:
    draft, policy, known = examined
    if draft.policy and policy.name != draft.policy:
        hint = f"name the policy `{draft.policy}` in it, or the file after the policy"
        return Problem(f"the text names the policy `{policy.name}`", draft.filename, code="other_name", hint=hint)
    if policy.name in taken:
        message = f"the policy `{policy.name}` stands in {taken[policy.name]} too"
        return Problem(message, draft.filename, code="named_twice", hint="keep one of the two")
    if known is not None or newest is None or draft.settled or draft.base == newest:
        return None
    since = "it was not pulled" if draft.base is None else f"it was written from v{draft.base}"
    return Problem(
        f"the newest version of `{policy.name}` is v{newest}, and {since}",
        draft.filename,
        code="not_the_newest",
        hint="pull the newest version and write the change into it, or propose over it with --over-newer",
    )
