"""`manage.py import_routes`: what a gateway serves, in; and every path that stands against it, out."""

from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from compliance.selectors.routing import plain_report, read_routing_report, report_lines
from compliance.services.routing import import_routes
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.routing_forms import FORMS
from policies.language.routing_text import MAX_BYTES
from policies.selectors.systems import get_system

ACTOR = "import-routes"


class Command(ExampleCommand):
    help = (
        "Hand in what a LiteLLM gateway serves, its config.yaml, or what an application asks of OpenRouter, each request by name below "
        "`openrouter_routes:`. Keys, passwords and prompts in it are neither kept nor shown. Each name becomes a route, with a new "
        "version when the set of models behind it has changed. Exit code 2: refused, nothing changed."
    )
    examples: ClassVar[str] = """\
  manage.py import_routes config.yaml
  manage.py import_routes config.yaml --name prod-gateway
  manage.py import_routes openrouter.yaml --name hr-app
  manage.py import_routes config.yaml --system hr-prod    shows each path to what has no live grant to write there
  manage.py import_routes config.yaml --system hr-prod --action delete
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--name", metavar="NAME", help=f"the gateway (default: {' or '.join(FORMS)}, as the file is)")
        parser.add_argument("--system", metavar="KEY", help="hold every name against the live grants for this system")
        parser.add_argument("--action", default="write", metavar="WORD", help="and this action (default: write)")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        system = get_system(options["system"]) if options["system"] else None
        try:
            with path.open("rb") as stream:
                body = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise InputRefused([Problem(error.strerror or "it cannot be read", str(path))]) from None
        made = import_routes(actor=system_job(ACTOR), body=body, name=options["name"], filename=path.name)
        state = "in effect" if made.is_new else "in effect already"
        self.stdout.write(f"{path.name}: {made.inventory.digest} is {state} for `{made.inventory.name}`")
        for each in made.registered:
            self.stdout.write(f"registered: {each}")
        at = now()
        if system is None:
            lines = report_lines(plain_report(made.inventory, at), held=False)
        else:
            lines = report_lines(read_routing_report(made.inventory, system, options["action"], at), held=True)
        for line in lines:
            self.stdout.write(line)
