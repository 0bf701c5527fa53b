"""`manage.py ledger_key`: the public key to give to whoever shall verify, and the change of key."""

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from compliance.services.sealing import keyring, rotate_signing_key, seal
from evaluations.kernel.actor import system_job
from evaluations.kernel.commands import ExampleCommand


class Command(ExampleCommand):
    help = (
        "Print the log's public key, as `writegate verify --key` takes it. With --rotate, put a new key into the key file and announce "
        "it in the log under both; where the key comes from WRITEGATE_LEDGER_KEY, put the new one on its first line instead, and the "
        "old one below it."
    )
    examples: ClassVar[str] = """\
  manage.py ledger_key
  manage.py ledger_key --rotate
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rotate", action="store_true", help="change to a new key")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rotate"]:
            seal()
            rotate_signing_key(actor=system_job("ledger-key"))
            seal()
        self.stdout.write(str(keyring().current.verifier))
