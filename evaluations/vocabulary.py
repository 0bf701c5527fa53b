"""Closed lists of the evaluations app. Each is held by a check constraint too."""

from django.db import models


class SubjectKind(models.TextChoices):
    MODEL = "model", "model"
    AGENT = "agent", "agent"
    ROUTE = "route", "route"


class About(models.TextChoices):
    """What evidence was measured on: the bare model, or an agent around it."""

    MODEL = "model", "model"
    AGENT = "agent", "agent"


class TrustTier(models.TextChoices):
    """Who vouches, weakest first."""

    ARCHIVE = "archive", "archive"
    SECONDARY = "secondary", "secondary"
    VENDOR = "vendor", "vendor"
    INDEPENDENT = "independent", "independent"
    REPRODUCED = "reproduced", "reproduced"


class Provenance(models.TextChoices):
    """What was handed in, weakest first."""

    CLAIM = "claim", "claim"
    REPORTED = "reported", "reported"
    RUN_LOG = "run_log", "run log"
    RECOUNTED = "recounted", "recounted"


class RunStatus(models.TextChoices):
    """How the run ended; only a complete run can qualify."""

    COMPLETE = "complete", "complete"
    PARTIAL = "partial", "partial"
    CANCELLED = "cancelled", "cancelled"
    ERROR = "error", "error"
    RUNNING = "running", "running"
    UNSCORED = "unscored", "unscored"
    UNKNOWN = "unknown", "unknown"


class RulingKind(models.TextChoices):
    DISPUTED = "disputed", "disputed"
    DISPUTE_DISMISSED = "dispute_dismissed", "dispute dismissed"
    DISPUTE_UPHELD = "dispute_upheld", "dispute upheld"
    RETRACTED = "retracted", "retracted"


class Unit(models.TextChoices):
    PERCENT = "percent", "percent"
    USD = "usd", "US dollars"
    COUNT = "count", "count"


class Better(models.TextChoices):
    HIGHER = "higher", "higher is better"
    LOWER = "lower", "lower is better"


class Level(models.TextChoices):
    TASK = "task", "task"
    STEP = "step", "step"
    OUTCOME = "outcome", "outcome"


class MetricFamily(models.TextChoices):
    REFUSAL = "refusal", "refusal"
    HARM = "harm", "harm"
    CAPABILITY = "capability", "capability"
    COST = "cost", "cost"


class Exposure(models.TextChoices):
    """Whether the tasks of a benchmark version lie open, so that a model may have been trained on them."""

    PUBLIC = "public", "public"
    PRIVATE = "private", "private"
    UNKNOWN = "unknown", "not stated"


class Connector(models.TextChoices):
    """The road by which a source's files are fetched."""

    HTTP = "http", "an https address"
    FOLDER = "folder", "a watched folder"
    ARTIFICIAL_ANALYSIS = "artificial_analysis", "the Artificial Analysis API"
    HUGGING_FACE = "hugging_face", "a file on Hugging Face"
    GITHUB = "github", "a file on GitHub"


class RefreshOutcome(models.TextChoices):
    """Where a refresh run stands: open while it is asked for or running, then one of the others for good."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    TAKEN = "taken", "taken"
    UNCHANGED = "unchanged", "unchanged"
    DEFERRED = "deferred", "deferred"
    FAILED = "failed", "failed"
    INTERRUPTED = "interrupted", "interrupted"


class RefreshCause(models.TextChoices):
    """Why a refresh run ended as it did."""

    NEW_EVIDENCE = "new_evidence", "new evidence was recorded"
    NOT_MODIFIED = "not_modified", "the source says that nothing has changed"
    SAME_BYTES = "same_bytes", "everything was recorded before from the same bytes"
    NOTHING_THERE = "nothing_there", "no new file lies in the folder"
    ASKED_TO_WAIT = "asked_to_wait", "the host asks to come back later"
    HOST_BUSY = "host_busy", "the host has its share of requests"
    SHAPE_REFUSED = "shape_refused", "the importer refuses what was fetched"
    KEY_REFUSED = "key_refused", "the host does not accept the key"
    KEY_MISSING = "key_missing", "the key that the schedule names is not set"
    NOT_FOUND = "not_found", "nothing is at the address"
    HTTP_ERROR = "http_error", "the host answers with an error"
    TIMED_OUT = "timed_out", "the answer was not whole in time"
    TRUNCATED = "truncated", "the answer was cut off"
    TOO_LARGE = "too_large", "the answer is larger than is read"
    TOO_MANY_PAGES = "too_many_pages", "the list has more pages than are read"
    ADDRESS_REFUSED = "address_refused", "the address may not be asked"
    CERTIFICATE = "certificate", "the certificate does not hold"
    UNREACHABLE = "unreachable", "the host is not reached"
    NO_HTTP = "no_http", "the answer is no HTTP that is understood"
    FOLDER_REFUSED = "folder_refused", "the folder or a file in it cannot be read"
    WORKER_GONE = "worker_gone", "the worker ended in the middle"
    OUR_FAULT = "our_fault", "an error of ours; see the log"


class Domain(models.TextChoices):
    HR = "hr", "HR"
    IT_SERVICE_MANAGEMENT = "it_service_management", "IT service management"
    CUSTOMER_SERVICE = "customer_service", "customer service"
    EMAIL = "email", "email"
    CALENDAR = "calendar", "calendar"
    DRIVE = "drive", "drive"
    TEAMS = "teams", "teams"
    HYBRID = "hybrid", "hybrid"


OVERALL = "overall"
