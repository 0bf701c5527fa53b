"""`manage.py audit_population`: does every governed row have its entry, and every entry its row?"""

from typing import Any, ClassVar

from compliance.selectors.population import population_report
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.tables import text_table

DIFFERS = 1


class Command(ExampleCommand):
    help = (
        "Count the rows of every governed table beside the ledger entries that tell of them, and name what differs. "
        "Exit codes: 0 nothing differs, 1 something does: somebody wrote past the service. Keep the database as it is, and compare an "
        "export (`writegate verify --against`) with a checkpoint that was kept elsewhere."
    )
    examples: ClassVar[str] = "  manage.py audit_population\n"

    def handle(self, *args: Any, **options: Any) -> None:
        lines = population_report()
        rows = [
            (
                line.table,
                str(line.rows),
                str(line.events),
                "ok" if not line.differing else f"{line.differing} differ: {' '.join(line.examples)}",
            )
            for line in lines
        ]
        self.stdout.write(text_table(("TABLE", "ROWS", "TOLD OF", "RESULT"), rows))
        if any(line.differing for line in lines):
            self.stderr.write(
                "Rows and entries differ: somebody wrote past the service. `audit_population --help` says what to do."
            )
            raise SystemExit(DIFFERS)
