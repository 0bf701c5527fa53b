"""`manage.py audit_population`: does every governed row have its entry, and every entry its row?"""

from typing import Any, ClassVar

from compliance.selectors.population import population_report
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.tables import text_table

DIFFERS = 1


class Command(ExampleCommand):
    help = (
        "Count the rows of every governed table beside the ledger entries that tell of them, and name what differs. "
        "Exit 1 where something does."
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
            raise SystemExit(DIFFERS)
