"""`manage.py export_routes`: what a gateway may serve to whoever writes to a system, in the gateway's own form."""

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from compliance.selectors.routing import DEFAULT_NAME, allowed_routing, newest_inventory
from evaluations.kernel.clock import now
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import NotFound
from policies.language.routing_inventory import yaml_of
from policies.selectors.systems import get_system


class Command(ExampleCommand):
    help = (
        "Print the part of a gateway's inventory that is cleared for a system and action: the names behind which everything has a live "
        "grant, in the form it was handed in and without keys. Exit code 2: there is no such system or inventory."
    )
    examples: ClassVar[str] = """\
  manage.py export_routes --system hr-prod > allowed.yaml
  manage.py export_routes --system hr-prod --action delete --name prod-gateway
  manage.py export_routes --system hr-prod --name openrouter
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--system", required=True, metavar="KEY", help="the system to which is written")
        parser.add_argument("--action", default="write", metavar="WORD", help="what is done to it (default: write)")
        parser.add_argument("--name", default=DEFAULT_NAME, metavar="NAME", help=f"the gateway (default: {DEFAULT_NAME})")

    def handle(self, *args: Any, **options: Any) -> None:
        system = get_system(options["system"])
        inventory = newest_inventory(name=options["name"])
        if inventory is None:
            raise NotFound(f"nothing was handed in for `{options['name']}`: see manage.py import_routes --help")
        self.stdout.write(yaml_of(allowed_routing(inventory, system, options["action"], now())), ending="")
