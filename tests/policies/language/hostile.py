"""Texts that are meant to hurt whoever reads them, and the child process in which they are tried.

Run as a program it reads the names of the texts to try and prints, as JSON, for each: the codes of the problems (the first three,
and how many), CPU seconds, and by how many MiB the process's peak memory grew.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.memory import high_mark

ROOT = Path(__file__).resolve().parents[3]


def texts() -> dict[str, bytes]:
    """Return the hostile texts by name."""
    from tests.policies.language.building import policy_text

    def numbered(count: int, line: str) -> str:
        return "\n".join(line.replace("N", str(number)) for number in range(count))

    deep = 5_000
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
    )
    merged = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 2_000))
    long_or = " || ".join(["resource.reversible"] * 5_000)
    return {
        "300 KiB of comment": policy_text() + b"#" * 300 * 1024,
        "300 KiB of text": policy_text(metadata=f"{{name: a, title: '{'x' * 300 * 1024}'}}"),
        "10,000 rules": policy_text(numbered(10_000, "    - {id: rN, evidence: refusal, at_least: 80}")),
        "as many rules as fit": policy_text(numbered(5_000, "    - {id: rN, evidence: refusal, at_least: 80}")),
        "as many branches as fit": policy_text(
            "    - id: a\n      any_of:\n" + numbered(5_500, "        - {evidence: refusal, at_least: 80}")
        ),
        "deep lists": policy_text("    - " + "[" * 100_000),
        "deep mappings": policy_text("    - " + "{any_of: [" * deep + "]}" * deep),
        "deep blocks": policy_text("    - id: a\n" + "".join(f"{'  ' * (n + 3)}k:\n" for n in range(400))),
        "a bomb of aliases": bomb.encode(),
        "a bomb of merges": merged.encode(),
        "a bomb inside a policy": policy_text(more=bomb),
        "100 KB of CEL": policy_text(applies=f"{{actions: [write], when: '{long_or}'}}"),
        "100 KB of brackets in CEL": policy_text(applies=f"{{actions: [write], when: '{'(' * 50_000}true{')' * 50_000}'}}"),
        "100 KB of text in CEL": policy_text(applies=f"{{actions: [write], when: 'resource.key == \"{'x' * 100_000}\"'}}"),
        "many unknown keys": policy_text(more=numbered(19_000, "  kN: 1")),
        "one key, many times": policy_text(more=numbered(30_000, "  k: 1")),
        "many unknown evidences": policy_text(numbered(2_000, "    - {id: rN, evidence: refusaN, at_least: 80}")),
        "many documents": b"---\n" * 60_000,
        "a number of 200,000 digits": policy_text(f"    - {{id: a, evidence: refusal, at_least: {'9' * 200_000}}}"),
        "a quote that never ends": policy_text(metadata='{name: a, title: "' + "a\\n" * 80_000),
        "many anchors": policy_text(more="  tests: [" + ", ".join(f"&a{n} x" for n in range(9_000)) + "]"),
        "blank lines": b"\n" * 250_000,
        "spaces": policy_text(more=" " * 200_000 + "x"),
    }


def measured() -> dict[str, dict[str, Any]]:
    """Return what each text cost in a child process."""
    run = subprocess.run([sys.executable, "-m", "tests.policies.language.hostile"],
                         capture_output=True, check=True, cwd=ROOT, timeout=300)  # fmt: skip
    return dict(json.loads(run.stdout))


def main() -> None:
    from policies.language.compiler import PolicyRefused, compile_policy
    from tests.policies.language.building import NAMES, policy_text

    # What every process pays once is not a text's doing.
    compile_policy(policy_text(applies="{actions: [write], when: resource.reversible}"), NAMES)
    told = {}
    for name, text in texts().items():
        peak, began = high_mark(), time.process_time()
        codes: list[str] = []
        try:
            compile_policy(text, NAMES)
        except PolicyRefused as refusal:
            codes = [problem.code for problem in refusal.problems]
        told[name] = {
            "codes": codes[:3], "problems": len(codes), "seconds": time.process_time() - began, "mebibytes": high_mark() - peak,
        }  # fmt: skip
    print(json.dumps(told))


if __name__ == "__main__":
    main()
