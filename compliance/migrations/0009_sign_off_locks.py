"""Locks, guards and grants of requests, signatures and grants; and the rule of the quorum, held by the database whatever the road.

- nobody signs her own request: a check on her row, whose `requester` a foreign key holds to the request's;
- a signature is on the present dossier of an open request, by an active account that showed a second factor a short while before, with
  roles that somebody else gave, and by nobody on whose signing a hold stands;
- a seat is filled by a signature that approves and is the person's last word; a person sits once on a dossier;
- a grant becomes active, a waiver, a policy version, a binding or a ruling comes into force, only where every place of every factor of the
  present dossier of an open request is filled and nobody's last word on it is a rejection: so nothing is done twice, or later, on the
  same signatures;
- a grant reaches what its request asks for, and no system more.
"""

from django.db import migrations

FACTS = [
    "compliance_requestsystem",
    "compliance_dossier",
    "compliance_quorumfactor",
    "compliance_signoff",
    "compliance_seat",
    "compliance_requestcomment",
    "compliance_grantsystem",
    "compliance_grantevent",
    "compliance_waiver",
    "compliance_waiverrevocation",
]
STATES = ["compliance_signoffrequest", "compliance_grant"]

LOCK_FACT = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION writegate_refuse_change();
CREATE TRIGGER {table}_by_service BEFORE INSERT ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT ON {table} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNLOCK_FACT = """
DROP TRIGGER {table}_append_only ON {table};
DROP TRIGGER {table}_by_service ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {table} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""
GUARD_STATE = """
CREATE TRIGGER {table}_by_service BEFORE INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON {table} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNGUARD_STATE = """
DROP TRIGGER {table}_by_service ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {table} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""

QUORUM = """
CREATE FUNCTION writegate_quorum_is_met(asked bigint) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (
            SELECT FROM compliance_signoffrequest
            WHERE dossier_id = asked AND status = 'open' AND clock_timestamp() < expires_at
        )
        AND EXISTS (SELECT FROM compliance_quorumfactor WHERE dossier_id = asked)
        AND NOT EXISTS (
            SELECT FROM compliance_quorumfactor factor
            WHERE factor.dossier_id = asked
                AND (SELECT count(*) FROM compliance_seat seat WHERE seat.factor_id = factor.id) < factor.approve
        )
        AND NOT EXISTS (
            SELECT FROM compliance_signoff own
            WHERE own.dossier_id = asked AND own.meaning = 'rejected' AND NOT EXISTS (
                SELECT FROM compliance_signoff later
                WHERE later.request_id = own.request_id AND later.person_id = own.person_id AND later.id > own.id
            )
        )
$$;

CREATE FUNCTION writegate_require_quorum(asked bigint, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF asked IS NULL OR NOT writegate_quorum_is_met(asked) THEN
        RAISE EXCEPTION 'writegate: % needs the signatures of its quorum', what USING ERRCODE = 'check_violation';
    END IF;
END
$$;
"""
NO_QUORUM = """
DROP FUNCTION writegate_require_quorum(bigint, text);
DROP FUNCTION writegate_quorum_is_met(bigint);
"""

REQUEST = """
CREATE FUNCTION writegate_keep_request() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved constant text[] := '{status,dossier_id,expires_at,closed_at,closed_because}';
BEGIN
    IF OLD.status <> 'open' THEN
        RAISE EXCEPTION 'writegate: a closed request stays as it is' USING ERRCODE = 'check_violation';
    END IF;
    IF (to_jsonb(NEW) - moved) <> (to_jsonb(OLD) - moved) OR (OLD.dossier_id IS NOT NULL AND NEW.expires_at <> OLD.expires_at) THEN
        RAISE EXCEPTION 'writegate: what a request asks for stays as it is' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.dossier_id IS DISTINCT FROM OLD.dossier_id AND NOT EXISTS (
        SELECT FROM compliance_dossier fresh WHERE fresh.id = NEW.dossier_id AND fresh.request_id = NEW.id AND fresh.number > coalesce(
            (SELECT number FROM compliance_dossier WHERE id = OLD.dossier_id), 0
        )
    ) THEN
        RAISE EXCEPTION 'writegate: a dossier is followed by a later one of the same request' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compliance_signoffrequest_keep BEFORE UPDATE ON compliance_signoffrequest
    FOR EACH ROW EXECUTE FUNCTION writegate_keep_request();
"""
NO_REQUEST = """
DROP TRIGGER compliance_signoffrequest_keep ON compliance_signoffrequest;
DROP FUNCTION writegate_keep_request();
"""

SIGN_OFF = """
ALTER TABLE compliance_signoff ADD CONSTRAINT sign_off_repeats_the_requester
    FOREIGN KEY (request_id, requester_id) REFERENCES compliance_signoffrequest (id, requester_id);

CREATE FUNCTION writegate_check_sign_off() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked compliance_signoffrequest%ROWTYPE;
    signed compliance_dossier%ROWTYPE;
    refused text;
BEGIN
    SELECT * INTO asked FROM compliance_signoffrequest WHERE id = NEW.request_id;
    SELECT * INTO signed FROM compliance_dossier WHERE id = NEW.dossier_id;
    refused := CASE
        WHEN asked.status <> 'open' THEN 'the request is closed'
        WHEN clock_timestamp() >= asked.expires_at THEN 'the request has expired'
        WHEN NEW.dossier_id IS DISTINCT FROM asked.dossier_id THEN 'this is not the present dossier'
        WHEN NEW.dossier_digest <> signed.digest THEN 'this is not the digest of the dossier'
        WHEN NEW.person_id = ANY (signed.excluded) THEN 'the person had a part in what is signed'
        WHEN NOT EXISTS (
            SELECT FROM compliance_user WHERE id = NEW.account_id AND person_id = NEW.person_id AND is_active
        ) THEN 'the account is not an active one of this person'
        WHEN NOT EXISTS (
            SELECT FROM compliance_reauthentication
            WHERE id = NEW.reauthentication_id AND user_id = NEW.account_id AND method IN ('totp', 'webauthn')
                AND at > clock_timestamp() - make_interval(mins => coalesce(
                    (convert_from(signed.content, 'UTF8')::jsonb #>> '{quorum,reauthenticate_within_minutes}')::int, 60
                ), secs => 5)
        ) THEN 'the account did not show a second factor a short while before'
        WHEN EXISTS (
            SELECT FROM compliance_signinghold WHERE person_id = NEW.person_id AND lifted_at IS NULL
        ) THEN 'a hold stands on the signing of this person'
        WHEN EXISTS (
            SELECT FROM unnest(NEW.roles) AS claimed(role) WHERE NOT EXISTS (
                SELECT FROM compliance_rolemembership held
                WHERE held.person_id = NEW.person_id AND held.role = claimed.role
                    AND held.starts_at <= clock_timestamp() AND (held.ends_at IS NULL OR held.ends_at > clock_timestamp())
                    AND held.given_by NOT IN ('person:' || NEW.person_id, 'person:' || asked.requester_id)
            )
        ) THEN 'a role is not held, or was given by the requester or the signer'
    END;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'writegate: sign-off refused: %', refused USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compliance_signoff_check BEFORE INSERT ON compliance_signoff
    FOR EACH ROW EXECUTE FUNCTION writegate_check_sign_off();
"""
NO_SIGN_OFF = """
DROP TRIGGER compliance_signoff_check ON compliance_signoff;
DROP FUNCTION writegate_check_sign_off();
ALTER TABLE compliance_signoff DROP CONSTRAINT sign_off_repeats_the_requester;
"""

SEAT = """
CREATE FUNCTION writegate_check_seat() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM compliance_signoff own
        JOIN compliance_quorumfactor factor ON factor.id = NEW.factor_id AND factor.dossier_id = NEW.dossier_id
        JOIN compliance_signoffrequest asked ON asked.id = own.request_id AND asked.dossier_id = NEW.dossier_id AND asked.status = 'open'
        WHERE own.id = NEW.sign_off_id AND own.dossier_id = NEW.dossier_id AND own.person_id = NEW.person_id
            AND own.meaning IN ('approved', 'accepted_residual_risk') AND factor.role = ANY (own.roles)
            AND NEW.number BETWEEN 1 AND factor.approve
            AND NOT EXISTS (
                SELECT FROM compliance_signoff later
                WHERE later.request_id = own.request_id AND later.person_id = own.person_id AND later.id > own.id
            )
    ) THEN
        RAISE EXCEPTION 'writegate: this signature cannot fill this place' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compliance_seat_check BEFORE INSERT ON compliance_seat
    FOR EACH ROW EXECUTE FUNCTION writegate_check_seat();
"""
NO_SEAT = """
DROP TRIGGER compliance_seat_check ON compliance_seat;
DROP FUNCTION writegate_check_seat();
"""

GRANT = """
CREATE FUNCTION writegate_check_grant() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved constant text[] := '{status,cause,dossier_id,begun_at,recertify_by}';
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'active' THEN
            RAISE EXCEPTION 'writegate: a grant begins its life active' USING ERRCODE = 'check_violation';
        END IF;
        IF NEW.kind = 'standing' THEN
            PERFORM writegate_require_quorum(NEW.dossier_id, 'a grant');
            IF NOT EXISTS (
                SELECT FROM compliance_signoffrequest asked, convert_from(asked.proposal, 'UTF8') AS content
                WHERE asked.id = NEW.request_id AND asked.dossier_id = NEW.dossier_id AND asked.kind IN ('grant', 'renewal')
                    AND asked.requester_id = NEW.requester_id AND asked.subject_version_id = NEW.subject_version_id
                    AND asked.grant_id IS NOT DISTINCT FROM NEW.renews_id
                    AND content::jsonb -> 'actions' = to_jsonb(NEW.actions)
                    AND (content::jsonb ->> 'ends_at')::timestamptz = NEW.ends_at
                    AND coalesce((content::jsonb ->> 'starts_at')::timestamptz, NEW.starts_at) <= NEW.starts_at
            ) THEN
                RAISE EXCEPTION 'writegate: this is not the grant that was signed' USING ERRCODE = 'check_violation';
            END IF;
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.status IN ('expired', 'revoked') THEN
        RAISE EXCEPTION 'writegate: a grant that has ended stays ended' USING ERRCODE = 'check_violation';
    END IF;
    IF (to_jsonb(NEW) - moved) <> (to_jsonb(OLD) - moved) THEN
        RAISE EXCEPTION 'writegate: what a grant permits stays as it was signed' USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.status = 'active' AND OLD.status <> 'active') OR NEW.dossier_id IS DISTINCT FROM OLD.dossier_id
        OR NEW.recertify_by IS DISTINCT FROM OLD.recertify_by
    THEN
        IF NEW.kind <> 'standing' OR NEW.dossier_id IS NOT DISTINCT FROM OLD.dossier_id THEN
            RAISE EXCEPTION 'writegate: a grant comes back, or is certified anew, by a fresh dossier alone'
                USING ERRCODE = 'check_violation';
        END IF;
        PERFORM writegate_require_quorum(NEW.dossier_id, 'a grant');
        IF NOT EXISTS (
            SELECT FROM compliance_signoffrequest asked
            WHERE asked.dossier_id = NEW.dossier_id AND asked.grant_id = NEW.id
                AND asked.kind = CASE OLD.status WHEN 'suspended' THEN 'reinstatement' ELSE 'recertification' END
        ) THEN
            RAISE EXCEPTION 'writegate: the dossier is about another grant' USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compliance_grant_check BEFORE INSERT OR UPDATE ON compliance_grant
    FOR EACH ROW EXECUTE FUNCTION writegate_check_grant();

CREATE FUNCTION writegate_check_grant_system() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM compliance_grantevent WHERE grant_id = NEW.grant_id) THEN
        RAISE EXCEPTION 'writegate: a grant that is made reaches no further system' USING ERRCODE = 'check_violation';
    END IF;
    IF NOT EXISTS (
        SELECT FROM compliance_grant made
        WHERE made.id = NEW.grant_id AND (made.kind = 'break_glass' OR EXISTS (
            SELECT FROM compliance_requestsystem asked WHERE asked.request_id = made.request_id AND asked.system_id = NEW.system_id
        ))
    ) THEN
        RAISE EXCEPTION 'writegate: nobody signed for this system' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compliance_grantsystem_check BEFORE INSERT ON compliance_grantsystem
    FOR EACH ROW EXECUTE FUNCTION writegate_check_grant_system();
"""
NO_GRANT = """
DROP TRIGGER compliance_grantsystem_check ON compliance_grantsystem;
DROP FUNCTION writegate_check_grant_system();
DROP TRIGGER compliance_grant_check ON compliance_grant;
DROP FUNCTION writegate_check_grant();
"""

WAIVER = """
CREATE FUNCTION writegate_check_waiver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM writegate_require_quorum(NEW.dossier_id, 'a waiver');
    IF NOT EXISTS (
        SELECT FROM compliance_signoffrequest asked
        JOIN compliance_requestsystem about ON about.request_id = asked.id AND about.system_id = NEW.system_id
        WHERE asked.id = NEW.request_id AND asked.dossier_id = NEW.dossier_id
            AND asked.kind IN ('grant', 'renewal', 'waiver') AND asked.subject_version_id = NEW.subject_version_id
    ) THEN
        RAISE EXCEPTION 'writegate: this is not the waiver that was signed' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER compliance_waiver_check BEFORE INSERT ON compliance_waiver
    FOR EACH ROW EXECUTE FUNCTION writegate_check_waiver();
"""
NO_WAIVER = """
DROP TRIGGER compliance_waiver_check ON compliance_waiver;
DROP FUNCTION writegate_check_waiver();
"""

# What lies in the apps below is carried by a request of the kind, and about the object, that are named when the trigger is made.
CARRIED = """
CREATE FUNCTION writegate_check_carried() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    paper bigint;
BEGIN
    SELECT asked.dossier_id INTO paper FROM compliance_signoffrequest asked
    WHERE asked.uid = NEW.sign_off_request AND asked.kind = TG_ARGV[0]
        AND to_jsonb(asked) -> TG_ARGV[2] = to_jsonb(NEW) -> TG_ARGV[3];
    PERFORM writegate_require_quorum(paper, TG_ARGV[1]);
    RETURN NEW;
END
$$;
CREATE TRIGGER policies_policyactivation_signed BEFORE INSERT ON policies_policyactivation
    FOR EACH ROW EXECUTE FUNCTION writegate_check_carried('activation', 'an activation', 'policy_version_id', 'version_id');
CREATE TRIGGER policies_binding_signed BEFORE INSERT ON policies_binding
    FOR EACH ROW EXECUTE FUNCTION writegate_check_carried('binding', 'a binding', 'policy_id', 'policy_id');
CREATE TRIGGER evaluations_ruling_signed BEFORE INSERT ON evaluations_ruling
    FOR EACH ROW WHEN (NEW.kind <> 'disputed') EXECUTE FUNCTION writegate_check_carried('ruling', 'a ruling', 'evidence_id', 'evidence_id');
"""
NOT_CARRIED = """
DROP TRIGGER evaluations_ruling_signed ON evaluations_ruling;
DROP TRIGGER policies_binding_signed ON policies_binding;
DROP TRIGGER policies_policyactivation_signed ON policies_policyactivation;
DROP FUNCTION writegate_check_carried();
"""


class Migration(migrations.Migration):
    dependencies = [("compliance", "0008_sign_offs"), ("policies", "0003_signed_changes")]

    operations = [
        *(migrations.RunSQL(LOCK_FACT.format(table=table), UNLOCK_FACT.format(table=table)) for table in FACTS),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
        migrations.RunSQL(QUORUM, NO_QUORUM),
        migrations.RunSQL(REQUEST, NO_REQUEST),
        migrations.RunSQL(SIGN_OFF, NO_SIGN_OFF),
        migrations.RunSQL(SEAT, NO_SEAT),
        migrations.RunSQL(GRANT, NO_GRANT),
        migrations.RunSQL(WAIVER, NO_WAIVER),
        migrations.RunSQL(CARRIED, NOT_CARRIED),
    ]
