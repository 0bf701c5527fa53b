"""Requests for a metric's definition and for a benchmark's version, and the lock that lets neither come to stand without its signatures.

What comes with the product is loaded by one service, and by no signature; every other row is what a met quorum signed, word for word.
"""

from django.db import migrations, models

KINDS = [
    ("grant", "grant"),
    ("renewal", "renewal"),
    ("reinstatement", "reinstatement"),
    ("recertification", "recertification"),
    ("waiver", "waiver"),
    ("activation", "policy activation"),
    ("binding", "binding"),
    ("ruling", "ruling"),
    ("metric", "metric"),
    ("benchmark", "benchmark"),
    ("break_glass_review", "break-glass review"),
]
NAME = "request_kind_is_known"

# Arguments: the request's kind, what it is called, and the columns that the proposal holds under their own names.
DEFINED = """
CREATE FUNCTION writegate_check_definition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stored constant jsonb := to_jsonb(NEW);
    paper bigint;
    asked jsonb;
BEGIN
    IF NEW.sign_off_request IS NULL THEN
        IF current_setting('writegate.service', true) IS DISTINCT FROM 'load_bundle' THEN
            RAISE EXCEPTION 'writegate: % needs the signatures of its quorum', TG_ARGV[1] USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    SELECT request.dossier_id, convert_from(request.proposal, 'UTF8')::jsonb INTO paper, asked
    FROM compliance_signoffrequest request WHERE request.uid = NEW.sign_off_request AND request.kind = TG_ARGV[0];
    PERFORM writegate_require_quorum(paper, TG_ARGV[1]);
    IF EXISTS (
        SELECT FROM unnest(string_to_array(TG_ARGV[2], ' ')) AS held(name)
        WHERE stored ->> held.name IS DISTINCT FROM asked ->> held.name
    ) OR (stored ? 'benchmark_id' AND NOT EXISTS (
        SELECT FROM evaluations_benchmark test WHERE test.id = (stored ->> 'benchmark_id')::bigint AND test.key = asked ->> 'benchmark'
    )) THEN
        RAISE EXCEPTION 'writegate: this is not % that was signed', TG_ARGV[1] USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER evaluations_metric_signed BEFORE INSERT ON evaluations_metric
    FOR EACH ROW EXECUTE FUNCTION writegate_check_definition(
        'metric', 'a metric', 'key title unit better level family population definition minimum maximum digest'
    );
CREATE TRIGGER evaluations_benchmarkversion_signed BEFORE INSERT ON evaluations_benchmarkversion
    FOR EACH ROW EXECUTE FUNCTION writegate_check_definition(
        'benchmark', 'a benchmark version', 'version harness split exposure tasks data_digest metrics notes'
    );
"""
NOT_DEFINED = """
DROP TRIGGER evaluations_benchmarkversion_signed ON evaluations_benchmarkversion;
DROP TRIGGER evaluations_metric_signed ON evaluations_metric;
DROP FUNCTION writegate_check_definition();
"""


class Migration(migrations.Migration):
    dependencies = [("compliance", "0018_source_notices"), ("evaluations", "0008_signed_definitions")]

    operations = [
        migrations.RemoveConstraint(model_name="signoffrequest", name=NAME),
        migrations.AlterField(model_name="signoffrequest", name="kind", field=models.CharField(choices=KINDS, max_length=20)),
        migrations.AddConstraint(
            model_name="signoffrequest",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", [word for word, _ in KINDS])), name=NAME),
        ),
        migrations.RunSQL(DEFINED, NOT_DEFINED),
    ]
