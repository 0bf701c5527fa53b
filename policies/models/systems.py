"""The production systems to which write access is asked."""

from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import ExactDecimalField, KeyField, choice_constraint, finite_constraint, key_constraint
from evaluations.kernel.models import State
from evaluations.vocabulary import Domain
from policies.vocabulary import Environment


class System(State):
    """State. A production system: its domain, environment, whether its writes can be taken back, and the team that owns it.

    What its owner states about the harm that a wrong write can do may be empty: not known, which counts as the worst.
    """

    key = KeyField(unique=True)
    title = models.CharField(max_length=200)
    domain = models.CharField(max_length=40, choices=Domain.choices)
    environment = models.CharField(max_length=12, choices=Environment.choices, default=Environment.PRODUCTION)
    reversible = models.BooleanField(default=False)
    open_incident = models.BooleanField(default=False)
    owner = models.CharField(max_length=120, blank=True, help_text="Key of the owning team.")
    people_affected = models.PositiveIntegerField(null=True, blank=True, help_text="How many people its records are about.")
    writes_per_day = models.PositiveIntegerField(null=True, blank=True, help_text="How many writes a day it takes now.")
    holds_personal_data = models.BooleanField(null=True, blank=True)
    money_at_stake_usd = ExactDecimalField(
        null=True, blank=True, help_text="The most that one wrong write can cost, in US dollars."
    )
    registered_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["key"]
        constraints = [
            key_constraint("key", "system_key_is_ascii"),
            choice_constraint("domain", Domain, "system_domain_is_known"),
            choice_constraint("environment", Environment, "system_environment_is_known"),
            finite_constraint("money_at_stake_usd", "system_money_is_exact"),
            models.CheckConstraint(condition=models.Q(money_at_stake_usd__gte=0), name="system_money_is_not_negative"),
        ]

    def __str__(self) -> str:
        return self.key
