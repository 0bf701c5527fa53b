"""Verdicts and standings: every write. Judging many subject versions is one service call on a set, not a loop of calls."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection, transaction

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.bulk import execute_with_arrays
from evaluations.kernel.clock import now
from evaluations.kernel.services import service
from evaluations.models import SubjectVersion
from policies.language.compiled import CompiledPolicy
from policies.language.evaluator import Judgement, NoVerdict, judge
from policies.language.facts import NOTHING, facts_digest
from policies.models import PolicyVersion, Standing, Verdict
from policies.selectors.bindings import params_digest_of
from policies.selectors.facts import gather_facts
from policies.selectors.policies import compile_version
from policies.signals import standings_moved

JUDGED_AT_ONCE = 1_000

# Long arrays travel in binary form (%b): as text, every byte of theirs would be written out and read again.
_INSERT = """
WITH given AS (
    SELECT * FROM unnest(%(uids)s::uuid[], %(subjects)s::bigint[], %(outcomes)b::text[], %(results)b::text[],
        %(blocking)b::text[], %(waivable)b::text[], %(cores)b::bytea[], %(core_digests)b::text[],
        %(facts_digests)b::text[], %(facts)b::bytea[], %(due)s::timestamptz[])
    AS given(uid, subject_id, outcome, result, blocking, waivable, core, core_digest, facts_digest, facts, due_at)
), new_facts AS (
    INSERT INTO policies_factsdocument (digest, content, recorded_at)
    SELECT DISTINCT ON (facts_digest) facts_digest, facts, %(moment)s FROM given
    ON CONFLICT (digest) DO NOTHING
    RETURNING id, digest
), all_facts AS (
    SELECT id, digest FROM new_facts
    UNION SELECT f.id, f.digest FROM policies_factsdocument f JOIN given ON f.digest = given.facts_digest
), verdict AS (
    INSERT INTO policies_verdict (uid, policy_version_id, params_digest, subject_version_id, domain, outcome, result, blocking,
        waivable, core, core_digest, facts_id, semantics, as_of, known_at, judged_by, recorded_at)
    SELECT g.uid, %(policy_version)s, %(params_digest)s, g.subject_id, %(domain)s, g.outcome, g.result,
        string_to_array(g.blocking, ' '), string_to_array(g.waivable, ' '), g.core, g.core_digest, f.id, %(semantics)s,
        %(moment)s, %(moment)s, %(judged_by)s, %(moment)s
    FROM given g JOIN all_facts f ON f.digest = g.facts_digest
    RETURNING id, uid, subject_version_id
)
INSERT INTO policies_standing (policy_version_id, params_digest, subject_version_id, domain, verdict_id, checked_at, due_at)
SELECT %(policy_version)s, %(params_digest)s, v.subject_version_id, %(domain)s, v.id, %(moment)s, g.due_at
FROM verdict v JOIN given g ON g.uid = v.uid
ON CONFLICT (policy_version_id, params_digest, subject_version_id, domain)
DO UPDATE SET verdict_id = excluded.verdict_id, checked_at = excluded.checked_at, due_at = excluded.due_at
"""
_CHECKED = """
UPDATE policies_standing s SET checked_at = %s, due_at = given.due_at
FROM unnest(%s::bigint[], %s::timestamptz[]) AS given(id, due_at) WHERE s.id = given.id
"""


class Judged(NamedTuple):
    """How many subject versions were judged, and for how many of them the verdict is a new one."""

    judged: int
    new: int


class _Judgement(NamedTuple):
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
    """Judge subject versions (with `subject` loaded) in one domain, now, and move their standings.

    `tightened` holds the parameters that bindings make stricter; the standing is kept under the digest of all parameters as they
    then are. The same facts write no new verdict: only the standing's `checked_at` and `due_at` move. Judging twice is harmless.
    New verdicts are announced after commit. Raises `LooserParameter`.
    """
    with connection.cursor() as cursor:
        # What is read after this lock is judged and stored before the next judge of this policy reads: older knowledge never
        # overwrites newer.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('judge', %s))", [policy_version.pk])
    compiled = compile_version(policy_version)
    moment = now()
    params_digest = params_digest_of(compiled, tightened)
    standings = _standings(policy_version, params_digest, versions, domain)
    fresh: list[_Judgement] = []
    unchanged: list[tuple[int, datetime | None]] = []
    for version, facts in gather_facts(compiled, versions, domain=domain, known_at=moment, tightened=tightened):
        try:
            judgement = judge(compiled, facts, as_of=moment)
        except NoVerdict:
            # An open route has no verdict at all, and whoever asks is denied for want of one.
            continue
        document = facts.to_document(judgement.reasons)
        own = facts_digest(document)
        standing = standings.get(version.pk)
        if standing is not None and standing[1] == own:
            unchanged.append((standing[0], judgement.due_at))
        else:
            fresh.append(_Judgement(version, judgement, document, own))
    _touch(unchanged, moment)
    if fresh:
        _store(actor, policy_version, compiled, params_digest, domain, fresh, moment)
    return Judged(judged=len(versions), new=len(fresh))


def _standings(
    policy_version: PolicyVersion, params_digest: str, versions: Sequence[SubjectVersion], domain: str
) -> dict[int, tuple[int, str]]:
    """Return, by subject version, the standing's key and the digest of the facts it rests on."""
    rows = Standing.objects.filter(
        policy_version=policy_version, params_digest=params_digest, domain=domain, subject_version__in=versions
    ).values_list("subject_version_id", "pk", "verdict__facts__digest")
    return {version_id: (pk, facts) for version_id, pk, facts in rows}


def _touch(unchanged: Sequence[tuple[int, datetime | None]], moment: datetime) -> None:
    if unchanged:
        execute_with_arrays(_CHECKED, [moment, [pk for pk, _ in unchanged], [due for _, due in unchanged]])


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


def _store(
    actor: Actor,
    policy_version: PolicyVersion,
    compiled: CompiledPolicy,
    params_digest: str,
    domain: str,
    fresh: Sequence[_Judgement],
    moment: datetime,
) -> None:
    uids = [str(uuid.uuid4()) for _ in fresh]
    cores = [item.judgement.core_bytes() for item in fresh]
    core_digests = [facts_digest(core) for core in cores]
    parameters: dict[str, Any] = {
        "uids": uids,
        "subjects": [item.version.pk for item in fresh],
        "outcomes": [str(item.judgement.outcome) for item in fresh],
        "results": [str(item.judgement.result) for item in fresh],
        # Rule ids hold no spaces, so a list of them travels as one text.
        "blocking": [" ".join(item.judgement.blocking) for item in fresh],
        "waivable": [" ".join(item.judgement.waivable) for item in fresh],
        "cores": cores,
        "core_digests": core_digests,
        "facts_digests": [item.facts_digest for item in fresh],
        "facts": [item.facts for item in fresh],
        "due": [item.judgement.due_at for item in fresh],
        "moment": moment,
        "policy_version": policy_version.pk,
        "params_digest": params_digest,
        "domain": domain,
        "semantics": compiled.semantics,
        "judged_by": actor.reference,
    }
    execute_with_arrays(_INSERT, parameters)
    _announce(actor, parameters["subjects"], uids)
    audit.record(
        *(
            audit.Event(
                action="verdict.recorded",
                actor=actor,
                target=("verdict", uid),
                new={
                    "outcome": str(item.judgement.outcome),
                    "subject_version": f"{item.version.subject.key}@{item.version.number}",
                    "policy_version": f"{compiled.name}@{policy_version.number}",
                    "domain": domain,
                    "as_of": moment,
                },
                digests={"core": core_digest, "facts": item.facts_digest, "policy": policy_version.digest},
            )
            for uid, core_digest, item in zip(uids, core_digests, fresh, strict=True)
        )
    )
