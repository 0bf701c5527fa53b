"""What judgement cores say of their verdicts. It never changes under their digests, and is kept under those."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from compliance.deciding.facts import Value
from compliance.selectors.dossiers.access import deciding_of
from policies.models import Verdict

MOST_EVIDENCE = 20
"""So many pieces of evidence are named of each verdict and rule; all of them stand under the verdict."""
CORES_KEPT = 4_096

_said: "OrderedDict[str, Value]" = OrderedDict()
_said_lock = Lock()


def read_cores(wanted: Mapping[str, int]) -> dict[str, Value]:
    """Return what cores say, by digest, of verdicts' ids by it: from what was read before, else in one query."""
    found = {digest: held for digest in wanted if (held := _said.get(digest)) is not None}
    missing = [pk for digest, pk in wanted.items() if digest not in found]
    if missing:
        cores = Verdict.objects.filter(pk__in=missing).values_list("core_digest", "core")
        read = {digest: said_in_core(json.loads(bytes(core))) for digest, core in cores}
        found.update(read)
        with _said_lock:
            _said.update(read)
            while len(_said) > CORES_KEPT:
                _said.popitem(last=False)
    return found


def said_in_core(core: Mapping[str, Any]) -> Value:
    """Return what the facts of a decision hold of a parsed judgement core."""
    rules = {rule["id"]: rule for rule in core["rules"]}
    evidence = dict.fromkeys(uid for rule in core["rules"] for uid in sorted(deciding_of(rule)))
    return {
        "blocking": [_rule(rules[name]) for name in core["blocking"]],
        "waivable": [_rule(rules[name]) for name in core["waivable"]],
        "evidence": list(evidence)[:MOST_EVIDENCE],
    }


def _rule(rule: Mapping[str, Any]) -> Value:
    told = {name: rule[name] for name in ("result", "reason", "clause", "measured", "bar", "n")}
    return {"rule": rule["id"], **told, "evidence": rule["deciding"][:MOST_EVIDENCE]}
