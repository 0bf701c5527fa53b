"""The names of people beside an export: each must be the one that the entries commit to. Pure."""

from hashlib import sha256

from compliance.ledger import bundle
from compliance.ledger.findings import Kind, Report
from compliance.ledger.parts import PartBroken, Parts, read_small

_WORDS = {"commitment", "name", "person", "salt"}


def check_names(parts: Parts, named: set[tuple[str, str]], report: Report) -> None:
    """Check every name against `named`, the (person, commitment) pairs of the entries."""
    try:
        value = bundle.read_json(read_small(parts, bundle.NAMES))
        rows = value["names"]
        if set(value) != {"names"} or not isinstance(rows, list):
            raise TypeError
    except PartBroken as error:
        report.add(Kind.ALTERED, error.problem, part=bundle.NAMES)
        return
    except (bundle.NotJson, KeyError, TypeError):
        report.add(Kind.ALTERED, "it is not a list of names", part=bundle.NAMES)
        return
    fitting = 0
    for row in rows:
        if _fits(row, named):
            fitting += 1
        else:
            person = row.get("person", "?") if isinstance(row, dict) else "?"
            problem = f"the name given for person {str(person)[:60]} is not the one that the entries commit to"
            report.add(Kind.ALTERED, problem, part=bundle.NAMES)
    report.facts["names"] = f"{fitting} of {len(named)} commitments have their name here"


def _fits(row: object, named: set[tuple[str, str]]) -> bool:
    if not isinstance(row, dict) or set(row) != _WORDS or not all(isinstance(value, str) for value in row.values()):
        return False
    try:
        salted = bytes.fromhex(row["salt"])
    except ValueError:
        return False
    if salted.hex() != row["salt"]:
        return False
    commitment = "sha256:" + sha256(salted + row["name"].encode()).hexdigest()
    return commitment == row["commitment"] and (row["person"], commitment) in named
