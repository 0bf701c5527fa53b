"""`manage.py quickstart`: from an empty database to the answer, in one go. Safe to run again."""

import secrets
import time
from argparse import BooleanOptionalAction
from typing import Any, ClassVar

from django.core.management import call_command
from django.core.management.base import CommandParser

from compliance.models import User
from compliance.services.bundles import load_bundle
from compliance.services.people import create_person
from compliance.vocabulary import Role
from evaluations.importers.bundles import DATA, read_bundle
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.commands import ExampleCommand
from evaluations.selectors.subjects import current_versions
from policies.management.commands.gate import render_table
from policies.selectors.bundled import bundled_path
from policies.selectors.gate import ask_gate
from policies.selectors.policies import get_policy, version_to_judge
from policies.services.rejudging import judge_everywhere

POLICIES = ("refusal-gate", "unattended-writes")
ADMINISTRATOR = "admin@writegate.local"
PASSWORD_BYTES = 15


class Command(ExampleCommand):
    help = (
        "Migrate the database, load the bundled evidence and policies, judge, make the first administrator and print the gate. "
        "What is there already stays as it is. `make run` does this and then serves."
    )
    examples: ClassVar[str] = """\
  manage.py quickstart
  manage.py quickstart --with-corrections      also record the disputes of the founding numbers
  manage.py quickstart --admin-email ada@example.com
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--with-corrections", action="store_true", help="record the known disputes of the founding numbers")
        parser.add_argument("--admin-email", default=ADMINISTRATOR, metavar="EMAIL", help=f"default: {ADMINISTRATOR}")
        parser.add_argument("--table", action=BooleanOptionalAction, default=True, help="print the gate at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        self._started = time.monotonic()
        self._step("bringing the database up to date")
        call_command("migrate", verbosity=0, interactive=False)
        actor = system_job("quickstart")
        self._step("loading the bundled evidence and policies")
        bundles = ["benchmarks", "founding", *(["corrections"] if options["with_corrections"] else [])]
        for name in bundles:
            bundle = read_bundle(DATA / name)
            # The policies name benchmarks of the founding evidence, so they come with it.
            policies = [bundled_path(policy) for policy in POLICIES] if name == "founding" else []
            installed = load_bundle(actor=actor, bundle=bundle, policies=policies)
            loaded = installed.evidence
            if not bundle.evidence and not bundle.rulings:
                self.stdout.write(
                    f"  {name}: {len(bundle.benchmarks)} whose files can be imported, and {len(bundle.sources)} sources"
                )
                continue
            self.stdout.write(
                f"  {name}: {loaded.observations} new observations, {loaded.rulings} disputes"
                if loaded.rulings
                else f"  {name}: {loaded.observations} new observations in {loaded.evidence} pieces of evidence"
            )
        self._step("judging")
        versions = current_versions(known_at=now())
        judged = judge_everywhere(actor=actor, subject_version_ids=[version.pk for version in versions])
        self.stdout.write(f"  {judged.judged} judgements, {judged.new} new verdicts")
        self._administrator(options["admin_email"])
        if options["table"]:
            self._print_gate()

    def _print_gate(self) -> None:
        moment = now()
        for policy in POLICIES:
            gate = ask_gate(version_to_judge(get_policy(policy)), as_of=moment, known_at=moment)
            self.stdout.write(f"\n{render_table(gate)}")

    def _administrator(self, email: str) -> None:
        if User.objects.filter(is_superuser=True, is_active=True).exists():
            return
        self._step("making the first administrator")
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        user = create_person(
            actor=system_job("quickstart"),
            name="First Administrator",
            email=email,
            password=password,
            roles=[Role.ADMINISTRATOR],
            is_superuser=True,
            must_change_password=True,
        )
        self.stdout.write(
            f"  account:            {user.email}\n"
            f"  one-time password:  {password}    (shown this once; the console asks for a new one)"
        )

    def _step(self, text: str) -> None:
        self.stdout.write(f"[{time.monotonic() - self._started:5.1f} s] {text} …")
        self.stdout.flush()
