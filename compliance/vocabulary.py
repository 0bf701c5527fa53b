"""Closed lists of the compliance app. Each is held by a check constraint too."""

from django.db import models


class Role(models.TextChoices):
    REQUESTER = "requester", "requester"
    SYSTEM_OWNER = "system_owner", "system owner"
    SECURITY = "security", "security"
    POLICY_APPROVER = "policy_approver", "policy approver"
    POLICY_AUTHOR = "policy_author", "policy author"
    EVIDENCE_STEWARD = "evidence_steward", "evidence steward"
    AUDITOR = "auditor", "auditor"
    ADMINISTRATOR = "administrator", "administrator"


TRAIL_READERS = (Role.AUDITOR, Role.ADMINISTRATOR)
"""Who may read the trail: it tells of everybody's acts. A token reads it for its person, as long as she holds one of these."""

KEEPS_SOURCES = (Role.EVIDENCE_STEWARD, Role.ADMINISTRATOR)
"""Who may say from where a source is refreshed, and have it refreshed now."""


class Scope(models.TextChoices):
    """What a service token may do, each optionally narrowed to one system as `scope:SYSTEM`."""

    READ = "read", "read"
    SUBMIT_EVIDENCE = "submit_evidence", "submit evidence"
    REGISTER = "register", "register"
    REQUEST = "request", "request"
    DECIDE = "decide", "decide"


class ReauthenticationMethod(models.TextChoices):
    """How a signed-in person proved once more that it is she."""

    PASSWORD = "password", "password"
    TOTP = "totp", "authenticator app"
    WEBAUTHN = "webauthn", "passkey"
    RECOVERY_CODE = "recovery_code", "recovery code"


SECOND_FACTORS = (ReauthenticationMethod.TOTP, ReauthenticationMethod.WEBAUTHN)
"""What counts for a signature. A recovery code does not: it replaces a lost factor for long enough to set up a new one."""


class HoldCause(models.TextChoices):
    """Why a person's signatures do not count for now."""

    PASSWORD_RESET = "password_reset", "password reset by somebody else"
    FACTORS_RESET = "factors_reset", "second factors reset by somebody else"


class ExportFormat(models.TextChoices):
    JSONL = "jsonl", "JSON lines"
    CSV = "csv", "JSON lines and a CSV reading copy"


class ExportStatus(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class UploadStatus(models.TextChoices):
    """How far an upload is. Refused is what was in it; failed is what happened to us."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    DONE = "done", "done"
    REFUSED = "refused", "refused"
    FAILED = "failed", "failed"


class RequestKind(models.TextChoices):
    """What signatures are asked for. One quorum engine serves them all."""

    GRANT = "grant", "grant"
    RENEWAL = "renewal", "renewal"
    REINSTATEMENT = "reinstatement", "reinstatement"
    RECERTIFICATION = "recertification", "recertification"
    WAIVER = "waiver", "waiver"
    ACTIVATION = "activation", "policy activation"
    BINDING = "binding", "binding"
    RULING = "ruling", "ruling"
    METRIC = "metric", "metric"
    BENCHMARK = "benchmark", "benchmark"
    SOURCE = "source", "source"
    BREAK_GLASS_REVIEW = "break_glass_review", "break-glass review"


class RequestStatus(models.TextChoices):
    OPEN = "open", "open"
    COMPLETED = "completed", "completed"
    REJECTED = "rejected", "rejected"
    WITHDRAWN = "withdrawn", "withdrawn"
    EXPIRED = "expired", "expired"


class Meaning(models.TextChoices):
    """What a signature says. Only the second and third fill a place; `reviewed` and `withdrawn` are no verdict."""

    REVIEWED = "reviewed", "reviewed"
    APPROVED = "approved", "approved"
    ACCEPTED_RESIDUAL_RISK = "accepted_residual_risk", "accepted residual risk"
    REJECTED = "rejected", "rejected"
    WITHDRAWN = "withdrawn", "withdrawn"


class CommentKind(models.TextChoices):
    COMMENT = "comment", "comment"
    CHANGE_REQUESTED = "change_requested", "change requested"


class GrantKind(models.TextChoices):
    STANDING = "standing", "standing"
    BREAK_GLASS = "break_glass", "break-glass"


class GrantStatus(models.TextChoices):
    ACTIVE = "active", "active"
    SUSPENDED = "suspended", "suspended"
    EXPIRED = "expired", "expired"
    REVOKED = "revoked", "revoked"


class GrantMove(models.TextChoices):
    """What can happen to a grant; the ledger's action is `grant.` and this word."""

    MADE = "made", "made"
    BEGUN = "begun", "begun"
    SUSPENDED = "suspended", "suspended"
    REINSTATED = "reinstated", "reinstated"
    RECERTIFIED = "recertified", "recertified"
    EXPIRED = "expired", "expired"
    REVOKED = "revoked", "revoked"


class EffectiveStatus(models.TextChoices):
    """How a grant stands at an instant, read from its row and the clock; only an active one may be used."""

    ACTIVE = "active", "active"
    NOT_BEGUN = "not_begun", "not begun"
    SUSPENDED = "suspended", "suspended"
    EXPIRED = "expired", "expired"
    REVOKED = "revoked", "revoked"


class StopScope(models.TextChoices):
    """What the stop button stops: all that one subject, system, provider or benchmark carries, or everything."""

    SUBJECT = "subject", "subject"
    SYSTEM = "system", "system"
    PROVIDER = "provider", "provider"
    BENCHMARK = "benchmark", "benchmark"
    ALL = "all", "everything"


class Cause(models.TextChoices):
    """Why a grant moved, or why it may not be used at an instant."""

    SIGNED = "signed", "signed by its quorum"
    BREAK_GLASS = "break_glass", "opened as break-glass"
    NOT_BEGUN = "not_begun", "has not begun"
    ENDED = "ended", "its end has come"
    RENEWED = "renewed", "replaced by its renewal"
    RECERTIFICATION_MISSED = "recertification_missed", "not recertified in time"
    VERDICT_FAILED = "verdict_failed", "the verdict fails"
    VERDICT_MISSING = "verdict_missing", "evidence is missing"
    VERDICT_STALE = "verdict_stale", "evidence is stale"
    VERDICT_CONTESTED = "verdict_contested", "evidence is contested"
    VERDICT_ERROR = "verdict_error", "judging ended in an error"
    FELL_BEYOND_LIMIT = "fell_beyond_limit", "a result fell further than the policy allows"
    NO_VERDICT = "no_verdict", "there is no verdict"
    NO_POLICY = "no_policy", "no policy applies"
    NEW_FACTOR_REQUIRED = "new_factor_required", "the policy now asks for further signatures"
    SUBJECT_CHANGED = "subject_changed", "the subject has a newer version"
    ALIAS_MOVED = "alias_moved", "a name it was granted under means another version"
    SIGNER_NO_LONGER_ELIGIBLE = "signer_no_longer_eligible", "a signer is no longer eligible"
    STOPPED = "stopped", "stopped by the stop button"
    TAKEN_BACK = "taken_back", "taken back by a person"


class DriftCause(models.TextChoices):
    """Why people are told of drift that suspends nothing."""

    VERDICT_FAILED = "verdict_failed", "the verdict fails"
    VERDICT_MISSING = "verdict_missing", "evidence is missing"
    VERDICT_STALE = "verdict_stale", "evidence is stale"
    VERDICT_CONTESTED = "verdict_contested", "evidence is contested"
    VERDICT_ERROR = "verdict_error", "judging ended in an error"
    ALIAS_MOVED = "alias_moved", "a name it was granted under means another version"
    EVIDENCE_RETRACTED = "evidence_retracted", "evidence it was signed on was retracted"
    NOT_COMPARABLE = "not_comparable", "a result on a version that the policy does not pin misses the bar"
    ROUTE_CHANGED = "route_changed", "its route reaches what is not cleared"


DRIFT_CAUSES = (
    Cause.VERDICT_FAILED,
    Cause.VERDICT_MISSING,
    Cause.VERDICT_STALE,
    Cause.VERDICT_CONTESTED,
    Cause.VERDICT_ERROR,
    Cause.FELL_BEYOND_LIMIT,
    Cause.NO_VERDICT,
    Cause.NO_POLICY,
    Cause.NEW_FACTOR_REQUIRED,
    Cause.SUBJECT_CHANGED,
)
"""Why a review suspends a grant; every other cause of a suspension is a person's or a signer's."""


class NoticeKind(models.TextChoices):
    """What a notice tells. The part before the last `_` is the noun of its event type, the rest what happened to it."""

    SIGNATURE_WANTED = "signature_wanted", "signature wanted"
    REQUEST_DECIDED = "request_decided", "request decided"
    REQUEST_CHANGED = "request_changed", "request changed"
    GRANT_BEGAN = "grant_began", "grant began"
    GRANT_SUSPENDED = "grant_suspended", "grant suspended"
    GRANT_ENDING = "grant_ending", "grant ending"
    EVIDENCE_ENDING = "evidence_ending", "evidence ending"
    EVIDENCE_RETRACTED = "evidence_retracted", "evidence retracted"
    BREAK_GLASS_OPENED = "break_glass_opened", "break-glass opened"
    REVIEW_DUE = "review_due", "review due"
    STOP_PULLED = "stop_pulled", "stop pulled"
    DRIFT_NOTICED = "drift_noticed", "drift noticed"
    VERDICT_MISMATCHED = "verdict_mismatched", "verdict mismatched"
    SOURCE_FAILED = "source_failed", "source failed"
    POLICY_UNREADABLE = "policy_unreadable", "policy unreadable"


class NoticeChannel(models.TextChoices):
    MAIL = "mail", "mail"
    CHAT = "chat", "chat"
    WEBHOOK = "webhook", "webhook"


class NoticeStatus(models.TextChoices):
    WAITING = "waiting", "waiting"
    SENT = "sent", "sent"
    DEAD = "dead", "dead"


class ReplayOutcome(models.TextChoices):
    """What came of judging a decision once more. No row holds it."""

    SAME = "same", "the same, byte for byte"
    DIFFERS = "differs", "differs"
    PRUNED = "pruned", "a policy text is kept no more"
    UNKNOWN_SEMANTICS = "unknown_semantics", "made under a meaning that this version does not hold"
