"""Verdicts and standings: every write. Judging many subject versions by many policies is one service call, not a loop of calls."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.db import connection, transaction

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.bulk import copy_rows, execute_with_arrays
from evaluations.kernel.clock import now
from evaluations.kernel.services import service
from evaluations.models import SubjectVersion
from policies.language.compiled import CompiledPolicy
from policies.language.evaluator import Judgement, NoVerdict, judge
from policies.language.facts import NOTHING, Shared, facts_digest
from policies.models import PolicyVersion, Verdict
from policies.selectors.bindings import JudgedKey, params_digest_of
from policies.selectors.facts import Asked, FactsGatherer
from policies.selectors.policies import compile_versions
from policies.selectors.standings import Held, held_standings, to_judge
from policies.signals import standings_moved

PAIRS_AT_ONCE = 5_000
"""So many standings are looked at in one transaction: a second or two, in which nobody else judges these subject versions."""
_LOCKED_TOGETHER = 64
"""So many neighbouring subject versions share one lock."""

_LOCK = """
SELECT pg_advisory_xact_lock(hashtextextended('judge', place)) FROM (SELECT unnest(%s::bigint[]) AS place) AS places
"""
# What is long comes by COPY in its binary form: a statement over arrays of documents would sort and spill them before it stores them.
_COPY_FACTS = "COPY policies_factsdocument (digest, content, recorded_at) FROM STDIN (FORMAT BINARY)"
_FACTS_TYPES = ("text", "bytea", "timestamptz")
_COPY_VERDICTS = """
COPY policies_verdict (uid, policy_version_id, params_digest, subject_version_id, domain, outcome, result, blocking, waivable, core,
    core_digest, facts_id, semantics, as_of, known_at, judged_by, recorded_at) FROM STDIN (FORMAT BINARY)
"""
_VERDICT_TYPES = (
    "uuid", "int8", "text", "int8", "text", "text", "text", "varchar[]", "varchar[]", "bytea", "text", "int8", "int2", "timestamptz",
    "timestamptz", "text", "timestamptz",
)  # fmt: skip
_STAND = """
INSERT INTO policies_standing (policy_version_id, params_digest, subject_version_id, domain, verdict_id, checked_at, due_at)
SELECT v.policy_version_id, v.params_digest, v.subject_version_id, v.domain, v.id, %s, given.due_at
FROM unnest(%s::uuid[], %s::timestamptz[]) AS given(uid, due_at) JOIN policies_verdict v ON v.uid = given.uid
ON CONFLICT (policy_version_id, params_digest, subject_version_id, domain)
DO UPDATE SET verdict_id = excluded.verdict_id, checked_at = excluded.checked_at, due_at = excluded.due_at
"""
# A verdict that does not match what it was judged on is no reason to leave things as they are.
_RESTS_ON = """
SELECT s.id, f.digest FROM policies_standing s JOIN policies_verdict v ON v.id = s.verdict_id
JOIN policies_factsdocument f ON f.id = v.facts_id
WHERE s.id = ANY(%s) AND NOT EXISTS (SELECT FROM policies_verdictmismatch m WHERE m.verdict_id = v.id)
"""
_KEPT = """
SELECT f.digest, max(f.id) FROM policies_factsdocument f WHERE f.digest = ANY(%s) AND NOT EXISTS (
    SELECT FROM policies_verdictmismatch m JOIN policies_verdict v ON v.id = m.verdict_id WHERE v.facts_id = f.id)
GROUP BY f.digest
"""
_DISTRUST = """
UPDATE policies_standing SET due_at = checked_at
WHERE verdict_id = ANY(%s) AND (due_at IS NULL OR due_at > checked_at)
"""
_CHECKED = "UPDATE policies_standing SET checked_at = %s WHERE id = ANY(%s::bigint[])"
_DUE = """
UPDATE policies_standing s SET checked_at = %s, due_at = given.due_at
FROM unnest(%s::bigint[], %s::timestamptz[]) AS given(id, due_at) WHERE s.id = given.id
"""


class Judged(NamedTuple):
    """How many pairs of a subject version and a policy (in a domain, under its parameters) were judged, and for how many of them the
    verdict is a new one."""

    judged: int
    new: int


class _Fresh(NamedTuple):
    key: JudgedKey
    compiled: CompiledPolicy
    version: SubjectVersion
    judgement: Judgement
    facts: bytes
    facts_digest: str


@service(refused="verdict.refused")
def judge_subject_versions(
    *,
    actor: Actor,
    policy_version: PolicyVersion,
    versions: Sequence[SubjectVersion],
    domain: str,
    tightened: Mapping[str, Decimal] = NOTHING,
) -> Judged:
    """Judge subject versions (with `subject` loaded) by one policy version in one domain, now, and move their standings.

    `tightened` holds the parameters that bindings make stricter; the standing is kept under the digest of all parameters as they
    then are. Raises `LooserParameter`.
    """
    (compiled,) = compile_versions([policy_version])
    key = JudgedKey(policy_version, domain, tightened, params_digest_of(compiled, tightened))
    return _apply_judge(actor=actor, keys=[key], versions=versions, fully=True)


@service(refused="verdict.refused")
def judge_batch(*, actor: Actor, keys: Sequence[JudgedKey], versions: Sequence[SubjectVersion], fully: bool = False) -> Judged:
    """Judge subject versions (with `subject` loaded) under many keys, now, and move their standings.

    Judged is what was never judged, what has grown old, and what a fact recorded since it was last looked at may have changed; with
    `fully`, everything. The same facts write no new verdict: only the standing's `checked_at` and `due_at` move. Judging twice is
    harmless. New verdicts are announced after commit.
    """
    return _apply_judge(actor=actor, keys=keys, versions=versions, fully=fully)


def apply_distrust(*, verdicts: Sequence[Verdict]) -> int:
    """Have nothing rest on these verdicts any more, inside an open service transaction; return how many standings that concerned.

    A standing on one is due from here on, which denies whoever asks, until it is judged anew: then from facts kept anew.
    """
    # A judge who looked before would else move the standing to its old instant.
    _lock([verdict.subject_version_id for verdict in verdicts])
    with connection.cursor() as cursor:
        cursor.execute(_DISTRUST, [[verdict.pk for verdict in verdicts]])
        return cursor.rowcount


def _lock(version_ids: Sequence[int]) -> None:
    # What is read after this lock is judged and stored before the next judge of these subject versions reads: older knowledge
    # never overwrites newer. Neighbours share a lock, taken in one order.
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [sorted({pk // _LOCKED_TOGETHER for pk in version_ids})])


def _apply_judge(*, actor: Actor, keys: Sequence[JudgedKey], versions: Sequence[SubjectVersion], fully: bool) -> Judged:
    _lock([version.pk for version in versions])
    compiled = compile_versions([key.policy_version for key in keys])
    moment = now()
    held = held_standings(keys, versions)
    wanted, unconcerned = to_judge(keys, compiled, versions, held, at=moment, fully=fully)
    fresh, same = _judge_pairs(keys, compiled, versions, wanted, held, moment)
    _touch([*unconcerned, *(item for item, due_at in same if due_at == item.due_at)], moment)
    _move_due([(item, due_at) for item, due_at in same if due_at != item.due_at], moment)
    if fresh:
        _store(actor, fresh, moment)
    return Judged(sum(len(places) for places in wanted.values()), len(fresh))


def _judge_pairs(
    keys: Sequence[JudgedKey],
    compiled: Sequence[CompiledPolicy],
    versions: Sequence[SubjectVersion],
    wanted: Mapping[int, Sequence[int]],
    held: Mapping[tuple[int, int], Held],
    moment: datetime,
) -> tuple[list[_Fresh], list[tuple[Held, datetime | None]]]:
    """Judge the places (in `keys`) wanted of each subject version; return what is new, and what stands as it did, with its next due."""
    fresh: list[_Fresh] = []
    same: list[tuple[Held, datetime | None]] = []
    places = sorted({place for chosen in wanted.values() for place in chosen})
    if not places:
        return fresh, same
    at = {place: number for number, place in enumerate(places)}
    asked = [Asked(compiled[place], keys[place].domain, keys[place].tightened) for place in places]
    concerned = [version for version in versions if version.pk in wanted]
    gatherer = FactsGatherer(asked, concerned, known_at=moment)
    digests = _facts_digests([held[pk, place] for pk, chosen in wanted.items() for place in chosen if (pk, place) in held])
    for version in concerned:
        shared = Shared()
        for place in wanted[version.pk]:
            facts = gatherer.facts_of(version, at[place])
            try:
                judgement = judge(compiled[place], facts, as_of=moment, shared=shared)
            except NoVerdict:
                # An open route has no verdict at all, and whoever asks is denied for want of one.
                continue
            document = facts.to_document(judgement.reasons, shared)
            own = facts_digest(document)
            standing = held.get((version.pk, place))
            if standing is not None and digests.get(standing.pk) == own:
                same.append((standing, judgement.due_at))
            else:
                fresh.append(_Fresh(keys[place], compiled[place], version, judgement, document, own))
    return fresh, same


def _facts_digests(standings: Sequence[Held]) -> dict[int, str]:
    """Return, by standing, the digest of the facts it rests on; a standing on a verdict that does not match has none."""
    with connection.cursor() as cursor:
        cursor.execute(_RESTS_ON, [[item.pk for item in standings]])
        return dict(cursor.fetchall())


def _touch(standings: Sequence[Held], moment: datetime) -> None:
    # What has been looked at since anything was recorded about its subject need not say so again.
    ids = [item.pk for item in standings if item.behind]
    if ids:
        execute_with_arrays(_CHECKED, [moment, ids])


def _move_due(standings: Sequence[tuple[Held, datetime | None]], moment: datetime) -> None:
    if standings:
        execute_with_arrays(_DUE, [moment, [item.pk for item, _ in standings], [due_at for _, due_at in standings]])


def _announce(actor: Actor, subject_version_ids: list[int], verdict_uids: list[str]) -> None:
    asked_by = actor.asked_by

    def announce() -> None:
        standings_moved.send_robust(
            sender=Verdict,
            subject_version_ids=subject_version_ids,
            verdict_uids=verdict_uids,
            on_behalf_of=asked_by.as_value() if asked_by else None,
        )

    transaction.on_commit(announce, robust=True)


def _store(actor: Actor, fresh: Sequence[_Fresh], moment: datetime) -> None:
    uids = [uuid.uuid4() for _ in fresh]
    cores = [item.judgement.core_bytes() for item in fresh]
    core_digests = [facts_digest(core) for core in cores]
    facts_ids = _keep_facts({item.facts_digest: item.facts for item in fresh}, moment)
    copy_rows(
        _COPY_VERDICTS,
        _VERDICT_TYPES,
        (
            (
                uid, item.key.policy_version.pk, item.key.params_digest, item.version.pk, item.key.domain, str(item.judgement.outcome),
                str(item.judgement.result), list(item.judgement.blocking), list(item.judgement.waivable), core, core_digest,
                facts_ids[item.facts_digest], item.compiled.semantics, moment, moment, actor.reference, moment,
            )
            for uid, core, core_digest, item in zip(uids, cores, core_digests, fresh, strict=True)
        ),
    )  # fmt: skip
    execute_with_arrays(_STAND, [moment, uids, [item.judgement.due_at for item in fresh]])
    named = [str(uid) for uid in uids]
    _announce(actor, [item.version.pk for item in fresh], named)
    audit.record(
        *(
            audit.Event(
                action="verdict.recorded",
                actor=actor,
                target=("verdict", uid),
                new={
                    "outcome": str(item.judgement.outcome),
                    "subject_version": f"{item.version.subject.key}@{item.version.number}",
                    "policy_version": f"{item.compiled.name}@{item.key.policy_version.number}",
                    "domain": item.key.domain,
                    "as_of": moment,
                },
                digests={"core": core_digest, "facts": item.facts_digest, "policy": item.key.policy_version.digest},
            )
            for uid, core_digest, item in zip(named, core_digests, fresh, strict=True)
        )
    )


def _keep_facts(documents: Mapping[str, bytes], moment: datetime) -> dict[str, int]:
    """Keep facts documents that are not kept yet; return the row of each, by digest.

    A document names its subject version, whose lock is held: nobody else keeps the same one meanwhile. One on which a verdict rests
    that does not match is kept anew.
    """
    digests = list(documents)
    kept = _kept_facts(digests)
    missing = [digest for digest in digests if digest not in kept]
    if missing:
        copy_rows(_COPY_FACTS, _FACTS_TYPES, ((digest, documents[digest], moment) for digest in missing))
        kept |= _kept_facts(missing)
    return kept


def _kept_facts(digests: Sequence[str]) -> dict[str, int]:
    # One array instead of thousands of parameters.
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, [list(digests)])
        return dict(cursor.fetchall())
