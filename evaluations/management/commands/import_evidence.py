"""`manage.py import_evidence`: files in, every one or none."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import CommandParser

from evaluations.importers.profiles import bundled_profiles, load_profile
from evaluations.importers.registry import names
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import parse_instant
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.signatures import read_keys
from evaluations.services.evidence import import_files, open_paths
from evaluations.services.import_results import result_of

SHOWN_NAMES = 50


class Command(ExampleCommand):
    help = (
        "Import evidence files: all of them, or none. A problem is told with file, line or row, and field, and exits with 2. "
        "The same bytes are recorded once."
    )
    examples: ClassVar[str] = """\
  manage.py import_evidence results.json
  manage.py import_evidence leaderboard.csv --source demo-lab
  manage.py import_evidence judge_all/scores_*.csv --source mcgill-dmas --published-at 2026-05-01
  manage.py import_evidence leaderboard.xlsx --source demo-lab --profile my-columns.json
  manage.py import_evidence results.json results.dsse.json --trusted-key lab.pem

A source must be registered: `demo-lab` comes with `manage.py demo`. One of your own is proposed under *Sources* in the
console (or by POST /api/v1/requests, kind `source`), and counts once a second evidence steward has signed it.

A profile says what the numbers of one source mean, where its files do not: metric, unit, level, benchmark. The top of
evaluations/importers/profiles.py describes it, and evaluations/data/profiles/ holds those that come with the service.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--format", choices=names(), dest="format_name", help="default: recognised from the file")
        parser.add_argument("--source", metavar="KEY", help="who vouches for it, where the file does not say")
        parser.add_argument("--published-at", metavar="TIME", help="when it was published, where the files carry no date")
        parser.add_argument("--subject", metavar="NAME", help="the model's name as written, where the format has none")

        parser.add_argument(
            "--profile",
            metavar="FILE",
            help=f"what the numbers mean, where the files do not say; a file, or one of {', '.join(bundled_profiles())}",
        )

        parser.add_argument(
            "--trusted-key",
            metavar="PEM",
            type=Path,
            action="append",
            default=[],
            help="whose signature under an in-toto statement attests the file given with it; beside WRITEGATE_EVIDENCE_KEYS",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        paths: Sequence[Path] = options["files"]
        trusted = read_keys(settings.EVIDENCE_KEYS.encode(), name="WRITEGATE_EVIDENCE_KEYS") if settings.EVIDENCE_KEYS else {}
        for name, key in open_paths(options["trusted_key"]):
            with key:
                trusted |= read_keys(key.read(1024 * 1024), name=name)
        with ExitStack() as stack:
            files = {name: stack.enter_context(stream) for name, stream in open_paths(paths)}
            imported = import_files(
                actor=system_job("import-evidence"),
                files=files,
                format_name=options["format_name"],
                source=options["source"],
                subject=options["subject"],
                published_at=parse_instant(given, field="--published-at") if (given := options["published_at"]) else None,
                profile=load_profile(options["profile"]) if options["profile"] else None,
                trusted_keys=trusted,
                max_bytes=settings.EVIDENCE_MAX_FILE_BYTES,
            )
        for one in imported:
            self.stdout.write(
                f"{one.document.file_name}: {one.observations} observations in {one.evidence} pieces of evidence "
                f"({one.importer}), document {one.document.digest}"
            )
            if one.repeated:
                self.stdout.write(f"  {one.repeated} were recorded before from the same bytes, and were left as they are")
        for name, count in list(result_of(imported).held.items())[:SHOWN_NAMES]:
            self.stdout.write(f"held: {count} observations about `{name}` count for nobody until the name is assigned")
