"""Tables of the policies app."""

from policies.models.drafts import PolicyDraft
from policies.models.policies import Binding, Policy, PolicyActivation, PolicyVersion, UnreadableVersion
from policies.models.systems import System
from policies.models.verdicts import FactsDocument, Standing, Verdict, VerdictMismatch

__all__ = [
    "Binding",
    "FactsDocument",
    "Policy",
    "PolicyActivation",
    "PolicyDraft",
    "PolicyVersion",
    "Standing",
    "System",
    "UnreadableVersion",
    "Verdict",
    "VerdictMismatch",
]
