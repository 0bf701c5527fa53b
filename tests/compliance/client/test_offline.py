"""Deciding by an offline bundle: what allows, and that everything odd denies."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.client.offline import Bundle, BundleRefused, parse_keys
from compliance.client.outcome import Refused
from compliance.ledger.note import SignerKey
from compliance.ledger.offline import PAYLOAD_TYPE, key_name, write_statement
from evaluations.kernel.dsse import pae, seal_envelope
from tests.compliance.client.test_cli import ROOT, run
from tests.support.bundles import KEY, OTHER_KEY, checkpoint, fingerprint, line, sealed, statement
from tests.support.process import clean_environment

KEYS = parse_keys([str(KEY.verifier)])


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "seen"


def read(data: bytes, state: Path, *, system: str = "hr-prod") -> Bundle:
    return Bundle.read(data, system=system, keys=KEYS, state=state)


def refusal(data: bytes, state: Path, **more: Any) -> str:
    """Return the code with which bytes are refused."""
    with pytest.raises(BundleRefused) as caught:
        read(data, state, **more)
    return caught.value.code


def test_what_is_listed_is_allowed_and_nothing_else(state: Path) -> None:
    bundle = read(sealed(statement(line())), state)
    answer = bundle.check("hr-agent")
    assert answer
    assert answer.certain
    assert answer.subject == ("hr-agent", 1, fingerprint("hr-agent@1"))
    assert answer.valid_until == bundle.statement.expires_at
    for asked in (("other",), ("hr-agent", "delete"), ("hr-agent@2",), ("hr-agent ",), ("",), ("HR-AGENT",)):
        denied = bundle.check(*asked)
        assert (bool(denied), denied.certain, denied.reason) == (False, True, "not_in_bundle"), asked


def test_a_line_ends_before_its_bundle_where_it_says_so(state: Path) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=20)
    bundle = read(sealed(statement(line(valid_until=soon.isoformat(timespec="microseconds").replace("+00:00", "Z")))), state)
    assert bundle.check("hr-agent").valid_until == soon
    past = line(valid_until="2026-01-01T00:00:00.000000Z")
    assert read(sealed(statement(past, serial=8)), state).check("hr-agent").reason == "out_of_date"


@pytest.mark.parametrize(
    ("asked", "more", "allowed"),
    [
        ("hr-agent", {}, "hr-agent@2"),
        ("hr-agent@1", {}, "hr-agent@1"),
        ("hr-agent@3", {}, ""),
        ("hr-agent", {"fingerprint": fingerprint("hr-agent@1")}, "hr-agent@1"),
        ("hr-agent@2", {"fingerprint": fingerprint("hr-agent@2")}, "hr-agent@2"),
        ("hr-agent@2", {"fingerprint": fingerprint("hr-agent@1")}, ""),
        ("hr-agent", {"fingerprint": fingerprint("another")}, ""),
        ("hr-agent", {"type": "model"}, ""),
        ("hr-agent", {"type": "subject"}, "hr-agent@2"),
        ("hr-agent", {"type": "alias"}, ""),
        ("fast", {"type": "alias"}, "hr-agent@2"),
        ("fast", {"type": "alias", "fingerprint": fingerprint("hr-agent@2")}, "hr-agent@2"),
        ("fast", {"type": "alias", "fingerprint": fingerprint("hr-agent@1")}, ""),
        ("fast", {}, ""),
        ("odd@9", {}, ""),
        ("odd@9@1", {}, "odd@9@1"),
    ],
)
def test_names_mean_what_they_mean_to_the_gate(asked: str, more: dict[str, str], allowed: str, state: Path) -> None:
    lines = (line(runs=False), line(version=2, names=("fast",)), line("odd@9"))
    answer = read(sealed(statement(*lines)), state).check(asked, **more)
    assert bool(answer) is bool(allowed)
    if allowed:
        assert f"{answer.subject.key}@{answer.subject.version}" == allowed


# --- everything odd denies


def _of(**changes: Any) -> Callable[[], bytes]:
    return lambda: sealed(statement(line(), **changes))


def _other_type() -> bytes:
    payload = write_statement(statement(line()))
    return seal_envelope("application/json", payload, {key_name(KEY.verifier): KEY.sign})


def _respelt(change: Callable[[Any], Any]) -> Callable[[], bytes]:
    """Return a file whose payload was changed and signed again, by the right key."""

    def make() -> bytes:
        value = json.loads(write_statement(statement(line())))
        changed = change(value)
        payload = changed if isinstance(changed, bytes) else json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        return seal_envelope(PAYLOAD_TYPE, payload, {key_name(KEY.verifier): KEY.sign})

    return make


def _envelope(change: Callable[[dict[str, Any]], Any]) -> Callable[[], bytes]:
    """Return a file whose envelope was changed."""

    def make() -> bytes:
        value = json.loads(sealed(statement(line())))
        change(value)
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    return make


def _twice_signed(value: dict[str, Any]) -> None:
    value["signatures"].append(value["signatures"][0])


ODD: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "not_a_bundle"),
    "another key": (lambda: sealed(statement(line()), OTHER_KEY), "not_a_bundle"),
    "expired": (_of(ago=301), "out_of_date"),
    "ends this instant": (_of(ago=300), "out_of_date"),
    "made in the future": (_of(ago=-40), "out_of_date"),
    "counts for two hours": (_of(seconds=7_200), "not_a_bundle"),
    "ends before it begins": (_of(seconds=-5, ago=-10), "not_a_bundle"),
    "another system": (_of(system="it-prod"), "wrong_system"),
    "a checkpoint of another key": (_of(checkpoint=checkpoint(key=OTHER_KEY)), "not_a_bundle"),
    "a checkpoint of another log": (_of(checkpoint=checkpoint(origin="other.example.org/ledger")), "not_a_bundle"),
    "no checkpoint": (_of(checkpoint="none"), "not_a_bundle"),
    "another payload type": (_other_type, "not_a_bundle"),
    "another predicate": (_respelt(lambda value: value.update(predicateType="urn:other")), "not_a_bundle"),
    "one member more": (_respelt(lambda value: value["predicate"].update(more=1)), "not_a_bundle"),
    "one member less": (_respelt(lambda value: value["predicate"].pop("serial")), "not_a_bundle"),
    "a serial number of text": (_respelt(lambda value: value["predicate"].update(serial="7")), "not_a_bundle"),
    "a line of another list": (_respelt(lambda value: value["predicate"]["allowed"][0].update(subject="x")), "not_a_bundle"),
    "spaces": (_respelt(lambda value: json.dumps(value).encode()), "not_a_bundle"),
    "no JSON": (_respelt(lambda value: b"{"), "not_a_bundle"),
    "two signatures": (_envelope(_twice_signed), "not_a_bundle"),
    "no signature": (_envelope(lambda value: value.update(signatures=[])), "not_a_bundle"),
    "a hint at another key": (_envelope(lambda value: value["signatures"][0].update(keyid="x")), "not_a_bundle"),
    "an envelope with more in it": (_envelope(lambda value: value.update(more=1)), "not_a_bundle"),
    "a deep one": (lambda: b'{"payload":' + b"[" * 100_000, "not_a_bundle"),
}


PAST = ("expired", "ends this instant")


@pytest.mark.parametrize("name", ODD)
def test_nothing_odd_is_a_bundle(name: str, state: Path) -> None:
    make, code = ODD[name]
    assert refusal(make(), state) == code
    assert state.exists() is (name in PAST), "that one ended is remembered, and nothing else"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_file_is_none(share: float, state: Path) -> None:
    data = sealed(statement(line()))
    assert refusal(data[: int(len(data) * share)], state) == "not_a_bundle"


@settings(max_examples=400, deadline=None)
@given(place=st.integers(min_value=0, max_value=10**6), flip=st.integers(min_value=1, max_value=255))
def test_no_flipped_byte_allows(place: int, flip: int) -> None:
    data = bytearray(sealed(statement(line())))
    data[place % len(data)] ^= flip
    with pytest.raises(BundleRefused):
        Bundle.verified(bytes(data), system="hr-prod", keys=KEYS)


def test_no_byte_of_it_can_be_flipped() -> None:
    """Every byte once: a bit of each, which also makes another letter of base64."""
    data = sealed(statement(line(), serial=1))
    for place in range(len(data)):
        with pytest.raises(BundleRefused):
            Bundle.verified(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], system="hr-prod", keys=KEYS)


def test_what_signs_a_bundle_signs_no_checkpoint() -> None:
    """One key signs both. What DSSE has it sign begins with a word and a space, which no log's origin holds."""
    signed = pae(PAYLOAD_TYPE, write_statement(statement()))
    assert b" " in signed.split(b"\n")[0]
    with pytest.raises(ValueError, match="spaces"):
        SignerKey(signed.split(b"\n")[0].decode()[:40], b"\x01" * 32)


# --- nothing goes back


def test_an_older_bundle_is_refused_once_a_newer_one_was_seen(state: Path) -> None:
    old, new = sealed(statement(line(), serial=7)), sealed(statement(serial=8))
    assert read(old, state).check("hr-agent")
    assert read(old, state).check("hr-agent"), "the same again"
    assert not read(new, state).check("hr-agent")
    assert refusal(old, state) == "older"


def test_two_bundles_with_one_serial_number_are_not_both_taken(state: Path) -> None:
    read(sealed(statement(line(), serial=7)), state)
    assert refusal(sealed(statement(serial=7)), state) == "older"


@pytest.mark.parametrize("log", [checkpoint(2), checkpoint(3, leaves="other")])
def test_a_log_that_shrank_or_was_forked_is_refused(log: str, state: Path) -> None:
    read(sealed(statement(serial=7)), state)
    assert refusal(sealed(statement(serial=8, checkpoint=log)), state) == "older"
    read(sealed(statement(serial=8, checkpoint=checkpoint(4))), state)


def test_systems_are_remembered_apart(state: Path) -> None:
    read(sealed(statement(serial=9)), state)
    read(sealed(statement(serial=1, system="it-prod")), state, system="it-prod")
    assert refusal(sealed(statement(serial=8)), state) == "older"


def test_a_clock_that_was_set_back_does_not_make_an_old_bundle_young(state: Path) -> None:
    expired = sealed(statement(line(), ago=400, seconds=300))
    remembered = {
        "at": (datetime.now(UTC)).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "root": "", "serial": 0, "size": 0, "tag": "",
    }  # fmt: skip
    state.write_text(json.dumps({"hr-prod": remembered}))
    back = datetime.now(UTC) - timedelta(seconds=200)
    bundle = Bundle.verified(expired, system="hr-prod", keys=KEYS, clock=lambda: back)
    assert bundle.check("hr-agent"), "by that clock alone it would count"
    from compliance.client.seen import remembering

    with remembering(state, "hr-prod") as memory, pytest.raises(BundleRefused, match="set back"):
        bundle.seen_after(memory.seen)


def test_a_bundle_that_was_seen_to_be_past_its_end_counts_by_no_clock_again(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, at = sealed(statement(line())), [datetime.now(UTC)]
    monkeypatch.setattr("compliance.client.offline._clock", lambda: lambda: at[0])
    assert read(data, state).check("hr-agent")
    at[0] += timedelta(seconds=301)
    assert refusal(data, state) == "out_of_date"
    at[0] -= timedelta(seconds=300)
    assert refusal(data, state) == "older"
    assert read(sealed(statement(line(), serial=8)), state).check("hr-agent"), "the next one counts"
    at[0] += timedelta(seconds=301)
    assert refusal(data, state) == "out_of_date"
    at[0] -= timedelta(seconds=300)
    assert read(sealed(statement(line(), serial=8)), state.with_name("other")).check("hr-agent")


def test_a_bundle_that_is_held_ends_while_it_is_held() -> None:
    at = datetime.now(UTC)
    clock = [at]
    bundle = Bundle.verified(sealed(statement(line())), system="hr-prod", keys=KEYS, clock=lambda: clock[0])
    assert bundle.check("hr-agent")
    for moment in (at + timedelta(seconds=301), at - timedelta(seconds=60)):
        clock[0] = moment
        answer = bundle.check("hr-agent")
        assert (bool(answer), answer.certain, answer.reason) == (False, False, "out_of_date")


def test_whoever_reads_at_once_remembers_the_newest(state: Path) -> None:
    files = [sealed(statement(line(), serial=serial)) for serial in range(1, 41)]
    Random(1).shuffle(files)

    def attempt(data: bytes) -> str:
        try:
            read(data, state)
        except BundleRefused as refused:
            return refused.code
        return ""

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(attempt, files)) <= {"", "older"}
    assert json.loads(state.read_text())["hr-prod"]["serial"] == 40


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hr-prod": {}}', '{"hr-prod": {"serial": true}}', '{"hr-prod": 3}'])
def test_a_damaged_memory_is_not_forgotten(text: str, state: Path) -> None:
    state.write_text(text)
    with pytest.raises(Refused, match="mend it"):
        read(sealed(statement(line())), state)
    assert state.read_text() == text


def test_where_nothing_can_be_remembered_nothing_is_decided(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be kept"):
        read(sealed(statement(line())), tmp_path / "no" / "such" / "folder")


# --- the command


def check(file: Path, *arguments: object) -> tuple[int, str, str]:
    return run("check", "--system", "hr-prod", "--offline", file, "--key", str(KEY.verifier), *arguments)


def test_the_command_ends_with_0_1_and_2(tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(sealed(statement(line())))
    code, out, err = check(file, "--subject", "hr-agent")
    assert (code, err) == (0, "")
    assert out.startswith("allow  hr-agent@1 may write at hr-prod, until 20")
    code, out, _ = check(file, "--subject", "other")
    assert (code, out) == (1, "DENY  not_in_bundle: the bundle does not list `other` for write at `hr-prod`\n")
    code, out, _ = check(file, "--subject", "hr-agent", "--fingerprint", fingerprint("another"))
    assert code == 1
    file.write_bytes(sealed(statement(line(), ago=301, serial=8)))
    code, out, _ = check(file, "--subject", "hr-agent")
    assert code == 2
    assert out.startswith("DENY  out_of_date: ")
    code, out, err = check(file, "--subject", "hr-agent", "--observe")
    assert code == 0
    assert "WOULD DENY" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--subject", "hr-agent", "--system", "hr-prod", "--offline", "{file}"),
        ("check", "--subject", "hr-agent", "--system", "hr-prod", "--offline", "{file}", "--key", "nonsense"),
        ("check", "--subject", "hr-agent", "--system", "hr-prod", "--offline", "{file}x", "--key", "{key}"),
        (
            "check",
            "--subject",
            "hr-agent",
            "--system",
            "hr-prod",
            "--offline",
            "{file}",
            "--key",
            "{key}",
            "--fingerprint-of",
            ".",
        ),
        ("check", "--subject", "hr-agent", "--system", "it-prod", "--offline", "{file}", "--key", "{key}"),
    ],
)
def test_what_is_missing_or_wrong_cannot_allow(arguments: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(sealed(statement(line())))
    code, out, _ = run(*(text.format(file=file, key=KEY.verifier) for text in arguments))
    assert code == 2
    assert out.startswith("DENY  ")


def test_verify_says_what_is_listed_and_what_is_wrong(tmp_path: Path) -> None:
    file, key = tmp_path / "bundle", tmp_path / "key"
    key.write_text(f"{KEY.verifier}\n")
    file.write_bytes(sealed(statement(line())))
    code, out, err = run("bundle", "verify", file, "--system", "hr-prod", "--key", key)
    assert (code, err) == (0, "")
    assert out.startswith("verifies  bundle 7 of hr-prod: 1 line, made 20")
    assert "  hr-agent@1 may write, until 20" in out
    code, out, _ = run("bundle", "verify", file, "--system", "hr-prod", "--key", key, "--json")
    told = json.loads(out)
    assert told["allowed"][0]["subject"] == "hr-agent"
    assert all(told[name].endswith("Z") and datetime.fromisoformat(told[name]).tzinfo for name in ("issued_at", "expires_at"))
    assert run("bundle", "verify", file, "--system", "hr-prod", "--key", str(OTHER_KEY.verifier))[0] == 1
    assert run("bundle", "verify", tmp_path / "none", "--system", "hr-prod", "--key", key)[0] == 2
    assert run("bundle", "verify", file, "--system", "hr-prod")[0] == 2


def test_the_command_needs_neither_django_nor_a_network(tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(sealed(statement(line())))
    program = (
        "import sys, socket\n"
        "for name in ('django', 'celery', 'rest_framework', 'psycopg'): sys.modules[name] = None\n"
        "def refuse(*_, **__): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        "from compliance.client.cli import main\n"
        f"sys.exit(main(['check', '--subject', 'hr-agent', '--system', 'hr-prod', '--offline', {str(file)!r}, "
        f"'--key', {str(KEY.verifier)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
