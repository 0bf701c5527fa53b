"""Signed notes, keys and checkpoints, as C2SP writes them."""

import base64

import pytest

from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    SignatureRefused,
    SignerKey,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    sign_note,
    verify_note,
)

# The examples of c2sp.org/signed-note and of Go's sumdb/note.
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
).encode()
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
GO_SIGNATURE = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"

LOG = SignerKey("log.example/audit", bytes(range(32)))
OTHER = SignerKey("log.example/audit", bytes(range(1, 33)))


def test_the_example_of_the_specification_verifies() -> None:
    key = VerifierKey.parse(EXAMPLE_KEY)
    note = parse_note(EXAMPLE)
    assert note.text == "This is an example message.\n"
    assert verify_note(note, [key]) == (key,)
    assert str(key) == EXAMPLE_KEY
    assert key.key_id.hex() == "530d903a"


def test_the_example_of_go_is_signed_to_the_same_bytes() -> None:
    key = SignerKey.parse(GO_SECRET)
    assert str(key.verifier) == GO_KEY
    assert key.secret_text() == GO_SECRET
    assert sign_note(GO_TEXT, [key]) == GO_TEXT + "\n" + GO_SIGNATURE


@pytest.mark.parametrize("place", [0, 26, len(EXAMPLE) - 4, len(EXAMPLE) - 40])
def test_a_changed_byte_does_not_verify(place: int) -> None:
    changed = bytearray(EXAMPLE)
    changed[place] = ord("A") if changed[place] != ord("A") else ord("B")
    with pytest.raises((NoteRefused, SignatureRefused)):
        verify_note(parse_note(bytes(changed)), [VerifierKey.parse(EXAMPLE_KEY)])


def test_every_single_bit_of_a_note_counts() -> None:
    key = VerifierKey.parse(EXAMPLE_KEY)
    for bit in range(8 * len(EXAMPLE)):
        changed = bytearray(EXAMPLE)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises((NoteRefused, SignatureRefused)):
            verify_note(parse_note(bytes(changed)), [key])


def test_unknown_keys_are_ignored_and_known_ones_must_be_right() -> None:
    both = parse_note(sign_note("text\n", [LOG, OTHER]).encode())
    assert verify_note(both, [OTHER.verifier]) == (OTHER.verifier,)
    assert verify_note(both, [LOG.verifier, OTHER.verifier]) == (LOG.verifier, OTHER.verifier)
    with pytest.raises(SignatureRefused, match="no key that you trust"):
        verify_note(both, [VerifierKey.parse(EXAMPLE_KEY)])
    good, bad = sign_note("text\n", [LOG]), sign_note("other\n", [OTHER])
    mixed = parse_note((good + bad.rpartition("\n\n")[2]).encode())
    with pytest.raises(SignatureRefused, match="does not fit"):
        verify_note(mixed, [LOG.verifier, OTHER.verifier])


def test_sixteen_signatures_are_read() -> None:
    keys = [SignerKey(f"witness{number}.example", bytes([number]) * 32) for number in range(16)]
    note = parse_note(sign_note("text\n", keys).encode())
    assert len(verify_note(note, [key.verifier for key in keys])) == 16


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        b"text\n\nno dash\n",
        "text\n\n— name AAAA\n".encode(),
        "text\n\n— na+me AAAAAAAAAAA=\n".encode(),
        "text\n\n—  AAAAAAAAAAA=\n".encode(),
        "text\n\n— name not-base64\n".encode(),
        "text\n\n— name AAAAAAAAAAA=".encode(),
        "te\rxt\n\n— name AAAAAAAAAAA=\n".encode(),
        b"te\xffxt\n\n" + "— name AAAAAAAAAAA=\n".encode(),
        b"x" * 70_000,
    ],
)
def test_what_is_no_note_is_refused(data: bytes) -> None:
    with pytest.raises(NoteRefused):
        parse_note(data)


def test_the_text_is_split_from_the_signatures_at_the_last_empty_line() -> None:
    note = parse_note(sign_note("a\n\nb\n", [LOG]).encode())
    assert note.text == "a\n\nb\n"
    assert verify_note(note, [LOG.verifier])


def test_a_checkpoint_has_origin_size_and_root_and_no_time() -> None:
    checkpoint = CheckpointText("log.example/audit", 109482, bytes(range(32)))
    assert checkpoint.text() == "log.example/audit\n109482\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    assert parse_checkpoint(checkpoint.text()) == checkpoint


def test_extension_lines_of_a_checkpoint_are_let_be() -> None:
    text = CheckpointText("log.example", 1, bytes(32)).text() + "extension\n"
    assert parse_checkpoint(text) == CheckpointText("log.example", 1, bytes(32))


@pytest.mark.parametrize("size", ["01", "-1", "+1", "1.0", "", " 1", "1 ", "x", "1" * 40])
def test_a_size_is_a_plain_number(size: str) -> None:
    with pytest.raises(NoteRefused):
        parse_checkpoint(f"log.example\n{size}\n{base64.b64encode(bytes(32)).decode()}\n")


@pytest.mark.parametrize(
    "text", ["name", "name+12345678", "name+1234567+AAAA", EXAMPLE_KEY.replace("530d", "530e"), EXAMPLE_KEY.replace("Aek", "Bek")]
)
def test_a_key_that_is_not_what_it_says_is_refused(text: str) -> None:
    with pytest.raises(NoteRefused):
        VerifierKey.parse(text)


def test_a_secret_key_shows_itself_nowhere() -> None:
    secret = GO_SECRET.rpartition("+")[2]
    assert secret not in repr(SignerKey.parse(GO_SECRET))
    assert secret not in str(SignerKey.parse(GO_SECRET))
    for broken in (GO_SECRET[:-4], GO_SECRET + "AA", GO_SECRET.replace("c74f20a3", "c74f20a4"), GO_SECRET.replace("+KEY", "")):
        with pytest.raises(NoteRefused) as refusal:
            SignerKey.parse(broken)
        assert secret[:20] not in str(refusal.value)
