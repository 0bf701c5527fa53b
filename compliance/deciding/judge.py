"""The judgement itself: a function of what was read, the compiled policies and the instant. The default is no."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from compliance.deciding.codes import OF_RESULT, ORDER, Code, Reason
from compliance.deciding.conformance import MARK, ask_conformance
from compliance.deciding.facts import SEMANTICS, Value
from policies.language.compiled import CompiledPolicy
from policies.language.conditions import Answer, ask_values

SYSTEM = "system"
ANY_KIND, ALIAS = "subject", "alias"
ROUTE = "route"
GRACE_SECONDS = 60
"""News that is no ruling and no name's move is judged within this time; after it, no answer rests on the older verdict."""

Policies = Mapping[str, CompiledPolicy]


class Judgement(NamedTuple):
    """The answer. `grants`, `evidence`, `waived` and `until` are those of an allow; `policies` were asked, with what they said.

    `until` is the instant at which time alone ends an allow, "" for a denial.
    """

    allowed: bool
    reasons: tuple[Reason, ...]
    policies: tuple[Value, ...] = ()
    grants: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    waived: tuple[Value, ...] = ()
    until: str = ""
    break_glass: bool = False

    def replaced_by(self, code: Code) -> "Judgement":
        """Return the denial that is given in its place, for a cause that no fact speaks of."""
        return Judgement(False, (Reason(code, {}), *self.reasons), self.policies)

    def core(self) -> Value:
        """Return what is recorded under the digest: all that was decided, without sentences."""
        return {
            "allowed": self.allowed,
            "break_glass": self.break_glass,
            "evidence": list(self.evidence),
            "grants": list(self.grants),
            "policies": list(self.policies),
            "reasons": [{"code": reason.code.value, "detail": reason.detail} for reason in self.reasons],
            "semantics": SEMANTICS,
            "valid_until": self.until or None,
            "waived": list(self.waived),
        }


def judge(facts: Value, policies: Policies, at: datetime, stamp: str) -> Judgement:
    """Answer a question. `policies` are compiled by digest; `stamp` is `at` as facts write instants."""
    if MARK in facts:
        against, rows = ask_conformance(facts, policies, at)
        return _denied(against, rows) if against else Judgement(True, (), tuple(rows))
    system, subject = facts["system"], facts["subject"]
    unknown = _unknown(facts)
    if unknown or system is None or subject is None:
        return _denied([*unknown, Reason(Code.NO_GRANT, {})])
    asked = _Asked(facts, policies, at, stamp)
    found = asked.judge(subject)
    alias = facts["alias"]
    if not found.allowed and alias is not None and alias["before"] not in ("", alias["now"]):
        moved = Reason(Code.ALIAS_NOW_POINTS_TO, {"alias": alias["name"], "now": alias["now"], "before": alias["before"]})
        return found._replace(reasons=_ordered([moved, *found.reasons]))
    return found


def _unknown(facts: Value) -> list[Reason]:
    question, alias, subject = facts["question"], facts["alias"], facts["subject"]
    found: list[Reason] = []
    if question["resource_type"] != SYSTEM:
        found.append(Reason(Code.UNKNOWN_RESOURCE_TYPE, {"type": question["resource_type"]}))
    elif facts["system"] is None:
        found.append(Reason(Code.UNKNOWN_SYSTEM, {"system": question["system"]}))
    if subject is None:
        if alias is not None and not alias["now"]:
            found.append(Reason(Code.ALIAS_WITHDRAWN, {"alias": alias["name"]}))
        elif question["fingerprint"] and facts["known_subject"]:
            found.append(Reason(Code.UNKNOWN_FINGERPRINT, {"subject": question["subject"]}))
        else:
            found.append(Reason(Code.UNKNOWN_SUBJECT, {"subject": question["subject"]}))
    elif question["subject_type"] not in (subject["kind"], ANY_KIND, ALIAS):
        detail = {"subject": subject["key"], "kind": subject["kind"], "asked": question["subject_type"]}
        found.append(Reason(Code.OTHER_KIND, detail))
    return found


class _Asked:
    """One question at one instant, over a subject or the members of a route."""

    def __init__(self, facts: Value, policies: Policies, at: datetime, stamp: str) -> None:
        self._facts = facts
        self._system = facts["system"]
        self._action = facts["question"]["action"]
        self._policies = policies
        self._at = at
        self._stamp = stamp

    def judge(self, subject: Value) -> Judgement:
        if subject["kind"] == ROUTE and not subject["grants"]:
            return self._judge_route(subject)
        return self._judge_subject(subject)

    def _judge_route(self, route: Value) -> Judgement:
        """A route that was granted nothing itself is cleared by its members alone: each needs a grant of its own."""
        if not route["closed"] or not route["reaches"]:
            return _denied([Reason(Code.ROUTE_NOT_CLOSED, {"subject": _cite(route)}), Reason(Code.NO_GRANT, {})])
        held = [(member, self._judge_subject(member)) for member in route["reaches"]]
        newer = self._changed(route, "")
        refused = [(member, found) for member, found in held if not found.allowed]
        if refused or newer:
            members = [
                {"subject": member["key"], "version": member["version"], "reasons": [one.code.value for one in found.reasons]}
                for member, found in refused
            ]
            reasons = [Reason(Code.ROUTE_REACHES_UNAPPROVED, {"members": members})] if members else []
            return _denied([*newer, *reasons], _each(found.policies for _, found in held))
        return Judgement(
            True,
            (),
            _each(found.policies for _, found in held),
            tuple(dict.fromkeys(grant for _, found in held for grant in found.grants)),
            tuple(dict.fromkeys(uid for _, found in held for uid in found.evidence)),
            _each(found.waived for _, found in held),
            min(found.until for _, found in held),
            any(found.break_glass for _, found in held),
        )

    def _judge_subject(self, subject: Value) -> Judgement:
        grant, against = self._grant(subject)
        if grant is not None and not against and grant["kind"] == "break_glass":
            # It goes round the policies, on one person's word, and says so.
            return Judgement(True, (), grants=(grant["uid"],), until=grant["ends_at"], break_glass=True)
        asked = self._ask_policies(subject, grant)
        reasons = [*against, *asked.reasons]
        if reasons or grant is None:
            return _denied(reasons or [Reason(Code.NO_GRANT, {})], asked.policies)
        ends = [end for end in (grant["ends_at"], grant["recertify_by"], *asked.ends) if end]
        return Judgement(True, (), asked.policies, (grant["uid"],), tuple(dict.fromkeys(asked.evidence)), asked.waived, min(ends))

    # --- the grant

    def _grant(self, subject: Value) -> tuple[Value | None, list[Reason]]:
        """Return the grant that the answer rests on, with what speaks against it: one that may be used, else the newest."""
        best: tuple[Value | None, list[Reason]] = (None, [Reason(Code.NO_GRANT, {})])
        for grant in subject["grants"]:
            against = self._against(grant, subject)
            if not against:
                return grant, []
            if best[0] is None:
                best = grant, against
        return best

    def _against(self, grant: Value, subject: Value) -> list[Reason]:
        named = {"grant": grant["uid"]}
        found: list[Reason] = []
        status, cause = grant["status"], grant["cause"]
        if status == "revoked":
            found.append(Reason(Code.GRANT_REVOKED, {**named, "cause": cause}))
        elif status == "expired" or self._stamp >= grant["ends_at"]:
            found.append(Reason(Code.GRANT_EXPIRED, {**named, "ended_at": grant["ends_at"]}))
        elif status == "suspended":
            found.append(Reason(Code.GRANT_SUSPENDED, {**named, "cause": cause}))
            found += [Reason(Code.EVIDENCE_RETRACTED, {**named, "evidence": uid}) for uid in grant["retracted"]]
        elif status != "active":
            found.append(Reason(Code.NO_GRANT, named))
        elif grant["begun_at"] is None or self._stamp < grant["starts_at"]:
            found.append(Reason(Code.GRANT_NOT_BEGUN, {**named, "starts_at": grant["starts_at"]}))
        elif grant["recertify_by"] is not None and self._stamp >= grant["recertify_by"]:
            found.append(Reason(Code.RECERTIFICATION_MISSED, {**named, "recertify_by": grant["recertify_by"]}))
        if self._action not in grant["actions"]:
            found.append(Reason(Code.ACTION_NOT_GRANTED, {**named, "action": self._action, "actions": grant["actions"]}))
        if grant["gone"]:
            found.append(Reason(Code.SIGNER_NO_LONGER_ELIGIBLE, {**named, "people": grant["gone"]}))
        return found + self._changed(subject, grant["signed_at"])

    def _changed(self, subject: Value, signed_at: str) -> list[Reason]:
        """Another version runs, and has begun to since the signatures: what was signed no longer describes what runs."""
        if subject["running"] == subject["version"] or subject["running_since"] <= signed_at:
            return []
        running = f"{subject['key']}@{subject['running']}"
        return [Reason(Code.SUBJECT_CHANGED, {"running": running, "since": subject["running_since"], "granted": _cite(subject)})]

    # --- the policies

    def _ask_policies(self, subject: Value, grant: Value | None) -> "_Policies":
        asked = _Policies()
        values = ask_values(
            {
                "subject": {"key": subject["key"], "kind": subject["kind"], "provider": subject["provider"]},
                "action": {"name": self._action},
                "resource": self._system,
                "requester": grant["requester"] if grant is not None else {},
                "now": self._at,
            }
        )
        covered = False
        for row in self._facts["policies"]:
            about = {"policy": row["policy"], "version": row["version"]}
            if "refused" in row:
                empty = Code.POLICY_HAS_NO_REQUIREMENTS in row["refused"]
                covered = True
                asked.reasons.append(Reason(Code.POLICY_HAS_NO_REQUIREMENTS if empty else Code.POLICY_UNREADABLE, about))
                continue
            compiled = self._policies[row["digest"]]
            answer, missing = _when(compiled, values)
            if answer == Answer.FALSE:
                continue
            covered = covered or row["profile"] != "supplement"
            if answer == Answer.ERROR:
                asked.reasons.append(Reason(Code.CONDITION_ERROR, {**about, "missing": missing}))
            for guardrail in compiled.forbid:
                said = guardrail.when.evaluate(values)
                if said.answer == Answer.TRUE:
                    asked.reasons.append(Reason(Code.FORBIDDEN_BY_GUARDRAIL, {**about, "guardrail": guardrail.id}))
                elif said.answer == Answer.ERROR:
                    detail = {**about, "guardrail": guardrail.id, "missing": said.missing}
                    asked.reasons.append(Reason(Code.GUARDRAIL_ERROR, detail))
            self._ask_verdict(asked, row, compiled, subject, about)
        if not covered:
            asked.reasons.append(Reason(Code.NO_POLICY, {"action": self._action, "system": self._system["key"]}))
        return asked

    def _ask_verdict(self, asked: "_Policies", row: Value, compiled: CompiledPolicy, subject: Value, about: Value) -> None:
        standing = next(
            (
                held
                for held in subject["standings"]
                if (held["policy"], held["params_digest"], held["domain"]) == (row["digest"], row["params_digest"], row["domain"])
            ),
            None,
        )
        verdict = standing["verdict"] if standing is not None else None
        outcome = standing["outcome"] if standing is not None else None
        asked.rows.append({**about, "digest": row["digest"], "domain": row["domain"], "verdict": verdict, "outcome": outcome})
        if not compiled.rules:
            asked.reasons.append(Reason(Code.POLICY_HAS_NO_REQUIREMENTS, about))
            return
        if standing is None:
            code = Code.NO_VERDICT if subject["closed"] else Code.ROUTE_NOT_CLOSED
            asked.reasons.append(Reason(code, {**about, "subject": _cite(subject)}))
            return
        if self._is_overdue(standing, subject):
            asked.reasons.append(Reason(Code.VERDICT_OVERDUE, {**about, "subject": _cite(subject)}))
        asked.evidence += standing["evidence"]
        if standing["due_at"] is not None:
            asked.ends.append(standing["due_at"])
        if outcome == "pass":
            return
        failing = [*standing["blocking"], *standing["waivable"]]
        if not failing:
            asked.reasons.append(Reason(Code.NO_VERDICT, {**about, "subject": _cite(subject)}))
        for rule in standing["blocking"]:
            asked.reasons.append(Reason(OF_RESULT[rule["result"]], {**about, **rule}))
        for rule in standing["waivable"]:
            waiver = covering(subject["waivers"], row["policy"], compiled, rule)
            if waiver is None:
                asked.reasons.append(Reason(OF_RESULT[rule["result"]], {**about, **rule, "waivable": True}))
            else:
                asked.waivers.append({"policy": row["policy"], "rule": rule["rule"], "waiver": waiver["uid"]})
                asked.ends.append(waiver["ends_at"])

    def _is_overdue(self, standing: Value, subject: Value) -> bool:
        checked = standing["checked_at"]
        if standing["due_at"] is not None and standing["due_at"] <= self._stamp:
            return True
        urgent = subject["urgent_at"]
        if urgent is not None and urgent > checked:
            return True
        changed = subject["changed_at"]
        if changed <= checked:
            return False
        # A clock that was set back makes news look as if it came later than now: nobody waits for it.
        waited = (self._at - datetime.fromisoformat(changed)).total_seconds()
        return not 0 <= waited < GRACE_SECONDS


class _Policies:
    """What the policies said, as it is gathered."""

    def __init__(self) -> None:
        self.reasons: list[Reason] = []
        self.rows: list[Value] = []
        self.evidence: list[str] = []
        self.waivers: list[Value] = []
        self.ends: list[str] = []

    @property
    def policies(self) -> tuple[Value, ...]:
        return tuple(self.rows)

    @property
    def waived(self) -> tuple[Value, ...]:
        return tuple(self.waivers)


def covering(waivers: Sequence[Value], policy: str, compiled: CompiledPolicy, rule: Value) -> Value | None:
    """Return the waiver that covers a rule's failure: the same rule word for word, of one comparison, and nothing worse measured."""
    own = next((held for held in compiled.rules if held.id == rule["rule"]), None)
    if own is None or rule["measured"] is None or not own.can_be_waived:
        return None
    measured = Decimal(rule["measured"])
    for waiver in waivers:
        if (waiver["policy"], waiver["rule"], waiver["rule_digest"]) != (policy, own.id, own.digest):
            continue
        limit = Decimal(waiver["measured"])
        if measured >= limit if waiver["floor"] else measured <= limit:
            return waiver
    return None


def _when(compiled: CompiledPolicy, values: Mapping[str, Any]) -> tuple[Answer, str]:
    if compiled.applies_when is None:
        return Answer.TRUE, ""
    found = compiled.applies_when.evaluate(values)
    return found.answer, found.missing


def _denied(reasons: Iterable[Reason], policies: Iterable[Value] = ()) -> Judgement:
    return Judgement(False, _ordered(reasons), tuple(policies))


def _ordered(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda reason: ORDER[reason.code]))


def _each(parts: Iterable[Sequence[Value]]) -> tuple[Value, ...]:
    """Return the parts joined, each value once."""
    found: list[Value] = []
    for part in parts:
        found += [value for value in part if value not in found]
    return tuple(found)


def _cite(subject: Value) -> str:
    return f"{subject['key']}@{subject['version']}"
