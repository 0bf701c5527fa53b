"""`manage.py demo`: a made-up benchmark, a subject that clears, and a grant signed by made-up people, for a newcomer to follow."""

from argparse import BooleanOptionalAction
from collections.abc import Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import CommandParser

from compliance.management.story import Cast, address_of, bring_into_force, grant_access
from compliance.management.visitor import own_server
from compliance.services.bundles import load_bundle
from evaluations.importers.bundles import DATA, read_bundle
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.tables import text_table
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from policies.management.commands.gate import render_table
from policies.models import System
from policies.selectors.bundled import bundled_path
from policies.selectors.gate import ask_gate
from policies.selectors.policies import get_policy, version_to_judge
from policies.services.rejudging import judge_everywhere

POLICY = "demo-writes"
CLEAR, SYSTEM = "demo-model-clear", "demo-hr-records"


class Command(ExampleCommand):
    help = (
        "Load the demo: a made-up benchmark, source, people, system and subjects, each labelled so, and the policy `demo-writes`. "
        "One subject clears; made-up people then bring the policy into force and sign a grant, each at the console with an "
        "authenticator app of her own. Refuses a database that holds a system of your own. Safe to run again."
    )
    examples: ClassVar[str] = """\
  manage.py demo
  manage.py gate --policy demo-writes                        one subject clears today …
  manage.py gate --policy demo-writes --as-of 2027-03-01     … and is stale when its evidence has aged
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--story", action=BooleanOptionalAction, default=True, help="have the made-up people sign a grant")

    def handle(self, *args: Any, **options: Any) -> None:
        bundle = read_bundle(DATA / "demo")
        made_up = {system.key for system in bundle.systems}
        own = System.objects.exclude(key__in=made_up).values_list("key", flat=True)[:3]
        if own:
            hint = "use a database of its own for the demo (WRITEGATE_DATA_DIR)"
            raise InputRefused([Problem(f"this database holds systems of your own: {', '.join(own)}", hint=hint)])
        actor = system_job("demo")
        cast = Cast(settings.DATA_DIR / "demo-people.json", bundle)
        installed = load_bundle(actor=actor, bundle=bundle, policies=[bundled_path(POLICY)], passwords=cast.passwords)
        cast.refuse_strangers()
        moment = now()
        versions = current_versions(known_at=moment, keys=[subject.key for subject in bundle.subjects])
        judge_everywhere(actor=actor, subject_version_ids=[version.pk for version in versions])
        loaded = installed.evidence
        self.stdout.write(f"{bundle.title}: {loaded.observations} new observations in {loaded.evidence} pieces of evidence.\n\n")
        moment = now()
        gate = ask_gate(version_to_judge(get_policy(POLICY)), as_of=moment, known_at=moment, versions=versions)
        self.stdout.write(render_table(gate))
        if options["story"]:
            self._tell(cast, versions)

    def _tell(self, cast: Cast, versions: Sequence[SubjectVersion]) -> None:
        """Have the made-up people sign, over HTTP, and say where to look."""
        clear = next(version for version in versions if version.subject.key == CLEAR)
        self.stdout.write("\nThe made-up people sign, each at the console:\n")
        with own_server() as address:
            bring_into_force(address, cast, version_to_judge(get_policy(POLICY)), self._say)
            grant = grant_access(address, cast, clear, System.objects.get(key=SYSTEM), self._say)
        self.stdout.write(
            f"\nGrant {grant.uid}: {clear.subject.key} may write to {SYSTEM} until {grant.ends_at:%Y-%m-%d}.\n"
            f"Follow it at /admin/compliance/grant/{grant.pk}/change/. Sign in as one of the made-up people:\n"
        )
        shown = [(address_of(key), held["password"], held["secret"]) for key, held in cast.people.items() if held["secret"]]
        self.stdout.write(text_table(("account", "password", "secret of the authenticator app"), shown))

    def _say(self, line: str) -> None:
        self.stdout.write(f"  {line}")
        self.stdout.flush()
