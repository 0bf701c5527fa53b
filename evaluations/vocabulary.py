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
