"""Proof files: one entry, carried alone."""

import pytest

from compliance.ledger.merkle import ProofRefused, inclusion_path, leaf_hash, nodes_of, tree_root
from compliance.ledger.note import CheckpointText, NoteRefused, SignatureRefused, SignerKey, sign_note
from compliance.ledger.proof import check_proof, read_proof, write_proof

LOG = SignerKey("log.example/audit", bytes(range(32)))
ENTRIES = [f"entry {number}".encode() for number in range(13)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
NOTE = sign_note(CheckpointText(LOG.name, 13, tree_root(LEAVES)).text(), [LOG])


def proof_of(index: int, *, entry: bytes | None = None) -> bytes:
    return write_proof(index=index, path=inclusion_path(index, 13, nodes_of(LEAVES)), checkpoint=NOTE, entry=entry)


def test_a_file_is_written_as_the_specification_says() -> None:
    lines = proof_of(12, entry=b"e").decode().split("\n")
    assert lines[:3] == ["c2sp.org/tlog-proof@v1", "extra ZQ==", "index 12"]
    assert len(lines[3]) == 44
    assert lines[5:9] == ["", "log.example/audit", "13", NOTE.split("\n")[2]]
    assert proof_of(0).decode().split("\n")[1] == "index 0"


@pytest.mark.parametrize("index", range(13))
def test_every_entry_of_a_tree_has_its_proof(index: int) -> None:
    checkpoint, signed_by = check_proof(read_proof(proof_of(index)), ENTRIES[index], [LOG.verifier])
    assert checkpoint.size == 13
    assert signed_by == (LOG.verifier,)


def test_an_entry_that_is_alone_has_an_empty_path() -> None:
    note = sign_note(CheckpointText(LOG.name, 1, tree_root(LEAVES[:1])).text(), [LOG])
    data = write_proof(index=0, path=[], checkpoint=note)
    assert data.decode().split("\n")[:3] == ["c2sp.org/tlog-proof@v1", "index 0", ""]
    check_proof(read_proof(data), ENTRIES[0], [LOG.verifier])


def test_another_entry_or_index_does_not_verify() -> None:
    proof = read_proof(proof_of(5))
    with pytest.raises(ProofRefused):
        check_proof(proof, ENTRIES[6], [LOG.verifier])
    moved = read_proof(proof_of(5).replace(b"index 5", b"index 6"))
    with pytest.raises(ProofRefused):
        check_proof(moved, ENTRIES[5], [LOG.verifier])


def test_a_proof_is_worth_nothing_without_a_signature_that_is_known() -> None:
    stranger = SignerKey("log.example/audit", bytes(32))
    with pytest.raises(SignatureRefused):
        check_proof(read_proof(proof_of(5)), ENTRIES[5], [stranger.verifier])
    elsewhere = SignerKey("other.example", bytes(32))
    note = sign_note(CheckpointText(LOG.name, 13, tree_root(LEAVES)).text(), [elsewhere])
    forged = write_proof(index=5, path=inclusion_path(5, 13, nodes_of(LEAVES)), checkpoint=note)
    with pytest.raises(ProofRefused, match="own key has not signed"):
        check_proof(read_proof(forged), ENTRIES[5], [elsewhere.verifier])


def test_every_single_bit_of_a_proof_counts() -> None:
    """All but those of the extra data, which the format does not authenticate: there is none here."""
    data = proof_of(5)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises((NoteRefused, SignatureRefused, ProofRefused)):
            check_proof(read_proof(bytes(changed)), ENTRIES[5], [LOG.verifier])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"c2sp.org/tlog-proof@v2\nindex 0\n\nx",
        b"c2sp.org/tlog-proof@v1\n\nx",
        b"c2sp.org/tlog-proof@v1\nindex 01\n\nx",
        b"c2sp.org/tlog-proof@v1\nindex -1\n\nx",
        b"c2sp.org/tlog-proof@v1\nextra !\nindex 0\n\nx",
        b"c2sp.org/tlog-proof@v1\nindex 0\nAAAA\n\nx",
        b"c2sp.org/tlog-proof@v1\nindex 0\n" + b"A" * 300_000,
    ],
)
def test_what_is_no_proof_is_refused(data: bytes) -> None:
    with pytest.raises(NoteRefused):
        read_proof(data)
