import io
import stat
import zipfile

import pytest

from evaluations.importers import archives
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def read(data: bytes, *, limit: int = 1024 * 1024) -> dict[str, bytes]:
    return dict(archives.small_files({"given.zip": io.BytesIO(data)}, limit=limit))


def refused(data: bytes, **options) -> str:
    with pytest.raises(InputRefused) as caught:
        read(data, **options)
    problem = only(list(caught.value.problems))
    assert problem.file.startswith("given.zip")
    return problem.code


def test_files_and_members_come_in_the_order_of_their_names():
    files = {"plain.csv": io.BytesIO(b"a"), "b.zip": io.BytesIO(zipped(("y/2", b"2"), ("y/", b""), ("x/1", b"1")))}
    assert list(archives.small_files(files, limit=10)) == [("plain.csv", b"a"), ("b.zip/x/1", b"1"), ("b.zip/y/2", b"2")]


def test_what_macos_adds_to_a_zip_is_passed_over():
    data = zipped(("__MACOSX/._a.csv", b"junk"), ("x/.DS_Store", b"junk"), ("a.csv", b"1"))
    assert read(data) == {"given.zip/a.csv": b"1"}


@pytest.mark.parametrize("name", ["../up.csv", "a/../../up.csv", "/etc/passwd", "C:/x.csv", "a/.."])
def test_a_member_that_leads_out_of_the_archive_is_refused(name):
    assert refused(zipped((name, b"x"))) == "unsafe_archive"


def test_a_backslash_in_a_members_name_is_refused():
    data = zipped(("a_b", b"x")).replace(b"a_b", b"a\\b")
    assert refused(data) == "unsafe_archive"


def test_a_link_is_refused():
    info = zipfile.ZipInfo("link.csv")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert refused(out.getvalue()) == "unsafe_archive"


def test_a_name_that_stands_twice_is_refused():
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("a.csv", b"1"), ("a.csv", b"2"))
    assert refused(data) == "unsafe_archive"


def test_a_member_larger_than_the_limit_is_refused():
    assert refused(zipped(("a.csv", b"x" * 2000)), limit=1000) == "too_large"


def test_too_many_members_are_refused(monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    assert refused(zipped(*[(str(index), b"") for index in range(4)])) == "too_large"


def test_an_archive_that_expands_beyond_all_proportion_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "_ALLOWED_ANYWAY", 1000)
    assert refused(zipped(*[(str(index), b"0" * 100_000) for index in range(5)])) == "expansion"


@pytest.mark.parametrize("keep", [10, 60, -5])
def test_a_truncated_archive_is_refused_without_a_traceback(keep):
    assert refused(zipped(("a.csv", b"x" * 500), method=zipfile.ZIP_STORED)[:keep]) == "broken_archive"


def test_a_member_whose_bytes_were_changed_is_refused():
    data = zipped(("a.csv", b"x" * 500), method=zipfile.ZIP_STORED)
    assert refused(data.replace(b"xxxx", b"yxxx", 1)) == "broken_archive"


def test_an_encrypted_member_is_refused():
    data = bytearray(zipped(("a.csv", b"x")))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    assert refused(bytes(data)) == "unsafe_archive"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_rare_compression_is_refused(method):
    assert refused(zipped(("a.csv", b"x" * 100), method=method)) == "unsafe_archive"


ZSTANDARD = evidence_bytes("inspect/generated/success-20.eval")


def opened(data: bytes, **options) -> archives.Archive:
    return archives.Archive(io.BytesIO(data), name="given.zip", **options)


def archive_refused(data: bytes, member: str = "header.json", **options) -> str:
    with pytest.raises(InputRefused) as caught:
        opened(data, **options).read(member, limit=1024 * 1024)
    problem = only(list(caught.value.problems))
    assert problem.file.startswith("given.zip")
    return problem.code


def test_members_compressed_with_zstandard_read_and_are_checked():
    archive = opened(ZSTANDARD)
    header = archive.members["header.json"]
    assert header.compress_type == archives.ZSTANDARD
    with archive.open("header.json") as first, archive.open("summaries.json") as second:  # in turns
        assert (first.read(10), second.read(10)) == (b'{"version"', b'[{"id":"t0')
        assert len(first.read()) == header.file_size - 10
    start = header.header_offset + 45
    for place in (start, start + 100, start + header.compress_size // 2):
        damaged = bytearray(ZSTANDARD)
        damaged[place] ^= 0xFF
        assert archive_refused(bytes(damaged)) == "broken_archive"


def test_an_archives_members_are_bounded_while_they_expand(monkeypatch):
    monkeypatch.setattr(archives, "_ALLOWED_ANYWAY", 1000)
    monkeypatch.setattr(archives, "MAX_EXPANSION", 0)
    assert archive_refused(ZSTANDARD) == "expansion"
    assert archive_refused(zipped(("header.json", b"0" * 100_000))) == "expansion"


def test_an_archive_of_too_many_members_or_with_one_twice_is_refused():
    assert archive_refused(ZSTANDARD, max_members=3) == "too_large"
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("header.json", b"1"), ("header.json", b"2"))
    assert archive_refused(data) == "unsafe_archive"
    assert archive_refused(zipped(("header.json", b"x" * 100), method=zipfile.ZIP_BZIP2)) == "unsafe_archive"
    assert archive_refused(ZSTANDARD[:-30]) == "broken_archive"
