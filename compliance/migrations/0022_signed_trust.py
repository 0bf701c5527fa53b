"""Requests for the trust in a source, and the lock that lets none come to stand without its signatures.

What comes with the product gives a source its first tier, by one service and by no signature; every other row is what a met quorum signed,
word for word, about that very source.
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
    ("source", "source"),
    ("break_glass_review", "break-glass review"),
]
NAME = "request_kind_is_known"

# What is not said of a source that is known already stays as it is: the proposal holds "" there.
TRUSTED = """
CREATE FUNCTION writegate_check_trust() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    paper bigint;
    asked jsonb;
    said text;
BEGIN
    IF NEW.sign_off_request IS NULL THEN
        IF current_setting('writegate.service', true) IS DISTINCT FROM 'load_bundle'
            OR EXISTS (SELECT FROM evaluations_trustassignment before WHERE before.source_id = NEW.source_id) THEN
            RAISE EXCEPTION 'writegate: the trust in a source needs the signatures of its quorum' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    SELECT request.dossier_id, convert_from(request.proposal, 'UTF8')::jsonb, request.reason INTO paper, asked, said
    FROM compliance_signoffrequest request WHERE request.uid = NEW.sign_off_request AND request.kind = 'source';
    PERFORM writegate_require_quorum(paper, 'the trust in a source');
    IF NEW.tier IS DISTINCT FROM asked ->> 'tier' OR NEW.reason IS DISTINCT FROM said OR NOT EXISTS (
        SELECT FROM evaluations_source vouching
        WHERE vouching.id = NEW.source_id AND vouching.key = asked ->> 'key'
            AND asked ->> 'title' IN ('', vouching.title)
            AND asked ->> 'publisher' IN ('', vouching.publisher)
            AND asked ->> 'url' IN ('', vouching.url)
    ) THEN
        RAISE EXCEPTION 'writegate: this is not the trust in a source that was signed' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER evaluations_trustassignment_signed BEFORE INSERT ON evaluations_trustassignment
    FOR EACH ROW EXECUTE FUNCTION writegate_check_trust();
"""
NOT_TRUSTED = """
DROP TRIGGER evaluations_trustassignment_signed ON evaluations_trustassignment;
DROP FUNCTION writegate_check_trust();
"""


class Migration(migrations.Migration):
    dependencies = [("compliance", "0021_offline_bundles"), ("evaluations", "0009_signed_trust")]

    operations = [
        migrations.RemoveConstraint(model_name="signoffrequest", name=NAME),
        migrations.AlterField(model_name="signoffrequest", name="kind", field=models.CharField(choices=KINDS, max_length=20)),
        migrations.AddConstraint(
            model_name="signoffrequest",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", [word for word, _ in KINDS])), name=NAME),
        ),
        migrations.RunSQL(TRUSTED, NOT_TRUSTED),
    ]
