"""The two scanners held against each other: whatever the fast one takes, the exact one takes alike, in value and in every place."""

import random
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.kernel.canonical import digest
from policies.language import document
from policies.language.compiled import Rule
from policies.language.document import read_document, read_exactly
from tests.policies.language.building import HARM, REFUSAL, compiled, policy_text
from tests.policies.language.hostile import texts as hostile_texts

LIBRARY = sorted((Path(__file__).resolve().parents[3] / "policies" / "library").glob("*.yaml"))
PIECES = (
    *"abc-:{}[],'\"|>?!&*%@`\\#~é日‰🙂=.",
    *("\n", "\n  ", "\n    ", " ", "  ", ": ", "- ", ", ", " # c", "a: ", "b: ", "&a ", "*a", "!t ", "<<: *a", "? a\n: b\n"),
    *("80", "80.0", "1_000", "1:30", "off", "true", "null", "0x1F", "2026-07-01", "...", "---\n", "%YAML 1.1\n", "http://x:1/#y"),
    *(
        "''",
        '""',
        "\\\n",
        "\\n",
        '"\\u00e9"',
        '"\\ud83d\\ude00"',
        '"\\/"',
        "{a: 1}",
        "{a:1}",
        '{"a":1}',
        "[x]",
        "[a: b]",
        "{a, b}",
    ),
    *("key: >\n  x\n  y\n", "key: |+\n  x\n\n", "'a\n b'", "- - a\n", "\t", "\r\n", "\x85", "\u2028", "\u00a0", "\ufeff"),
)


def alike(text: str) -> bool:
    """Hold the reader against the exact one, and say whether the fast one took the text."""
    if text.startswith("\ufeff"):
        # Refused before anybody scans it.
        return False
    given_bytes = text.encode()
    root, problems = read_exactly(text)
    assert read_document(given_bytes) == (root, problems), text
    fast = document._read_fast(given_bytes, text)
    assert fast is None or (fast == root and not problems), text
    return fast is not None


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_the_library_is_read_alike_and_fast_where_it_has_no_text_blocks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert alike(text) is not any(line.rstrip().endswith((": >", ": |", ": >-", ": |-")) for line in text.splitlines())


def test_a_plain_policy_is_read_fast_and_names_its_places_alike() -> None:
    assert alike(policy_text().decode())
    assert alike('{"a": [1, "b", true], "c": {"d": "e: f"}}\n')
    assert alike("título: 'ein – Wort 日本'\nb: x # y\n")


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: &x 1\nb: *x\n",
        "a: !!int 1\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: 1\n---\nb: 2\n",
        "a: 1\n...\n",
        "a: off\n",
        "a: 1_000\n",
        "a: 1:30\n",
        "a:\n",
        "a: >\n  x\n  y\n",
        "a: |\n  x\n",
        "a:\t1\n",
        "a: 1\r\nb: 2\r\n",
        "a: x\x85y\n",
        "a: x\u2028y\n",
        "a: [" + "[" * 20 + "]" * 20 + "]\n",
        "a: 'x\n",
        "",
        "# nothing\n",
        'a: "\\ud83d"\n',
    ],
)
def test_what_is_no_plain_text_without_a_problem_is_the_exact_readers(text: str) -> None:
    assert not alike(text)


def test_hostile_texts_are_read_alike() -> None:
    for name, text in hostile_texts().items():
        if len(text) < 20_000:
            assert not alike(text.decode()), name


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join))
def test_made_up_texts_are_read_alike(text: str) -> None:
    alike(text)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(LIBRARY))
def test_changed_policies_are_read_alike(seed: int, path: Path) -> None:
    chance = random.Random(seed)
    text = path.read_text(encoding="utf-8")
    start = chance.randrange(len(text))
    text = text[start : start + chance.randrange(10, 400)]
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(text) + 1)
        text = text[:place] + chance.choice(PIECES) + text[place + chance.randrange(3) :]
    alike(text)


def test_without_libyaml_the_exact_reader_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with_it = read_document(policy_text())
    monkeypatch.setattr(document, "CParser", None)
    assert read_document(policy_text()) == with_it


def test_the_digest_of_a_rule_is_that_of_all_that_its_meaning_rests_on() -> None:
    rules = "    - {id: a, evidence: refusal, at_least: {param: floor}}\n    - {id: b, evidence: refusal, at_least: 80}"
    both = "    - {id: c, any_of: [{evidence: refusal, at_least: 81}, {evidence: harm, at_most: 5}]}"
    policy = compiled(policy_text(f"{rules}\n{both}", evidence=f"{REFUSAL}\n{HARM}", params="{floor: 85}"))
    spec = policy.resolved["spec"]
    stated = {rule["id"]: rule for rule in spec["rules"]}
    for rule in policy.rules:
        assert rule.digest == _whole_digest(rule, stated[rule.id], spec)


def _whole_digest(rule: Rule, stated: dict[str, object], spec: dict[str, dict[str, object]]) -> str:
    params = {name: Decimal(str(number)) for name, number in spec["params"].items() if f"'{name}'" in str(stated)}
    return digest({"rule": stated, "evidence": {name: spec["evidence"][name] for name in rule.clauses}, "params": params})
