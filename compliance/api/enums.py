"""Closed lists that the description of the API names by their own names, for they stand under a field name that others have too."""

NAMED_ENUMS = (
    "compliance.deciding.codes.Code",
    "compliance.vocabulary.CommentKind",
    "compliance.vocabulary.EffectiveStatus",
    "compliance.vocabulary.ExportStatus",
    "compliance.vocabulary.GrantKind",
    "compliance.vocabulary.GrantStatus",
    "compliance.vocabulary.NoticeKind",
    "compliance.vocabulary.NoticeStatus",
    "compliance.vocabulary.ReplayOutcome",
    "compliance.vocabulary.RequestKind",
    "compliance.vocabulary.RequestStatus",
    "evaluations.vocabulary.Connector",
    "evaluations.vocabulary.RefreshCause",
    "evaluations.vocabulary.RefreshOutcome",
    "evaluations.vocabulary.RulingKind",
    "evaluations.vocabulary.SubjectKind",
    "policies.vocabulary.Outcome",
    "policies.vocabulary.Said",
    "policies.vocabulary.VerdictReplay",
)
