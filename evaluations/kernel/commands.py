"""The frame of our management commands: examples in `--help`, refusals in plain words, and exit codes that mean something.

0 done · 1 something broke · 2 the input or the arguments were refused, and nothing was changed.
"""

import argparse
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from django.db import OperationalError, ProgrammingError, connection
from psycopg.errors import UndefinedColumn, UndefinedFunction, UndefinedTable

from evaluations.kernel.errors import DomainError, InputRefused

REFUSED = 2


class _Formatter(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Django's order of options, with the examples left as they are written."""


class ExampleCommand(BaseCommand):
    """A command with `examples` under its help, whose `DomainError`s end in one clear message each and exit code 2."""

    examples: ClassVar[str] = ""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        if self.examples:
            kwargs.setdefault("epilog", f"examples:\n{self.examples.rstrip()}")
        kwargs.setdefault("formatter_class", _Formatter)
        return super().create_parser(prog_name, subcommand, **kwargs)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except InputRefused as refusal:
            for problem in refusal.problems:
                self.stderr.write(f"error: {problem}")
        except DomainError as refusal:
            self.stderr.write(f"error: {refusal}")
        except (ProgrammingError, OperationalError) as error:
            if isinstance(error.__cause__, UndefinedTable | UndefinedColumn | UndefinedFunction):
                raise CommandError("the database is not up to date: run `manage.py quickstart` first") from None
            if isinstance(error, OperationalError) and not connection.is_usable():
                raise CommandError("the database does not answer; check DATABASE_URL") from error
            raise
        raise SystemExit(REFUSED)
