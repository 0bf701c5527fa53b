"""`manage.py policy schema`: the shape of a policy text, for editors."""

import argparse
import json
from typing import Any

from policies.language.compiler import json_schema

HELP = "Print the JSON Schema of a policy text."
EXAMPLES = "  manage.py policy schema > policy.schema.json\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Takes none."""


def run(out: Any, options: dict[str, Any]) -> int:
    out.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0
