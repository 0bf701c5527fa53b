"""`manage.py refresh`: what sources say now, in; a line for each as it goes."""

import time
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.commands import ExampleCommand
from evaluations.models import RefreshRun, SourceSchedule
from evaluations.selectors.refreshing import scheduled_source
from evaluations.services.refresh import claim_due, refresh_source
from evaluations.vocabulary import RefreshOutcome

FAILED = 1
AT_ONCE = 1_000
ILL = (RefreshOutcome.FAILED, RefreshOutcome.DEFERRED, RefreshOutcome.INTERRUPTED)


class Command(ExampleCommand):
    help = (
        "Refresh sources as their schedules say, here and now instead of by a worker. Each is imported whole or not at all, and the "
        "same bytes are recorded once. Exit code 1: not every source could be refreshed; 2: refused, and nothing was asked."
    )
    examples: ClassVar[str] = """\
  manage.py refresh                      what is due
  manage.py refresh my-lab               one source, due or not
  manage.py refresh my-lab --force       even if it says that nothing has changed
  manage.py refresh --all                every source whose schedule is not paused
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", nargs="?", metavar="SOURCE", help="key of a source with a schedule (default: what is due)")
        parser.add_argument("--all", action="store_true", dest="every", help="every source whose schedule is not paused")
        parser.add_argument("--force", action="store_true", help="fetch anew what is known to be unchanged")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = system_job("refresh-command")
        if options["source"]:
            chosen = [scheduled_source(options["source"])]
        elif options["every"]:
            chosen = list(SourceSchedule.objects.filter(paused_at=None).values_list("source_id", flat=True))
        else:
            chosen = claim_due(limit=AT_ONCE)
        by_hand = bool(options["source"] or options["every"] or options["force"])
        if not chosen:
            self.stdout.write("no source is scheduled" if options["every"] else "nothing is due")
        ill = 0
        for number, source_id in enumerate(chosen, start=1):
            ill += not self._refresh(source_id, f"[{number}/{len(chosen)}]", actor if by_hand else None, force=options["force"])
        if ill:
            raise SystemExit(FAILED)

    def _refresh(self, source_id: int, place: str, actor: Actor | None, *, force: bool) -> bool:
        """Refresh one source and tell of it; return whether it went well."""
        key = SourceSchedule.objects.values_list("source__key", flat=True).get(source=source_id)
        self.stdout.write(f"{place} {key} …")
        self.stdout.flush()
        began = time.monotonic()
        run = refresh_source(source_id, asked_by=actor, forced=force)
        if run is None:
            self.stdout.write("  a worker is at it")
            return True
        self.stdout.write(f"  {_sentence(run)} ({time.monotonic() - began:.1f} s, {run.bytes_received:,} bytes)")
        for problem in run.problems[:10]:
            place = ", ".join(str(problem[name]) for name in ("file", "line", "row", "field") if name in problem)
            self.stdout.write(f"  refused: {place}: {problem['message']}")
        return run.outcome not in ILL


def _sentence(run: RefreshRun) -> str:
    told = f"{run.get_outcome_display()}: {run.get_cause_display()}"
    if run.taken or run.held:
        told += f"; {run.taken} observations taken, {run.held} held until their names are assigned"
    return f"{told}; {run.detail}" if run.detail else told
