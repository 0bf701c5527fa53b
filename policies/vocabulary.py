"""Closed lists of the policies app. Each is held by a check constraint too."""

from django.db import models


class Result(models.TextChoices):
    """What a rule gives, best first; only `pass` passes."""

    PASS = "pass", "passes"
    FAIL = "fail", "fails"
    STALE = "stale", "stale"
    MISSING = "missing", "missing"
    CONTESTED = "contested", "contested"
    ERROR = "error", "error"


class Outcome(models.TextChoices):
    PASS = "pass", "passes"
    FAIL = "fail", "fails"


class VersionState(models.TextChoices):
    """Where a policy version stands in its life; derived from activations, never stored."""

    PROPOSED = "proposed", "proposed"
    ACTIVE = "active", "active"
    RETIRED = "retired", "retired"


class Said(models.TextChoices):
    """What one of two compared texts says in a place; worked out, never stored."""

    PASS = "pass", "passes"
    FAIL = "fail", "fails"
    NOT_ASKED = "not_asked", "is not asked"
    UNJUDGED = "unjudged", "has not judged yet"


class Change(models.TextChoices):
    """What becomes of an answer when another text comes into force; worked out, never stored."""

    NEWLY_PERMITTED = "newly_permitted", "newly permitted"
    NEWLY_REFUSED = "newly_refused", "newly refused"
    UNCHANGED = "unchanged", "unchanged"
    UNJUDGED = "unjudged", "not judged yet"


class VerdictReplay(models.TextChoices):
    """What came of judging a verdict once more. No row holds it."""

    SAME = "same", "the same, byte for byte"
    MISMATCHED = "mismatched", "does not match what was judged"
    PRUNED = "pruned", "what it was judged on is kept no more"
    UNKNOWN_SEMANTICS = "unknown_semantics", "made under a meaning that this version does not hold"


class Differing(models.TextChoices):
    """What does not match in a verdict that was judged once more."""

    FACTS_DOCUMENT = "facts_document", "the facts document is not the one under its digest"
    POLICY_TEXT = "policy_text", "the policy text is not the one under its digest"
    JUDGEMENT = "judgement", "the stored judgement is not what facts and policy give"
    ROW = "row", "the verdict's row says otherwise than its judgement"
    ENTRY = "entry", "the log tells of another verdict"


class Environment(models.TextChoices):
    PRODUCTION = "production", "production"
    STAGING = "staging", "staging"
    DEVELOPMENT = "development", "development"


class BlastLevel(models.TextChoices):
    """How much a wrong write could do, least first."""

    LOW = "low", "low"
    MEDIUM = "medium", "medium"
    HIGH = "high", "high"
    SEVERE = "severe", "severe"


ANY_DOMAIN = "any"
"""The one domain of a policy that does not read `resource.domain`."""
