"""The form for Open Policy Agent: its files and signatures by OPA's own rules, and the policy in a Rego engine."""

import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat, load_pem_private_key
from hypothesis import example, given, settings
from hypothesis import strategies as st
from regopy import Interpreter

from compliance.client.offline import Bundle
from compliance.ledger.offline import Statement, read_statement, write_statement
from compliance.ledger.opa import KEY_ID, KeyRefused, place_of, read_signer, write_archive
from tests.support.bundles import KEY, fingerprint, line, sealed, statement


def pem(key: Any) -> str:
    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text.decode()


P256 = pem(ec.generate_private_key(ec.SECP256R1()))
RSA = pem(rsa.generate_private_key(65537, 2048))


def archive(made: Statement, key: str = P256) -> dict[str, bytes]:
    """Return the files of a statement's archive."""
    data = write_archive(write_statement(made), read_signer(key))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}


def opa_hash(name: str, content: bytes) -> str:
    """Return the hash of a file by OPA's rules: of JSON over the parsed value, each key in order (v1/bundle/hash.go)."""
    hashed = hashlib.sha256()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            hashed.update(b"{")
            for place, key in enumerate(sorted(value)):
                hashed.update(b"," if place else b"")
                walk(key)
                hashed.update(b":")
                walk(value[key])
            hashed.update(b"}")
        elif isinstance(value, list):
            hashed.update(b"[")
            for place, item in enumerate(value):
                hashed.update(b"," if place else b"")
                walk(item)
            hashed.update(b"]")
        else:
            told = json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
            hashed.update(told.encode())

    if name in (".manifest", "data.json"):
        walk(json.loads(content))
    else:
        hashed.update(content)
    return hashed.hexdigest()


@pytest.mark.parametrize(("key", "algorithm"), [(P256, "ES256"), (RSA, "RS256")])
def test_the_signature_covers_every_file_by_opas_rules(key: str, algorithm: str) -> None:
    files = archive(statement(line(names=('schnell ü\u2028"<&>',)), line("other")), key)
    (token,) = json.loads(files[".signatures.json"])["signatures"]
    public = load_pem_private_key(key.encode(), None).public_key()
    claims = jwt.decode(token, public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), algorithms=[algorithm])
    assert jwt.get_unverified_header(token) == {"alg": algorithm, "kid": KEY_ID, "typ": "JWT"}
    assert claims["keyid"] == KEY_ID
    assert "scope" not in claims, "OPA compares it with its configuration, where none is set by default"
    signed = {one["name"]: one for one in claims["files"]}
    assert set(signed) == set(files) - {".signatures.json"}
    for name, one in signed.items():
        assert one == {"algorithm": "SHA-256", "hash": opa_hash(name, files[name]), "name": name}


@pytest.mark.parametrize("key", [P256, RSA])
def test_the_same_list_is_the_same_bytes(key: str) -> None:
    payload = write_statement(statement(line(), line("other")))
    assert write_archive(payload, read_signer(key)) == write_archive(payload, read_signer(key))


def test_the_manifest_says_which_list_it_is_and_keeps_to_its_roots() -> None:
    made = statement(line(), system="eu/hr-prod")
    files = archive(made)
    manifest = json.loads(files[".manifest"])
    assert manifest["revision"].startswith("7-")
    assert manifest["roots"] == ["writegate/eu~hr-prod", "writegate_lists/eu~hr-prod"]
    assert list(json.loads(files["data.json"])) == ["writegate_lists"]
    assert list(json.loads(files["data.json"])["writegate_lists"]) == ["eu~hr-prod"]
    assert b'package writegate["eu~hr-prod"]' in files["policy.rego"]


@pytest.mark.parametrize(
    "key", ["", "nonsense", pem(ed25519.Ed25519PrivateKey.generate()), pem(ec.generate_private_key(ec.SECP384R1()))]
)
def test_a_key_that_opa_does_not_take_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(KeyRefused) as caught:
        read_signer(key)
    assert not key or key not in str(caught.value)


# --- the policy, in a Rego engine


class Engine:
    """A Rego engine that has loaded an archive."""

    def __init__(self, made: Statement) -> None:
        files = archive(made)
        self._place = place_of(made.system)
        self._engine = Interpreter()
        self._engine.add_module("policy.rego", files["policy.rego"].decode())
        self._engine.add_data_json(files["data.json"].decode())

    def allow(self, asked: Any) -> Any:
        """Return what the policy says: never anything but true or false."""
        self._engine.set_input(asked)
        found = json.loads(str(self._engine.query(f'x := data.writegate["{self._place}"].allow')))
        return found["bindings"]["x"]


def question(
    subject: str = "hr-agent", *, kind: str = "agent", action: str = "write", system: str = "hr-prod", **held: str
) -> Any:
    properties = {"properties": held} if held else {}
    return {
        "subject": {"type": kind, "id": subject, **properties},
        "action": {"name": action},
        "resource": {"type": "system", "id": system},
    }


def test_the_policy_allows_what_is_listed() -> None:
    assert Engine(statement(line())).allow(question()) is True
    assert Engine(statement(line(), system="eu/hr-prod")).allow(question(system="eu/hr-prod")) is True


@pytest.mark.parametrize(
    "asked",
    [
        {},
        None,
        [],
        "hr-agent",
        question("other"),
        question(action="delete"),
        question(system="it-prod"),
        question(kind="model"),
        question(fingerprint="sha256:0"),
        question(fingerprint=""),
        {**question(), "resource": {"type": "record", "id": "hr-prod"}},
        {**question(), "subject": {"id": "hr-agent"}},
        {**question(), "subject": "hr-agent"},
        {**question(), "action": "write"},
        {**question(), "subject": {"type": "agent", "id": ["hr-agent"]}},
        {**question(), "subject": {"type": "agent", "id": "hr-agent", "properties": {"fingerprint": None}}},
        {name: part for name, part in question().items() if name != "resource"},
        {name: part for name, part in question().items() if name != "action"},
    ],
    ids=str,
)
def test_the_policy_denies_everything_else(asked: Any) -> None:
    assert Engine(statement(line())).allow(asked) is False


def test_the_policy_refuses_a_list_from_its_end_on_and_before_its_beginning() -> None:
    assert Engine(statement(line(), ago=299)).allow(question()) is True
    assert Engine(statement(line(), ago=301)).allow(question()) is False
    assert Engine(statement(line(), ago=-20)).allow(question()) is True
    assert Engine(statement(line(), ago=-40)).allow(question()) is False
    past = datetime.now(UTC).replace(year=2025).isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert Engine(statement(line(valid_until=past))).allow(question()) is False


def test_without_its_list_the_policy_denies() -> None:
    files = archive(statement(line()))
    engine = Interpreter()
    engine.add_module("policy.rego", files["policy.rego"].decode())
    engine.set_input(question())
    assert json.loads(str(engine.query('x := data.writegate["hr-prod"].allow')))["bindings"]["x"] is False


SUBJECTS = ("hr-agent", "odd@9", "other")
LISTS = st.lists(
    st.builds(
        lambda subject, version, kind, runs, action, names: line(
            subject, version, kind=kind, runs=runs, action=action, names=tuple(names)
        ),
        st.sampled_from(SUBJECTS),
        st.integers(1, 2),
        st.sampled_from(["agent", "model"]),
        st.booleans(),
        st.sampled_from(["write", "delete"]),
        st.sets(st.sampled_from(["fast", "slow"])),
    ),
    max_size=5,
    unique_by=lambda made: (made.subject, made.version, made.action),
)
NAMES = st.sampled_from([*SUBJECTS, "hr-agent@1", "hr-agent@2", "odd@9@1", "fast", "slow"])


@settings(max_examples=150, deadline=None)
@given(
    lines=LISTS,
    subject=NAMES,
    kind=st.sampled_from(["agent", "model", "subject", "alias"]),
    action=st.sampled_from(["write", "delete"]),
    stated=st.sampled_from(["", *(fingerprint(f"{subject}@{number}") for subject in SUBJECTS for number in (1, 2))]),
)
@example(
    lines=[line("hr-agent", 1, action="write", names=("fast",)), line("hr-agent", 1, action="delete", names=())],
    subject="fast",
    kind="alias",
    action="delete",
    stated="",
)
def test_the_policy_and_the_client_answer_alike(lines: list[Any], subject: str, kind: str, action: str, stated: str) -> None:
    made = statement(*lines)
    bundle = Bundle.verified(sealed(made), system="hr-prod", keys=[KEY.verifier])
    answer = bundle.check(subject, action, stated or None, type=kind)
    told = Engine(made).allow(question(subject, kind=kind, action=action, **({"fingerprint": stated} if stated else {})))
    # Two lines that one name means, which no gate makes, are a deny to the client alone.
    assert told is bool(answer) or (not answer.allowed and _ambiguous(made, subject, kind, action))


def _ambiguous(made: Statement, subject: str, kind: str, action: str) -> bool:
    own = [one for one in read_statement(write_statement(made)).lines if one.action == action]
    named = [one for one in own if subject in ((one.names) if kind == "alias" else (one.subject,))]
    return len(named) > 1
