"""`manage.py create_token`: a credential for a machine, printed once."""

from datetime import timedelta
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from compliance.models import User
from compliance.models.people import normalise_email
from compliance.services.people import create_token
from compliance.vocabulary import Scope
from evaluations.kernel.actor import person, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem
from policies.models import System

DEFAULT_DAYS = 90


class Command(ExampleCommand):
    help = (
        "Make a service token and print it, once, as the last word of the output. Only its hash is kept. "
        "It belongs to a person: what it asks for is asked by her."
    )
    examples: ClassVar[str] = """\
  manage.py create_token ci-importer --scope submit_evidence
  manage.py create_token deploy-hr --scope decide:workday-prod --person ada@example.com --days 30
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="what the token is for")
        parser.add_argument(
            "--scope",
            nargs="+",
            action="extend",
            required=True,
            dest="scopes",
            metavar="SCOPE",
            help=f"one or more of {', '.join(Scope.values)}, each narrowed to a system by scope:SYSTEM if you like",
        )
        parser.add_argument("--person", metavar="EMAIL", help="whose token it is (default: the only administrator)")
        parser.add_argument("--days", type=int, default=DEFAULT_DAYS, help=f"how long it lives (default {DEFAULT_DAYS})")

    def handle(self, *args: Any, **options: Any) -> None:
        user = _owner(options["person"])
        made = create_token(
            actor=system_job("create-token", on_behalf_of=person(user.person_id)),
            name=options["name"],
            scopes=options["scopes"],
            person=user.person,
            expires_at=now() + timedelta(days=options["days"]),
        )
        named = {scope.partition(":")[2] for scope in made.token.scopes} - {""}
        for key in sorted(named - set(System.objects.filter(key__in=named).values_list("key", flat=True))):
            self.stderr.write(f"No system `{key}` is registered yet: until one is, the token does nothing there.")
        self.stdout.write(
            f"Token `{made.token.name}` of {user.email} with {', '.join(made.token.scopes)}, until {made.token.expires_at:%Y-%m-%d}. "
            f"It is shown this once: {made.secret}"
        )


def _owner(email: str | None) -> User:
    active = User.objects.filter(is_active=True)
    if email:
        user = active.filter(email__iexact=normalise_email(email)).first()
        if user is None:
            raise InputRefused([Problem(f"no active account `{email}`", field="--person")])
        return user
    administrators = list(active.filter(is_superuser=True)[:2])
    if len(administrators) != 1:
        found = "none is there yet" if not administrators else "there are several"
        raise InputRefused([Problem(f"name the person: of administrators {found}", field="--person")])
    return administrators[0]
