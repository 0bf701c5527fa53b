"""What each reason code means, whatever it is about, and what to do about it: the published vocabulary."""

from collections.abc import Mapping
from typing import NamedTuple

from compliance.deciding.codes import Code


class Meaning(NamedTuple):
    """`means` says what the gate found, `remedy` what would change the answer. Words may change; the code's meaning does not."""

    means: str
    remedy: str


MEANINGS: Mapping[Code, Meaning] = {
    Code.CANNOT_RECORD: Meaning(
        "The answer could not be recorded, and an answer that nobody has on record is never an allow.",
        "Ask again; where it stays, the operators find the cause in the log.",
    ),
    Code.CANNOT_JUDGE: Meaning(
        "The gate does not reach its database, so that there is nothing to judge by.",
        "Ask again shortly, with growing waits; see `/readyz`.",
    ),
    Code.INTERNAL_ERROR: Meaning(
        "Judging ended in an error of the gate's own.",
        "Tell the operators the id of the request: the log has the cause under it.",
    ),
    Code.FACTS_MOVED: Meaning(
        "What the answer would have rested on moved while it was given, twice in a row.",
        "Ask again.",
    ),
    Code.OUT_OF_SCOPE: Meaning(
        "The token is for another system than the one asked about.",
        "Ask with a token whose scope is `decide`, or `decide:` and this system.",
    ),
    Code.UNKNOWN_RESOURCE_TYPE: Meaning(
        "The resource is of a type that the gate keeps no grants for.",
        "Ask about a resource of the type `system`.",
    ),
    Code.UNKNOWN_SYSTEM: Meaning(
        "No system is registered under this key.",
        "Check the key, or register the system.",
    ),
    Code.UNKNOWN_SUBJECT: Meaning(
        "No subject and no name as written is registered under this id.",
        "Check the id, or register the subject.",
    ),
    Code.OTHER_KIND: Meaning(
        "The subject is registered as another kind than the one asked about.",
        "Ask about the kind that it is registered as.",
    ),
    Code.UNKNOWN_FINGERPRINT: Meaning(
        "No version of the subject has this fingerprint: what runs is not what was registered.",
        "Register what runs, and have a grant signed for it.",
    ),
    Code.ALIAS_NOW_POINTS_TO: Meaning(
        "The name was moved from one subject version to another, and the one it means now is not allowed this.",
        "Ask for a grant for what the name means now, or ask about the version itself.",
    ),
    Code.ALIAS_WITHDRAWN: Meaning(
        "The name was taken back and means nobody any more.",
        "Ask about the subject by its key.",
    ),
    Code.ROUTE_NOT_CLOSED: Meaning(
        "What can answer behind the route is not a closed set, so nobody can say whom a grant would reach.",
        "Register the route with every model that it can reach, and no wildcard.",
    ),
    Code.ROUTE_REACHES_UNAPPROVED: Meaning(
        "The route holds no grant of its own, and at least one member that it can reach is not cleared for this.",
        "Take the members that are named out of the route, or have each of them granted.",
    ),
    Code.SUBJECT_CHANGED: Meaning(
        "Another version of the subject runs than the one that the grant was signed for.",
        "Have a grant signed for the version that runs, or go back to the one that was signed for.",
    ),
    Code.GRANT_REVOKED: Meaning(
        "The grant was revoked, which is for good.",
        "Ask for another grant.",
    ),
    Code.GRANT_SUSPENDED: Meaning(
        "The grant is suspended: its cause is named, and it comes back through its quorum alone.",
        "Mend the cause, then ask that the grant comes back.",
    ),
    Code.GRANT_EXPIRED: Meaning(
        "The grant's time is over.",
        "Ask for its renewal.",
    ),
    Code.GRANT_NOT_BEGUN: Meaning(
        "The grant has not begun: its start has not come, or its signers are yet to be looked at again.",
        "Wait for its start.",
    ),
    Code.RECERTIFICATION_MISSED: Meaning(
        "The grant was to be certified anew, and its day has passed.",
        "Ask for a new certification.",
    ),
    Code.SIGNER_NO_LONGER_ELIGIBLE: Meaning(
        "Somebody whose signature the grant rests on has no active account any more.",
        "Ask for a new certification, signed by people who still may.",
    ),
    Code.ACTION_NOT_GRANTED: Meaning(
        "There is a grant, and it is for other actions.",
        "Ask for a grant for this action.",
    ),
    Code.NO_GRANT: Meaning(
        "Nobody granted this.",
        "Ask for a grant; until it is signed the answer is no.",
    ),
    Code.NO_POLICY: Meaning(
        "No policy in force covers this action on this system: nothing requires anything, which is no permission.",
        "Have a policy activated whose `appliesTo` covers the action and the system.",
    ),
    Code.POLICY_HAS_NO_REQUIREMENTS: Meaning(
        "A policy that applies has no rule, and approves nothing.",
        "Give the policy rules, or retire it.",
    ),
    Code.POLICY_UNREADABLE: Meaning(
        "A policy version in force has a text that no door would have let in.",
        "Have a version that can be read activated in its place, and find out how this one came there.",
    ),
    Code.CONDITION_ERROR: Meaning(
        "A policy cannot tell whether it applies, because a fact that its condition reads is not known.",
        "Complete what is registered about the subject or the system, or mend the condition.",
    ),
    Code.FORBIDDEN_BY_GUARDRAIL: Meaning(
        "A policy forbids this at this moment, whatever the evidence says.",
        "Wait until what the guardrail names is over.",
    ),
    Code.GUARDRAIL_ERROR: Meaning(
        "A guardrail cannot be judged, which denies.",
        "Complete what the guardrail reads, or mend it.",
    ),
    Code.NO_VERDICT: Meaning(
        "A policy that applies has not judged this subject version, or its verdict does not pass and names no rule.",
        "Wait a minute for the verdict; where none comes, look at the subject's page.",
    ),
    Code.VERDICT_OVERDUE: Meaning(
        "Something changed about the subject, or its evidence aged, and the verdict is from before.",
        "Ask again in a minute; where it stays, the worker does not run: see `/readyz`.",
    ),
    Code.EVIDENCE_RETRACTED: Meaning(
        "Evidence that the grant was signed on was retracted.",
        "Bring other evidence, then ask that the grant comes back.",
    ),
    Code.EVIDENCE_CONTESTED: Meaning(
        "Evidence that a rule needs is in dispute.",
        "Have the dispute ruled on, or bring undisputed evidence.",
    ),
    Code.EVIDENCE_ERROR: Meaning(
        "A rule could not be judged on the evidence there is.",
        "Look at the rule on the verdict's page.",
    ),
    Code.EVIDENCE_MISSING: Meaning(
        "Evidence that a rule needs is not known.",
        "Bring it: the rule says which metric, benchmark and version.",
    ),
    Code.EVIDENCE_STALE: Meaning(
        "The evidence for a rule is older than the policy takes.",
        "Bring newer evidence.",
    ),
    Code.EVIDENCE_INSUFFICIENT: Meaning(
        "The evidence misses the bar of a rule.",
        "The number and the bar are named; better evidence or a signed waiver would clear it, where the rule can be waived.",
    ),
}
