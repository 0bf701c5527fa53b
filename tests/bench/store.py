"""Judge and store: N subject versions by one policy, from PostgreSQL. `python -m tests.bench.store N`."""

import csv
import io
import sys

from tests.bench.database import measured, prepare

HEADER = (
    "subject", "source", "provenance", "metric", "benchmark", "version", "value", "unit", "k", "n", "run_status", "run_ended_at",
)  # fmt: skip


def main(size: int) -> None:
    prepare()
    from evaluations.kernel.actor import system_job
    from evaluations.kernel.canonical import digest
    from evaluations.kernel.services import service_transaction
    from evaluations.models import AliasAssignment, Subject, SubjectVersion
    from evaluations.services.evidence import apply_import_files
    from policies.services.policies import propose_policy_version
    from policies.services.rejudging import judge_everywhere
    from tests.bench.judge import MEASURED, POLICY
    from tests.bench.world import register_world

    actor = system_job("bench")
    register_world(actor)
    policy_version = propose_policy_version(actor=actor, text=POLICY)
    keys = [f"bench-{size}-{number}" for number in range(size)]
    # In bulk and unrecorded: registering subjects is not what is measured.
    with service_transaction("bench"):
        subjects = Subject.objects.bulk_create(Subject(key=key, kind="model", title=key) for key in keys)
        versions = SubjectVersion.objects.bulk_create(
            SubjectVersion(subject=subject, number=1, pin=b"{}", digest=digest(subject.key), registered_by="bench")
            for subject in subjects
        )
        AliasAssignment.objects.bulk_create(
            AliasAssignment(name_as_written=version.subject.key, subject_version=version, assigned_by="bench")
            for version in versions
        )
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(HEADER)
    for key in keys:
        for metric, benchmark, value, k, n in MEASURED.values():
            unit = "usd" if metric.endswith("usd") else "percent"
            ended = "2026-11-20T00:00:00Z"
            writer.writerow(
                [key, "lab", "run_log", metric, benchmark, "1", "" if k is not None else value, unit, k, n, "complete", ended]
            )
    with service_transaction("bench"):
        stream = io.BytesIO(text.getvalue().encode())
        apply_import_files(actor=actor, files={f"bench-{size}.csv": stream}, max_bytes=2**30)
    ids = [version.pk for version in versions]

    # The first judgement of a process loads scipy.
    judge_everywhere(actor=actor, subject_version_ids=ids[:1], policy_versions=[policy_version])

    def work() -> str:
        judged = judge_everywhere(actor=actor, subject_version_ids=ids[1:], policy_versions=[policy_version])
        return f"{judged.new} new verdicts"

    measured(size, work)


if __name__ == "__main__":
    main(int(sys.argv[1]))
