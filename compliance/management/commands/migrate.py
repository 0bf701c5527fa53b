"""`manage.py migrate`: Django's, as the owner role, followed by what the runtime role needs besides our own tables."""

from typing import Any

from django.core.management import CommandParser
from django.core.management.commands import migrate
from django.db import transaction

from compliance.privileges import grant_runtime_privileges


class Command(migrate.Command):
    help = "Bring the database up to date, as the owner role: --database is owner unless said otherwise, in place of Django's default."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        changes = not (options["plan"] or options["check_unapplied"] or options["prune"])
        # Before the first own table stands, or on the way back to zero, there may be nothing to grant on.
        if changes and options["database"] == "owner":
            with transaction.atomic(using="owner"):
                grant_runtime_privileges()
