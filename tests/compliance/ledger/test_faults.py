"""Every kind of tampering is found, and named: on an export of 2,000 entries, without a database."""

import io
import random
import re
import zipfile
from bisect import bisect_right
from hashlib import sha256

import pytest

from compliance.ledger import bundle
from compliance.ledger.alignment import explain
from compliance.ledger.findings import Report, Unreadable
from compliance.ledger.merkle import inclusion_path, leaf_hash, nodes_of, tree_root
from compliance.ledger.note import CheckpointText, SignerKey, encode_hash, sign_note
from compliance.ledger.parts import ZipParts
from compliance.ledger.tiles import MAX_ENTRY_BYTES
from compliance.ledger.verifier import verify_export
from tests.support.ledger import members_of, packed, told, verified, with_manifest

COUNT = 2_000


def lines_of(members: dict[str, bytes]) -> list[bytes]:
    return members[bundle.ENTRIES].split(b"\n")[:-1]


def with_lines(members: dict[str, bytes], lines: list[bytes]) -> dict[str, bytes]:
    return members | {bundle.ENTRIES: b"".join(line + b"\n" for line in lines)}


@pytest.fixture(scope="module")
def members(exported) -> dict[str, bytes]:
    found = exported.members
    assert len(lines_of(found)) == COUNT
    return found


def test_all_four_exports_verify_with_the_first_key_with_the_last_and_with_none(exported) -> None:
    for data in (exported.whole, exported.with_csv, exported.part, exported.filtered):
        for keys in ((), exported.keys[:1], exported.keys[1:], exported.keys):
            report = verify_export(io.BytesIO(data), keys=keys)
            assert report.findings == []
            assert ("taken from the export itself" in report.facts.get("trust", "")) == (not keys)


def test_a_stranger_s_key_does_not_verify_it(exported) -> None:
    stranger = SignerKey(exported.keys[0].name, bytes(32)).verifier
    report = verify_export(io.BytesIO(exported.whole), keys=[stranger])
    assert [str(finding.kind) for finding in report.findings] == ["bad signature"]


def test_another_zip_writer_changes_nothing(members) -> None:
    assert verify_export(io.BytesIO(packed(members))).findings == []


# --- every line


@pytest.mark.slow
def test_every_dropped_line_is_found(members) -> None:
    lines = lines_of(members)
    for index in range(COUNT):
        report = verified(with_lines(members, lines[:index] + lines[index + 1 :]))
        assert told(report) == {("missing", index)}


@pytest.mark.slow
def test_every_doubled_line_is_found(members) -> None:
    lines, chance = lines_of(members), random.Random(1)
    for index in range(COUNT):
        place = chance.choice((index, index + 1, chance.randrange(COUNT)))
        report = verified(with_lines(members, [*lines[:place], lines[index], *lines[place:]]))
        assert told(report) == {("duplicated", index)}


@pytest.mark.slow
def test_every_swapped_pair_of_neighbours_is_found(members) -> None:
    lines = lines_of(members)
    for index in range(COUNT - 1):
        report = verified(with_lines(members, [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]))
        assert told(report) in ({("re-ordered", index)}, {("re-ordered", index + 1)})


@pytest.mark.slow
def test_lines_swapped_far_apart_are_both_named(members) -> None:
    lines, chance = lines_of(members), random.Random(2)
    for _ in range(200):
        first, second = sorted(chance.sample(range(COUNT), 2))
        swapped = list(lines)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        found = told(verified(with_lines(members, swapped)))
        assert {kind for kind, _ in found} == {"re-ordered"}
        assert found <= {("re-ordered", first), ("re-ordered", second)}
        assert second - first < 3 or len(found) == 2


@pytest.mark.slow
def test_every_inserted_line_is_found(members) -> None:
    lines = lines_of(members)
    for index in range(COUNT + 1):
        forged = lines[min(index, COUNT - 1)].replace(b'"id":"', b'"id":"f', 1)
        report = verified(with_lines(members, [*lines[:index], forged, *lines[index:]]))
        assert told(report) == {("inserted", index)}


def test_several_faults_at_once_are_each_named(members) -> None:
    lines = lines_of(members)
    changed = list(lines)
    changed[10] = changed[10].replace(b"thing", b"thang", 1)
    changed.insert(1500, lines[1499])
    del changed[1200]
    changed.insert(700, b'{"forged":true}')
    assert told(verified(with_lines(members, changed))) == {
        ("altered", 10),
        ("inserted", 700),
        ("missing", 1200),
        ("duplicated", 1499),
    }


def test_a_tail_that_was_cut_off_is_found(members) -> None:
    report = verified(with_lines(members, lines_of(members)[:-3]))
    assert told(report) == {("missing", 1997), ("missing", 1998), ("missing", 1999)}
    cut = members | {bundle.ENTRIES: members[bundle.ENTRIES][:-1]}
    assert [(str(one.kind), one.index) for one in verified(cut).findings] == [("altered", 1999)]
    inside = members | {bundle.ENTRIES: b"\n".join(lines_of(members)[:1_000])[:-9]}
    assert told(verified(inside)) == {("altered", 999)} | {("missing", index) for index in range(1_000, COUNT)}


def test_lines_are_told_apart_at_both_ends_and_where_nothing_was_expected() -> None:
    def told_of(expected: str, got: str) -> list[tuple[str, int | None]]:
        found = explain([one.encode() for one in expected], [one.encode() for one in got], lambda place: place, part="x")
        return [(str(one.kind), one.index) for one in found]

    assert told_of("abc", "abc") == []
    assert told_of("abc", "") == [("missing", 0), ("missing", 1), ("missing", 2)]
    assert told_of("", "x") == [("inserted", 0)]
    assert told_of("abc", "xabc") == [("inserted", 0)]
    assert told_of("abc", "abcx") == [("inserted", 3)]
    assert told_of("abc", "xbc") == [("altered", 0)]
    assert told_of("abc", "abx") == [("altered", 2)]
    assert told_of("abc", "aabc") == told_of("abc", "abca") == [("duplicated", 0)]
    assert told_of("abc", "abcc") == told_of("abc", "cabc") == [("duplicated", 2)]
    assert told_of("abcde", "eabcd") == [("re-ordered", 4)]
    assert told_of("abcde", "abxyc") == [("inserted", 2), ("inserted", 2), ("missing", 3), ("missing", 4)]
    assert told_of("abcde", "axe") == [("altered", 1), ("missing", 2), ("missing", 3)]
    assert told_of("aaaa", "aaaa") == []


# --- bits


def flipped(members: dict[str, bytes], place: int, bit: int) -> Report:
    """Verify with one bit of one byte of the entries turned over."""
    changed = bytearray(members[bundle.ENTRIES])
    changed[place] ^= 1 << bit
    return verified(members | {bundle.ENTRIES: bytes(changed)})


@pytest.mark.parametrize("which", [0, COUNT // 2, COUNT - 2])
def test_a_newline_that_changes_joins_two_lines_and_both_are_named(members, which: int) -> None:
    place = list(re.finditer(b"\n", members[bundle.ENTRIES]))[which].start()
    for bit in range(8):
        assert told(flipped(members, place, bit)) == {("altered", which), ("missing", which + 1)}


def test_the_last_newline_that_changes_is_named_with_its_entry(exported) -> None:
    for data in (exported.whole, exported.with_csv, exported.part, exported.filtered):
        members = members_of(data)
        entries = bundle.read_json(members[bundle.MANIFEST])["entries"]
        for bit in range(8):
            report = flipped(members, -1, bit)
            assert told(report) == {("altered", entries["last_index"])}
            assert {finding.part for finding in report.findings} == {bundle.ENTRIES}


def test_a_fault_of_the_last_line_names_its_entry_where_others_are_wrong_too(members) -> None:
    lines = lines_of(members)

    def told_without_newline(lines: list[bytes]) -> set[tuple[str, int | None]]:
        return told(verified(members | {bundle.ENTRIES: b"\n".join(lines)}))

    assert told_without_newline(lines[:5] + lines[6:]) == {("missing", 5), ("altered", 1999)}
    assert told_without_newline([*lines[:5], *lines[6:-1], b"{}"]) == {("missing", 5), ("altered", 1999)}
    assert told_without_newline([b"{}", *lines]) == {("inserted", 0), ("altered", 1999)}
    assert told_without_newline([*lines, b"{}"]) == {("inserted", COUNT), ("altered", COUNT)}
    assert told_without_newline([b"{}"]) == {("altered", 0)} | {("missing", index) for index in range(1, COUNT)}


def test_a_line_that_is_too_long_is_named_with_its_entry(members) -> None:
    lines = lines_of(members)
    lines[1_234] += b" " * MAX_ENTRY_BYTES
    assert told(verified(with_lines(members, lines))) == {("altered", 1_234)}
    assert told(verified(with_lines(members, [*lines[:1_234], lines[1_234]]))) == {("altered", 1_234)} | {
        ("missing", index) for index in range(1_235, COUNT)
    }
    del lines[7]
    assert told(verified(with_lines(members, lines))) == {("missing", 7), ("altered", 1_234)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_20_000_bit_flips_in_the_entries_are_each_named_with_their_index(members, seed: int) -> None:
    """1,000 a seed, over the whole file, newlines included."""
    chance = random.Random(seed)
    data = members[bundle.ENTRIES]
    starts = [0] + [found.end() for found in re.finditer(b"\n", data)]
    for _ in range(1_000):
        bit = chance.randrange(8 * len(data))
        index = bisect_right(starts, bit // 8) - 1
        report = flipped(members, bit // 8, bit % 8)
        assert ("altered", index) in told(report), (bit, report.findings)
        assert {named for _, named in told(report)} <= {index, index + 1}, "a newline that went joins two lines"


@pytest.mark.slow
def test_bit_flips_in_every_other_member_are_named_by_part(exported) -> None:
    """A flip in a salt, a name or a digit of a commitment counts too: each is held by the commitment in the entries."""
    chance = random.Random(5)
    for data in (exported.with_csv, exported.filtered):
        members = members_of(data)
        for name in sorted(set(members) - {bundle.ENTRIES}):
            for _ in range(40):
                bit = chance.randrange(8 * len(members[name]))
                changed = bytearray(members[name])
                changed[bit // 8] ^= 1 << bit % 8
                report = verified(members | {name: bytes(changed)})
                parts = {finding.part for finding in report.findings}
                expected = {bundle.MANIFEST, bundle.MANIFEST_DIGEST} if name == bundle.MANIFEST_DIGEST else {name}
                assert parts, (name, bit)
                assert parts <= expected, (name, bit, report.findings)


@pytest.mark.slow
def test_bit_flips_of_the_zip_itself_are_found_or_change_no_content(exported) -> None:
    """On the bytes of the file, its directory and headers included."""
    chance = random.Random(6)
    data = exported.part
    original = members_of(data)
    unchanged = 0
    for _ in range(1_500):
        bit = chance.randrange(8 * len(data)) if chance.random() < 0.7 else 8 * (len(data) - 1 - chance.randrange(700)) + 3
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            report = verify_export(io.BytesIO(bytes(changed)))
        except Unreadable:
            continue
        if report.is_ok():
            unchanged += 1
            assert members_of_leniently(bytes(changed)) == original
        else:
            assert all(finding.part or finding.index is not None for finding in report.findings)
    assert unchanged < 200


def members_of_leniently(data: bytes) -> dict[str, bytes]:
    parts = ZipParts(io.BytesIO(data))
    return {name: b"".join(parts.chunks(name)) for name in parts.names()}


# --- forgers who fit the manifest to what they did


def reforged(members: dict[str, bytes], lines: list[bytes]) -> dict[str, bytes]:
    """Put other lines in, with leaf hashes and manifest that fit: all that can be done without the key."""
    leaves = [leaf_hash(line) for line in lines]

    def change(manifest: dict) -> None:
        entries = manifest["members"][bundle.ENTRIES]
        entries["rfc6962"] = encode_hash(tree_root(leaves))
        entries["bytes"] = sum(map(len, lines)) + len(lines)
        entries["records"] = manifest["members"][bundle.LEAVES]["records"] = manifest["entries"]["count"] = len(lines)
        manifest["entries"]["last_index"] = manifest["entries"]["to_index"] = len(lines) - 1

    return with_manifest(with_lines(members, lines) | {bundle.LEAVES: b"".join(leaves)}, change)


def test_a_history_that_is_whole_in_itself_but_was_never_signed_is_a_fork(members) -> None:
    lines = lines_of(members)
    lines[1234] = lines[1234].replace(b"thing", b"thang", 1)
    assert told(verified(reforged(members, lines))) == {("forked", None)}
    assert told(verified(reforged(members, lines_of(members)[:-1]))) == {("forked", None)}


def test_a_part_of_the_log_cannot_be_passed_off_as_the_part_it_is_not(exported) -> None:
    members = members_of(exported.part)
    lines = lines_of(members)
    assert len(lines) == 1_500
    assert told(verified(reforged(members, lines[:-1]))) == {("forked", None)}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["entries"].update(count=1_999),
        lambda m: m["entries"].update(to_index=1_998),
        lambda m: m["entries"].update(first_index=1),
        lambda m: m["entries"].update(last_index=5),
        lambda m: m.update(left_out=1),
        lambda m: m.update(origin="other.example"),
        lambda m: m.update(statement="all is well"),
        lambda m: m.update(filters={"actor": "person:x"}),
        lambda m: m.update(filters={}),
        lambda m: m.update(version=2),
        lambda m: m.update(format="x"),
        lambda m: m.update(extra=1),
        lambda m: m.update(range_proof=None),
        lambda m: m.update(range_proof=["x"]),
        lambda m: m.update(held={"1": "x"}),
        lambda m: m["checkpoint"].update(size=1),
        lambda m: m["checkpoint"].update(root="x"),
        lambda m: m["members"].pop(bundle.LEAVES),
        lambda m: m["members"].pop(bundle.CHECKPOINT),
        lambda m: m["members"][bundle.LEAVES].update(records=1),
        lambda m: m["members"][bundle.ENTRIES].update(records=1),
        lambda m: m["members"][bundle.ENTRIES].update(bytes=1),
        lambda m: m["members"][bundle.ENTRIES].update(rfc6962=encode_hash(bytes(32))),
        lambda m: m["members"].update({bundle.READING_COPY: {"derived_from": bundle.ENTRIES}}),
    ],
)
def test_a_manifest_that_says_something_else_is_found(members, change) -> None:
    report = verified(with_manifest(members, change))
    assert report.findings
    assert {finding.part for finding in report.findings} <= {
        bundle.MANIFEST,
        bundle.ENTRIES,
        bundle.LEAVES,
        bundle.CHECKPOINT,
        "",
    }


def test_a_checkpoint_that_another_key_signed_is_a_bad_signature(exported, members) -> None:
    forger = SignerKey(exported.keys[0].name, bytes(32))
    lines = lines_of(members)
    lines[7] = lines[7].replace(b"thing", b"thang", 1)
    leaves = [leaf_hash(line) for line in lines]
    note = sign_note(CheckpointText(forger.name, COUNT, tree_root(leaves)).text(), [forger]).encode()

    def change(manifest: dict) -> None:
        manifest["checkpoint"] = {"root": encode_hash(tree_root(leaves)), "size": COUNT}
        manifest["members"][bundle.CHECKPOINT] = {"sha256": sha256(note).hexdigest()}

    forged = with_manifest(reforged(members, lines) | {bundle.CHECKPOINT: note}, change)
    report = verified(forged, keys=exported.keys)
    assert report.findings
    assert {str(finding.kind) for finding in report.findings} <= {"bad signature", "forked"}


# --- the checkpoint held from an earlier day


def test_a_checkpoint_held_is_continued(exported) -> None:
    for size, note in exported.checkpoints.items():
        if size <= COUNT:
            report = verify_export(io.BytesIO(exported.whole), keys=exported.keys, against=note)
            assert report.findings == []
            assert f"your checkpoint of {size} is continued" == report.facts["held"]


def test_an_export_under_an_older_checkpoint_than_the_one_held_is_named_so(exported) -> None:
    later = exported.checkpoints[max(exported.checkpoints)]
    report = verify_export(io.BytesIO(exported.whole), keys=exported.keys, against=later)
    assert [str(finding.kind) for finding in report.findings] == ["older than the checkpoint held"]


def test_a_filtered_export_proves_what_it_was_asked_to_prove(exported) -> None:
    report = verify_export(io.BytesIO(exported.filtered), keys=exported.keys, against=exported.checkpoints[902])
    assert report.findings == []
    assert "902 is continued" in report.facts["held"]
    other = min(size for size in exported.checkpoints if size not in (902, COUNT))
    unproved = verify_export(io.BytesIO(exported.filtered), keys=exported.keys, against=exported.checkpoints[other])
    assert [str(finding.kind) for finding in unproved.findings] == ["not proved"]


def test_a_checkpoint_held_that_nobody_trusted_signed_or_of_another_log_is_told(exported) -> None:
    stranger = SignerKey("other.example/ledger", bytes(32))
    note = sign_note(CheckpointText(stranger.name, 5, bytes(32)).text(), [stranger]).encode()
    report = verify_export(io.BytesIO(exported.whole), keys=exported.keys, against=note)
    assert [str(finding.kind) for finding in report.findings] == ["bad signature"]
    report = verify_export(io.BytesIO(exported.whole), keys=[*exported.keys, stranger.verifier], against=note)
    assert [str(finding.kind) for finding in report.findings] == ["forked"]
    with pytest.raises(Unreadable):
        verify_export(io.BytesIO(exported.whole), against=b"rubbish")


# --- a filtered export


def test_a_filtered_export_says_which_line_is_wrong(exported) -> None:
    members = members_of(exported.filtered)
    lines = lines_of(members)
    first = verified(members).facts["entries"]
    assert first == "100 entries, 903 to 1002"
    assert told(verified(with_lines(members, lines[:30] + lines[31:]))) == {("missing", 933)}
    assert told(verified(with_lines(members, [*lines[:31], lines[30], *lines[31:]]))) == {("duplicated", 933)}
    changed = list(lines)
    changed[99] = changed[99].replace(b"thing", b"thang", 1)
    assert told(verified(with_lines(members, changed))) == {("altered", 1002)}
    proofs = members[bundle.PROOFS].split(b"\n")[:-1]
    for broken in (proofs[:-1], [*proofs[:5], *proofs[6:]], [proofs[1], proofs[0], *proofs[2:]], [*proofs, proofs[-1]]):
        report = verified(members | {bundle.PROOFS: b"".join(line + b"\n" for line in broken)})
        assert report.findings


def test_a_line_that_the_filters_do_not_ask_for_is_found(exported) -> None:
    def change(manifest: dict) -> None:
        manifest["filters"]["action"] = "other.thing"

    report = verified(with_manifest(members_of(exported.filtered), change))
    assert {finding.part for finding in report.findings} == {bundle.MANIFEST}


# --- names


def test_names_can_be_taken_out_and_not_changed(exported) -> None:
    members = members_of(exported.filtered)
    assert b"Ada Lovelace" in members[bundle.NAMES]
    assert all(b"Lovelace" not in data for name, data in members.items() if name != bundle.NAMES)
    assert verified(members).facts["names"] == "1 of 1 commitments have their name here"
    without = {name: data for name, data in members.items() if name != bundle.NAMES}
    assert verified(without).findings == []
    erased = verified(members | {bundle.NAMES: b'{"names":[]}'})
    assert erased.findings == []
    assert erased.facts["names"] == "0 of 1 commitments have their name here"
    renamed = verified(members | {bundle.NAMES: members[bundle.NAMES].replace(b"Ada", b"Eve")})
    assert [(str(one.kind), one.part) for one in renamed.findings] == [("altered", bundle.NAMES)]


# --- what is no export


def zipped(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    out.seek(0)
    return out


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: io.BytesIO(b""), "no zip file"),
        (lambda: io.BytesIO(b"PK\x03\x04 and then nothing"), "no zip file"),
        (zipped, "no export"),
        (lambda: zipped(("manifest.json", b"{}")), "no export"),
        (lambda: zipped(("../../etc/passwd", b"x")), "is no member"),
        (lambda: zipped(("/entries.jsonl", b"x")), "is no member"),
        (lambda: zipped(("entries.jsonl/../x", b"x")), "is no member"),
        (lambda: zipped(("entries.jsonl", b"x"), ("entries.jsonl", b"y")), "twice"),
        (lambda: zipped(("entries.jsonl", bytes(200_000_000))), "bomb"),
    ],
    ids=["nothing", "cut", "empty", "a part", "path up", "root path", "path through", "twice", "bomb"],
)
def test_what_is_no_export_is_refused_and_nothing_is_unpacked(make, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        verify_export(make())


def test_a_member_that_grows_beyond_what_the_directory_says_is_stopped(members) -> None:
    data = bytearray(packed(members | {bundle.README: bytes(10_000_000)}))
    place = data.find(b"PK\x01\x02")
    while bytes(data[place + 46 : place + 46 + len(bundle.README)]) != bundle.README.encode():
        place = data.find(b"PK\x01\x02", place + 4)
    data[place + 24 : place + 28] = (100).to_bytes(4, "little")
    report = verify_export(io.BytesIO(bytes(data)))
    assert [finding.part for finding in report.findings] == [bundle.README]


def test_the_proofs_inside_are_those_that_anybody_would_compute(exported) -> None:
    """The filtered export's paths, against leaves of the whole one."""
    leaves = [leaf_hash(line) for line in lines_of(exported.members)]
    for line in members_of(exported.filtered)[bundle.PROOFS].split(b"\n")[:-1]:
        proof = bundle.read_json(line)
        assert proof["path"] == [encode_hash(one) for one in inclusion_path(proof["index"], COUNT, nodes_of(leaves))]
