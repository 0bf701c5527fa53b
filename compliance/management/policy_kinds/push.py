"""`manage.py policy push`: the texts of a folder as proposed versions."""

import argparse
from pathlib import Path
from typing import Any

from compliance.management.policy_kinds.folder import (
    MANIFEST,
    Pulled,
    counted,
    policy_of,
    read_manifest,
    texts_in,
    write_manifest,
)
from compliance.management.policy_kinds.texts import read
from compliance.models import User
from compliance.models.people import normalise_email
from evaluations.kernel.actor import Actor, person
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.document import MAX_BYTES
from policies.selectors.proposing import Draft, Examined, examine_drafts
from policies.services.policies import propose_policy_versions

HELP = (
    "Propose every text of DIR that is new, all of them or none: what is proposed comes into force by signatures alone. "
    f"A text must be written from the newest version, as DIR/{MANIFEST} says which one was pulled. "
    "Exit codes: 0 done, 2 refused with every problem, and nothing was changed."
)
EXAMPLES = """\
  manage.py policy push policies/ --dry-run                        what would be proposed, and is anything wrong with it?
  manage.py policy push policies/ --author ada@example.com         her texts: she will not sign for them
  manage.py policy push policies/ --author ada@example.com --over-newer      though somebody proposed a version since
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--author", metavar="EMAIL", help="who wrote the texts, by the address of her account")
    parser.add_argument("--dry-run", action="store_true", help="say what would be proposed, and change nothing")
    parser.add_argument(
        "--over-newer", action="store_true", help="also where another version was proposed since the text was pulled"
    )


def run(out: Any, options: dict[str, Any]) -> int:
    folder: Path = options["folder"]
    pulled = read_manifest(folder)
    drafts = _drafts(folder, pulled, settled=options["over_newer"])
    if options["dry_run"]:
        examined = examine_drafts(drafts)
        _tell(out, examined)
        out.write("Nothing was changed.")
        return 0
    made = propose_policy_versions(actor=_author(options["author"]), drafts=drafts)
    for version in made:
        out.write(f"{version.policy.name}: proposed as v{version.number}")
    out.write(f"{counted(len(drafts), 'policy', 'policies')}, {counted(len(made), 'new version', 'new versions')}")
    # What was proposed here is what the next change is written from.
    write_manifest(folder, {**pulled, **{v.policy.name: Pulled(v.policy.name, v.number, v.digest) for v in made}})
    return 0


def _drafts(folder: Path, pulled: dict[str, Pulled], *, settled: bool) -> list[Draft]:
    problems: list[Problem] = []
    drafts = []
    for path in texts_in(folder):
        try:
            name = policy_of(path)
            base = pulled[name].version if name in pulled else None
            drafts.append(Draft(read(str(path), MAX_BYTES), str(path), name, base, settled))
        except InputRefused as refusal:
            problems += refusal.problems
    if problems:
        # What else is wrong is told with it.
        try:
            examine_drafts(drafts)
        except InputRefused as refusal:
            problems += refusal.problems
        raise InputRefused(problems)
    return drafts


def _tell(out: Any, examined: list[Examined]) -> None:
    for draft, policy, known in examined:
        held = "unchanged" if known is not None else "new" if draft.base is None else f"changed since v{draft.base}"
        out.write(f"{policy.name}: {held}" + (f" (v{known.number})" if known is not None else ""))


def _author(email: str | None) -> Actor:
    """Return who proposes: a person, for whoever wrote a policy does not sign for it."""
    if not email:
        raise InputRefused([Problem("say who wrote the texts: she does not sign for them", field="--author", hint="an address")])
    user = User.objects.filter(is_active=True, email__iexact=normalise_email(email)).first()
    if user is None:
        raise InputRefused([Problem(f"no active account `{email}`", field="--author")])
    return person(user.person_id)
