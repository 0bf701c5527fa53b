"""`manage.py export_audit`: the trail, to take away and verify elsewhere."""

from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from compliance.models import AuditExport
from compliance.selectors.ledger import EntryFilter
from compliance.services.exports import abandon_export, advance_export, start_export
from compliance.vocabulary import ExportFormat, ExportStatus
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import parse_instant
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem

ACTOR = "export-audit"
SLICE_SECONDS = 2.0


class Command(ExampleCommand):
    help = (
        "Export the audit trail as a zip that `writegate verify` checks offline. The file appears when it is whole. "
        "The same range twice is the same file, as long as no name was erased in between. "
        "Exit codes: 0 done, 2 refused, and no file was written."
    )
    examples: ClassVar[str] = """\
  manage.py export_audit --out trail.zip
  manage.py export_audit --format csv --out trail.zip --to-index 41999
  manage.py export_audit --out alice.zip --actor person:0b8f… --since 2026-11-01
  manage.py export_audit --out part.zip --target evidence --consistent-with 40000    for the holder of checkpoint 40000
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the zip shall lie")
        parser.add_argument("--format", choices=ExportFormat.values, default="jsonl", help="csv adds a reading copy")
        parser.add_argument("--to-index", type=int, metavar="N", help="the last entry (default: the last one sealed)")
        parser.add_argument("--actor", default="", metavar="KIND:ID", help="only what this actor did")
        parser.add_argument("--action", default="", metavar="NAME", help="only this action, such as evidence.recorded")
        parser.add_argument("--target", default="", metavar="KIND[:ID]", help="only what was done to this")
        parser.add_argument("--since", metavar="TIME", help="only from this instant on")
        parser.add_argument("--until", metavar="TIME", help="only before this instant")
        parser.add_argument("--without-names", action="store_true", help="leave people's printed names out")
        parser.add_argument(
            "--consistent-with", type=int, action="append", default=[], metavar="SIZE", help="prove it for an earlier checkpoint"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        out: Path = options["out"].absolute()
        if not out.parent.is_dir():
            raise InputRefused([Problem(f"there is no directory `{out.parent}`", field="--out")])
        if out.is_dir():
            raise InputRefused([Problem(f"`{out}` is a directory", field="--out", hint="name a file")])
        actor = system_job(ACTOR)
        job = start_export(
            actor=actor,
            format=options["format"],
            wanted=EntryFilter(
                actor=options["actor"],
                action=options["action"],
                target=options["target"],
                since=parse_instant(options["since"], field="--since") if options["since"] else None,
                until=parse_instant(options["until"], field="--until") if options["until"] else None,
            ),
            to_index=options["to_index"],
            path=out,
            with_names=not options["without_names"],
            consistent_with=options["consistent_with"],
        )
        try:
            job = self._work(job)
        except BaseException:
            abandon_export(actor=actor, job=job)
            raise
        if not job.entries:
            self.stderr.write("No entry matches: is the action, actor or target written as the trail shows it?")
        self.stdout.write(
            f"{out}: {job.entries} entries up to {job.to_index}, under the checkpoint of {job.checkpoint.size}\n{job.file_digest}"
        )

    def _work(self, job: AuditExport) -> AuditExport:
        shown = False
        while job.status not in (ExportStatus.DONE, ExportStatus.FAILED):
            job = advance_export(job.uid, seconds=SLICE_SECONDS)
            if self.stderr.isatty() and job.total:
                self.stderr.write(f"\r{100 * job.done // job.total} %", ending="")
                shown = True
        if shown:
            self.stderr.write("\r", ending="")
        return job
