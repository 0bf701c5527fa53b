"""Why the gate says no: one closed, published list, in the order in which an answer names its first reason."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Code(StrEnum):
    """A reason code. Whoever reads answers may rely on these words; new ones may be added, none changes its meaning."""

    # The gate itself could not judge, or could not record.
    CANNOT_RECORD = "cannot_record"
    CANNOT_JUDGE = "cannot_judge"
    INTERNAL_ERROR = "internal_error"
    FACTS_MOVED = "facts_moved"
    # What was asked about.
    OUT_OF_SCOPE = "out_of_scope"
    UNKNOWN_RESOURCE_TYPE = "unknown_resource_type"
    UNKNOWN_SYSTEM = "unknown_system"
    UNKNOWN_SUBJECT = "unknown_subject"
    OTHER_KIND = "other_kind"
    UNKNOWN_FINGERPRINT = "unknown_fingerprint"
    ALIAS_NOW_POINTS_TO = "alias_now_points_to"
    ALIAS_WITHDRAWN = "alias_withdrawn"
    # What answers behind it.
    ROUTE_NOT_CLOSED = "route_not_closed"
    ROUTE_REACHES_UNAPPROVED = "route_reaches_unapproved"
    SUBJECT_CHANGED = "subject_changed"
    # The grant.
    GRANT_REVOKED = "grant_revoked"
    GRANT_SUSPENDED = "grant_suspended"
    GRANT_EXPIRED = "grant_expired"
    GRANT_NOT_BEGUN = "grant_not_begun"
    RECERTIFICATION_MISSED = "recertification_missed"
    SIGNER_NO_LONGER_ELIGIBLE = "signer_no_longer_eligible"
    ACTION_NOT_GRANTED = "action_not_granted"
    NO_GRANT = "no_grant"
    # The policies.
    NO_POLICY = "no_policy"
    POLICY_HAS_NO_REQUIREMENTS = "policy_has_no_requirements"
    POLICY_UNREADABLE = "policy_unreadable"
    CONDITION_ERROR = "condition_error"
    FORBIDDEN_BY_GUARDRAIL = "forbidden_by_guardrail"
    GUARDRAIL_ERROR = "guardrail_error"
    NO_VERDICT = "no_verdict"
    VERDICT_OVERDUE = "verdict_overdue"
    # The evidence.
    EVIDENCE_RETRACTED = "evidence_retracted"
    EVIDENCE_CONTESTED = "evidence_contested"
    EVIDENCE_ERROR = "evidence_error"
    EVIDENCE_MISSING = "evidence_missing"
    EVIDENCE_STALE = "evidence_stale"
    EVIDENCE_INSUFFICIENT = "evidence_insufficient"


ORDER: Mapping[str, int] = {code.value: place for place, code in enumerate(Code)}

OF_RESULT: Mapping[str, Code] = {
    "fail": Code.EVIDENCE_INSUFFICIENT,
    "missing": Code.EVIDENCE_MISSING,
    "stale": Code.EVIDENCE_STALE,
    "contested": Code.EVIDENCE_CONTESTED,
    "error": Code.EVIDENCE_ERROR,
}
"""The code of a rule that was not passed, by its result."""


class Reason(NamedTuple):
    """One reason, and what it is about: names, numbers as decimal text, ids."""

    code: Code
    detail: Mapping[str, Any]

    def as_value(self) -> dict[str, Any]:
        """Return it as answers and records hold it."""
        return {"code": self.code.value, "message": sentence_of(self.code, self.detail), "detail": dict(self.detail)}


def sentence_of(code: str, detail: Mapping[str, Any]) -> str:
    """Return one sentence for a person. Sentences are rendered from code and detail, and are under no digest."""
    return _SENTENCES[Code(code)](detail)


def _rule(said: str) -> Callable[[Mapping[str, Any]], str]:
    def render(detail: Mapping[str, Any]) -> str:
        where = f"{detail['policy']} v{detail['version']}, rule {detail['rule']}"
        if detail.get("measured") is not None:
            return f"{where}: {said}: measured {detail['measured']}, the bar is {detail['bar']}"
        return f"{where}: {said} ({str(detail.get('reason', '')).replace('_', ' ')})"

    return render


def _members(detail: Mapping[str, Any]) -> str:
    named = ", ".join(f"{member['subject']}@{member['version']}" for member in detail["members"])
    return f"the route can reach what is not cleared for this: {named}"


def _unclear(detail: Mapping[str, Any]) -> str:
    missing = detail["missing"] or "a fact"
    return f"{detail['policy']} v{detail['version']} cannot tell whether it applies: {missing} is not known"


_SENTENCES: Mapping[Code, Callable[[Mapping[str, Any]], str]] = {
    Code.CANNOT_RECORD: lambda d: "the answer could not be recorded, so it is no",
    Code.CANNOT_JUDGE: lambda d: "the gate cannot judge at the moment, so the answer is no; ask again shortly",
    Code.INTERNAL_ERROR: lambda d: "judging ended in an error, so the answer is no; the operators find it under the request's id",
    Code.FACTS_MOVED: lambda d: "what the answer rests on moved while it was given; ask again",
    Code.OUT_OF_SCOPE: lambda d: f"the token may not ask about `{d['system']}`",
    Code.UNKNOWN_RESOURCE_TYPE: lambda d: f"resources of the type `{d['type']}` are not known; ask about a `system`",
    Code.UNKNOWN_SYSTEM: lambda d: f"no system `{d['system']}` is registered",
    Code.UNKNOWN_SUBJECT: lambda d: f"no subject or alias `{d['subject']}` is registered",
    Code.OTHER_KIND: lambda d: (
        f"`{d['subject']}` is registered as a {d['kind']}, and was asked about as: {d['asked']}; name the type `{d['kind']}`"
    ),
    Code.UNKNOWN_FINGERPRINT: lambda d: f"no version of `{d['subject']}` has this fingerprint: register what runs",
    Code.ALIAS_NOW_POINTS_TO: lambda d: f"the alias `{d['alias']}` now means {d['now']}, no longer {d['before']}",
    Code.ALIAS_WITHDRAWN: lambda d: f"the alias `{d['alias']}` was withdrawn: it means nobody",
    Code.ROUTE_NOT_CLOSED: lambda d: f"what answers behind {d['subject']} is not a closed set",
    Code.ROUTE_REACHES_UNAPPROVED: _members,
    Code.SUBJECT_CHANGED: lambda d: f"{d['running']} runs since {d['since']}; the grant was signed for {d['granted']} before",
    Code.GRANT_REVOKED: lambda d: "the grant was revoked",
    Code.GRANT_SUSPENDED: lambda d: f"the grant is suspended: {str(d['cause']).replace('_', ' ')}",
    Code.GRANT_EXPIRED: lambda d: f"the grant ended at {d['ended_at']}",
    Code.GRANT_NOT_BEGUN: lambda d: f"the grant has not begun; it starts at {d['starts_at']} if its signers still stand",
    Code.RECERTIFICATION_MISSED: lambda d: f"the grant was to be certified anew by {d['recertify_by']}",
    Code.SIGNER_NO_LONGER_ELIGIBLE: lambda d: (
        "somebody who signed the grant has no active account any more: have it certified anew"
    ),
    Code.ACTION_NOT_GRANTED: lambda d: f"the grant is for {', '.join(d['actions'])}, not for `{d['action']}`",
    Code.NO_GRANT: lambda d: "there is no grant for this",
    Code.NO_POLICY: lambda d: f"no policy in force covers `{d['action']}` on `{d['system']}`",
    Code.POLICY_HAS_NO_REQUIREMENTS: lambda d: f"{d['policy']} v{d['version']} requires nothing, which approves nothing",
    Code.POLICY_UNREADABLE: lambda d: f"{d['policy']} v{d['version']} is in force and cannot be read: it denies everything",
    Code.CONDITION_ERROR: _unclear,
    Code.FORBIDDEN_BY_GUARDRAIL: lambda d: f"{d['policy']} v{d['version']} forbids this now: {d['guardrail']}",
    Code.GUARDRAIL_ERROR: lambda d: (
        f"{d['policy']} v{d['version']}: the guardrail {d['guardrail']} cannot be judged, which denies"
    ),
    Code.NO_VERDICT: lambda d: f"{d['policy']} v{d['version']} has not judged {d['subject']} for this",
    Code.VERDICT_OVERDUE: lambda d: f"{d['policy']} v{d['version']} has yet to judge what changed about {d['subject']}",
    Code.EVIDENCE_RETRACTED: lambda d: f"evidence that the grant was signed on was retracted: {d['evidence']}",
    Code.EVIDENCE_CONTESTED: _rule("the evidence is contested"),
    Code.EVIDENCE_ERROR: _rule("the evidence cannot be judged"),
    Code.EVIDENCE_MISSING: _rule("evidence is missing"),
    Code.EVIDENCE_STALE: _rule("the evidence is too old"),
    Code.EVIDENCE_INSUFFICIENT: _rule("the evidence misses the bar"),
}
