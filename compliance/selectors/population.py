"""The population report: every row of a governed table has its entry, and every such entry its row.

A change that went past the services, by whatever road, leaves a row without an event or an event without a row, and is named
here.
Each table is either tied to the actions that tell of its rows, or stands in `EXEMPT` with its reason; a test walks all models.
"""

from collections.abc import Mapping
from typing import NamedTuple

from django.db import connection

from compliance.vocabulary import GrantMove

SHOWN = 20

# Rows and entries, each by what they are about, counted; what differs is a finding.
_COMPARE = """
WITH rows_by_target AS ({rows}),
events_by_target AS ({events})
SELECT coalesce(sum(r.n), 0), coalesce(sum(e.n), 0), count(*) FILTER (WHERE r.n IS DISTINCT FROM e.n),
    (array_agg(target ORDER BY target) FILTER (WHERE r.n IS DISTINCT FROM e.n))[1:%s]
FROM (SELECT target, n FROM rows_by_target WHERE n > 0) r
FULL JOIN (SELECT target, n FROM events_by_target WHERE n > 0) e USING (target)
"""
_EVENTS = """
SELECT target_id AS target, {weight} AS n FROM compliance_ledgerentry
WHERE action = ANY (%s) AND target_kind = %s GROUP BY target_id
"""
_ROWS = "SELECT {target} AS target, count(*) AS n FROM {source} GROUP BY 1"
_NUMBER_IN_ENTRY = "sum((convert_from(content, 'UTF8')::jsonb -> 'new' ->> 'observations')::bigint)"
_ROLES_IN_ENTRY = (
    "sum(CASE action WHEN 'role.given' THEN 1"
    " ELSE jsonb_array_length(convert_from(content, 'UTF8')::jsonb -> 'new' -> 'roles') END)"
)
_OF_REQUEST = "{table} own JOIN compliance_signoffrequest owner ON owner.id = own.request_id"
_FACTORS_IN_ENTRY = (
    "sum(CASE action WHEN 'factor.added' THEN 1 WHEN 'factor.removed' THEN -1"
    " ELSE -(convert_from(content, 'UTF8')::jsonb -> 'new' ->> 'removed')::bigint END)"
)


class Tie(NamedTuple):
    """How a table's rows are told of. `target` is SQL for the id that entries cite, over `source`; `weight` how many one tells of.

    No action means that no service writes this table yet: any row is a finding.
    """

    kind: str
    actions: tuple[str, ...]
    target: str
    source: str
    weight: str = "count(*)"


class PopulationLine(NamedTuple):
    """One table: how many rows, how many its entries tell of, and which ids differ (the first few of `differing`)."""

    table: str
    rows: int
    events: int
    differing: int
    examples: tuple[str, ...]


TIES: Mapping[str, Tie] = {
    "evaluations_subject": Tie("subject", ("subject.registered",), "key", "evaluations_subject"),
    "evaluations_subjectversion": Tie(
        "subject_version",
        ("subject_version.registered",),
        "owner.key || '@' || own.number",
        "evaluations_subjectversion own JOIN evaluations_subject owner ON owner.id = own.subject_id",
    ),
    "evaluations_aliasassignment": Tie("alias", ("alias.assigned",), "name_as_written", "evaluations_aliasassignment"),
    "evaluations_benchmark": Tie("benchmark", ("benchmark.registered",), "key", "evaluations_benchmark"),
    "evaluations_benchmarkversion": Tie(
        "benchmark_version",
        ("benchmark_version.registered",),
        "owner.key || '@' || own.version",
        "evaluations_benchmarkversion own JOIN evaluations_benchmark owner ON owner.id = own.benchmark_id",
    ),
    "evaluations_metric": Tie("metric", ("metric.registered",), "key", "evaluations_metric"),
    "evaluations_source": Tie("source", ("source.registered",), "key", "evaluations_source"),
    "evaluations_trustassignment": Tie(
        "source",
        ("trust.assigned",),
        "owner.key",
        "evaluations_trustassignment own JOIN evaluations_source owner ON owner.id = own.source_id",
    ),
    "evaluations_sourceschedule": Tie(
        "source",
        ("schedule.made",),
        "owner.key",
        "evaluations_sourceschedule own JOIN evaluations_source owner ON owner.id = own.source_id",
    ),
    "evaluations_refreshrun": Tie("refresh_run", ("refresh_run.opened",), "uid::text", "evaluations_refreshrun"),
    "evaluations_document": Tie("document", ("document.captured",), "digest", "evaluations_document"),
    "evaluations_evidence": Tie("evidence", ("evidence.recorded",), "uid::text", "evaluations_evidence"),
    "evaluations_observation": Tie(
        "evidence",
        ("evidence.recorded",),
        "owner.uid::text",
        "evaluations_observation own JOIN evaluations_evidence owner ON owner.id = own.evidence_id",
        weight=_NUMBER_IN_ENTRY,
    ),
    "evaluations_ruling": Tie(
        "evidence",
        ("evidence.disputed", "evidence.dispute_upheld", "evidence.dispute_dismissed", "evidence.retracted"),
        "owner.uid::text",
        "evaluations_ruling own JOIN evaluations_evidence owner ON owner.id = own.evidence_id",
    ),
    "policies_policy": Tie("policy", ("policy.registered",), "name", "policies_policy"),
    "policies_policyversion": Tie(
        "policy_version",
        ("policy_version.proposed",),
        "owner.name || '@' || own.number",
        "policies_policyversion own JOIN policies_policy owner ON owner.id = own.policy_id",
    ),
    "policies_policydraft": Tie("policy_draft", ("policy_draft.saved",), "uid::text", "policies_policydraft"),
    "policies_policyactivation": Tie(
        "policy_version",
        ("policy_version.activated",),
        "owner.name || '@' || version.number",
        "policies_policyactivation own JOIN policies_policyversion version ON version.id = own.version_id "
        "JOIN policies_policy owner ON owner.id = version.policy_id",
    ),
    "policies_unreadableversion": Tie(
        "policy_version",
        ("policy_version.found_unreadable",),
        "owner.name || '@' || version.number",
        "policies_unreadableversion own JOIN policies_policyversion version ON version.id = own.version_id "
        "JOIN policies_policy owner ON owner.id = version.policy_id",
    ),
    "policies_binding": Tie("binding", ("binding.recorded",), "sign_off_request::text", "policies_binding"),
    "policies_system": Tie("system", ("system.registered",), "key", "policies_system"),
    "policies_verdict": Tie("verdict", ("verdict.recorded",), "uid::text", "policies_verdict"),
    "policies_verdictmismatch": Tie(
        "verdict",
        ("verdict.mismatched",),
        "owner.uid::text",
        "policies_verdictmismatch own JOIN policies_verdict owner ON owner.id = own.verdict_id",
    ),
    "compliance_team": Tie("team", ("team.registered",), "key", "compliance_team"),
    "compliance_person": Tie("person", ("person.registered",), "id::text", "compliance_person"),
    "compliance_user": Tie("person", ("person.registered",), "person_id::text", "compliance_user"),
    "compliance_rolemembership": Tie(
        "person", ("person.registered", "role.given"), "person_id::text", "compliance_rolemembership", weight=_ROLES_IN_ENTRY
    ),
    "compliance_reauthentication": Tie(
        "person", ("reauthentication.recorded",), "person_id::text", "compliance_reauthentication"
    ),
    "compliance_signinghold": Tie("person", ("signing_hold.placed",), "person_id::text", "compliance_signinghold"),
    "socialaccount_socialaccount": Tie(
        "person",
        ("company_account.connected",),
        "owner.person_id::text",
        "socialaccount_socialaccount own JOIN compliance_user owner ON owner.id = own.user_id",
    ),
    "mfa_authenticator": Tie(
        "person",
        ("factor.added", "factor.removed", "factor.reset"),
        "owner.person_id::text",
        "mfa_authenticator own JOIN compliance_user owner ON owner.id = own.user_id",
        weight=_FACTORS_IN_ENTRY,
    ),
    "compliance_driftnotice": Tie(
        "grant",
        ("drift.noticed",),
        "owner.uid::text",
        "compliance_driftnotice own JOIN compliance_grant owner ON owner.id = own.grant_id",
    ),
    "compliance_servicetoken": Tie("token", ("token.created",), "id::text", "compliance_servicetoken"),
    "compliance_signingkey": Tie("signing_key", ("signing_key.announced",), "name || '+' || key_id", "compliance_signingkey"),
    "compliance_webhookendpoint": Tie("webhook", ("webhook.registered",), "uid::text", "compliance_webhookendpoint"),
    "compliance_signoffrequest": Tie("request", ("request.filed",), "uid::text", "compliance_signoffrequest"),
    "compliance_dossier": Tie(
        "request", ("dossier.recorded",), "owner.uid::text", _OF_REQUEST.format(table="compliance_dossier")
    ),
    "compliance_signoff": Tie("request", ("sign_off.given",), "owner.uid::text", _OF_REQUEST.format(table="compliance_signoff")),
    "compliance_requestcomment": Tie(
        "request", ("request.commented",), "owner.uid::text", _OF_REQUEST.format(table="compliance_requestcomment")
    ),
    "compliance_grant": Tie("grant", ("grant.made",), "uid::text", "compliance_grant"),
    "compliance_grantevent": Tie(
        "grant",
        tuple(f"grant.{move}" for move in GrantMove.values),
        "owner.uid::text",
        "compliance_grantevent own JOIN compliance_grant owner ON owner.id = own.grant_id",
    ),
    "compliance_waiver": Tie("waiver", ("waiver.recorded",), "uid::text", "compliance_waiver"),
    "compliance_waiverrevocation": Tie(
        "waiver",
        ("waiver.revoked",),
        "owner.uid::text",
        "compliance_waiverrevocation own JOIN compliance_waiver owner ON owner.id = own.waiver_id",
    ),
    "compliance_routinginventory": Tie("routing_inventory", ("routing.imported",), "uid::text", "compliance_routinginventory"),
    "compliance_decision": Tie("decision", ("decision.made",), "uid::text", "compliance_decision"),
    "compliance_upload": Tie("upload", ("upload.received",), "uid::text", "compliance_upload"),
    "compliance_auditexport": Tie("audit_export", ("audit_export.requested",), "uid::text", "compliance_auditexport"),
}

EXEMPT: Mapping[str, str] = {
    "evaluations_subjectversionmember": "under the digest of its subject version, which the entry cites",
    "evaluations_hostpace": "decides nothing",
    "evaluations_documentpart": "the document's own bytes, under the digest that the entry cites",
    "policies_factsdocument": "under the facts digest that the verdict's entry cites",
    "policies_standing": "a pointer to the newest verdict, which has its entry",
    "compliance_requestsystem": "under the digest of the dossier, which the entry cites",
    "compliance_quorumfactor": "under the digest of the dossier, which the entry cites",
    "compliance_seat": "each is filled by a signature that has its entry; the entry of the completed request names who sits where",
    "compliance_grantsystem": "named in the entry of the grant that was made",
    "compliance_decisionbody": "under the digest that the entries of its decisions cite",
    "compliance_personname": "made to be erased; entries hold the commitment to it",
    "compliance_idempotencykey": "says what was answered to a request whose own entries stand",
    "compliance_outboxmessage": "tells of events that have their entries; dead letters and replays have their own",
    "compliance_offlinebundle": "the newest of its system; each that was made or handed out has its entry",
    "compliance_servicebeat": "decides nothing",
    "compliance_grantreview": "what was looked at last; what a review does has its entries",
    "compliance_ledgerentry": "the log itself; see the line `sealing`",
    "compliance_ledgerpending": "the log itself; see the line `sealing`",
    "compliance_ledgerleaf": "the log itself; see the line `sealing`",
    "compliance_ledgertile": "derived from leaves; a checkpoint signs over it",
    "compliance_checkpoint": "signed over the log",
}

SEALING = "sealing"
_SEALING = """
SELECT (SELECT count(*) FROM compliance_ledgerentry),
    (SELECT count(*) FROM compliance_ledgerleaf) + (SELECT count(*) FROM compliance_ledgerpending),
    count(*), (array_agg(entry.uid::text ORDER BY entry.id))[1:%s]
FROM compliance_ledgerentry entry
LEFT JOIN compliance_ledgerleaf leaf ON leaf.entry_id = entry.id
LEFT JOIN compliance_ledgerpending pending ON pending.entry_id = entry.id
WHERE (leaf.entry_id IS NULL) = (pending.entry_id IS NULL)
"""


def population_report() -> list[PopulationLine]:
    """Return a line for each governed table, and one, `sealing`, that ties entries to leaves and to the queue.

    Reads whole tables, each in one statement; a change under way shows in neither or in both of its sides.
    """
    lines = [_compare(table, tie) for table, tie in TIES.items()]
    with connection.cursor() as cursor:
        cursor.execute(_SEALING, [SHOWN])
        rows, events, differing, examples = cursor.fetchone()
    lines.append(PopulationLine(SEALING, rows, events, differing, tuple(examples or ())))
    return lines


def _compare(table: str, tie: Tie) -> PopulationLine:
    rows = _ROWS.format(target=tie.target, source=tie.source)
    statement = _COMPARE.format(rows=rows, events=_EVENTS.format(weight=tie.weight))
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(tie.actions), tie.kind, SHOWN])
        counted, told, differing, examples = cursor.fetchone()
    return PopulationLine(table, int(counted), int(told), differing, tuple(examples or ()))
