"""`manage.py verdict`: judge stored verdicts once more."""

from collections.abc import Iterator
from typing import Any, ClassVar
from uuid import UUID

from django.core.management.base import CommandParser

from compliance.selectors.replays import (
    Replayed,
    all_verdict_ids,
    sampled_verdict_ids,
    unknown_verdicts,
    verdicts_to_replay,
)
from compliance.services.replays import AT_ONCE, replay_verdicts
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem
from policies.models import Verdict
from policies.vocabulary import VerdictReplay

ACTOR = "verdict-replay"
MISMATCHED = 1


class Command(ExampleCommand):
    help = (
        "Judge verdicts once more from the facts document and the policy text that were kept, and compare every byte. One that does "
        "not match is noted, told of, and carries nothing until it is judged anew. "
        "Exit codes: 0 all match, 1 some do not, 2 there is no such verdict."
    )
    examples: ClassVar[str] = """\
  manage.py verdict replay 6a0f3c1e-…          by the identifier that its page and the API show
  manage.py verdict replay --sample 1000       as every night: under live grants, those whose turn it is, the newest
  manage.py verdict replay --all
"""

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="replay", title="what to do")
        replay = kinds.add_parser("replay", help="judge verdicts once more", description=self.help)
        replay.add_argument("ids", nargs="*", type=UUID, metavar="ID", help="a verdict's identifier")
        replay.add_argument("--all", action="store_true", help="every verdict, newest first")
        replay.add_argument(
            "--sample", type=int, metavar="N", help="so many: half under live grants, half those whose turn it is"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        counted = dict.fromkeys(VerdictReplay, 0)
        for verdicts in self._chosen(options):
            for done in replay_verdicts(actor=system_job(ACTOR), verdicts=verdicts):
                counted[done.replay.outcome] += 1
                if options["ids"] or not done.replay.same:
                    self._tell(done)
        self.stdout.write(
            ", ".join(f"{number} {outcome}" for outcome, number in counted.items() if number) or "no verdict is kept"
        )
        if counted[VerdictReplay.MISMATCHED]:
            raise SystemExit(MISMATCHED)

    def _chosen(self, options: dict[str, Any]) -> Iterator[list[Verdict]]:
        """Yield the verdicts asked for, some at a time. Raises `InputRefused`."""
        ways = [bool(options["ids"]), options["all"], options["sample"] is not None]
        if sum(ways) != 1:
            raise InputRefused([Problem("say which verdicts: their identifiers, --all or --sample N", hint="one of the three")])
        if options["ids"]:
            missing = unknown_verdicts(options["ids"])
            if missing:
                raise InputRefused([Problem(f"there is no verdict `{uid}`") for uid in missing])
            yield verdicts_to_replay(uid__in=options["ids"])
            return
        if options["sample"] is not None and options["sample"] < 1:
            raise InputRefused([Problem("at least one verdict is a sample", field="--sample")])
        ids = all_verdict_ids() if options["all"] else sampled_verdict_ids(options["sample"], at=now())
        for start in range(0, len(ids), AT_ONCE):
            yield verdicts_to_replay(pk__in=ids[start : start + AT_ONCE])

    def _tell(self, done: Replayed) -> None:
        verdict, replay = done
        version, policy_version = verdict.subject_version, verdict.policy_version
        about = (
            f"{policy_version.policy.name}@{policy_version.number} on {version.subject.key}@{version.number} in {verdict.domain}"
        )
        self.stdout.write(f"{verdict.uid}  {replay.outcome}  {about}")
        for word in replay.differs:
            self.stdout.write(f"  {word}: {word.label}")
        if replay.trouble:
            self.stdout.write(f"  {replay.trouble}")
