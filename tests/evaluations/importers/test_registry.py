import io
from types import ModuleType

import pytest

from evaluations.importers import registry
from evaluations.importers.base import DocumentDraft, EvidenceDraft, GroupImporter, Importer, ObservationDraft
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.eog import as_bytes, path, result, run, runner_file
from tests.evaluations.importers.helpers import REGISTRY, ROW, document, evidence, only, table
from tests.evaluations.importers.helpers import as_bytes as json_bytes
from tests.evaluations.importers.test_odcv_bench import tables


@pytest.mark.parametrize(
    ("content", "name", "format_name"),
    [
        (json_bytes(document()), "a.json", "writegate-json"),
        (json_bytes(evidence()), "a.jsonl", "writegate-json"),
        (table(ROW).encode(), "a.csv", "writegate-csv"),
        (table(ROW).replace(",", ";").encode(), "a.txt", "writegate-csv"),
        (as_bytes(result(run(1, (True,)))), path("a"), "enterpriseops-gym"),
        (as_bytes(runner_file()), "teams.json", "enterpriseops-gym"),
        *[(data, name, "odcv-bench") for name, data in tables().items()],
    ],
)
def test_a_format_is_recognised_by_its_first_bytes(content, name, format_name):
    assert format_name == registry.pick(None, content[:65536], name).NAME


def test_a_named_format_is_taken_without_looking():
    assert registry.pick("writegate-csv", b"{}", "a.json").NAME == "writegate-csv"


@pytest.mark.parametrize(
    ("name", "head", "code"),
    [
        ("xml", b"<a/>", "unknown_format"),
        (None, b"<a/>", "unknown_format"),
        (None, b"\x1f\x8b\x08", "unknown_format"),
        (None, b"", "empty"),
        (None, b"\xef\xbb\xbf{}", "byte_order_mark"),
        (None, "{}".encode("utf-16"), "encoding"),
    ],
)
def test_what_nobody_reads_is_refused_with_the_list_of_formats(name, head, code):
    with pytest.raises(InputRefused) as caught:
        registry.pick(name, head, "given")
    problem = only(list(caught.value.problems))
    assert (problem.code, problem.file) == (code, "given")
    if code == "unknown_format":
        assert all(each in problem.hint for each in registry.names())


def test_every_format_keeps_the_contract():
    assert len(set(registry.names())) == len(registry.IMPORTERS)
    for importer in registry.IMPORTERS:
        assert isinstance(importer, Importer)
        assert isinstance(importer, GroupImporter) or not importer.GROUP
        assert isinstance(importer.VERSION, int)


def test_adding_a_format_is_one_file_and_one_line(monkeypatch, tmp_path):
    file = tmp_path / "yaml_like.py"
    file.write_text(
        """
from decimal import Decimal
from evaluations.importers.base import EvidenceDraft, ObservationDraft

NAME, VERSION, GROUP = "yaml-like", 1, False

def sniff(head, name):
    return head.startswith(b"rate: ")

def read(stream, *, name, registry, source):
    number = Decimal(stream.read().split()[1].decode())
    draft = EvidenceDraft("A", source, "claim", "complete", "", None, None, (), "model", "", "", "")
    yield draft, ObservationDraft("m", "b", "1", "overall", number, str(number), None, None, None, None, None, None, "")
"""
    )
    module = ModuleType("yaml_like")
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    monkeypatch.setattr(registry, "IMPORTERS", (module, *registry.IMPORTERS))
    importer = registry.pick(None, b"rate: 80.5", "a.yaml")
    ((draft, seen),) = registry.read_files(importer, {"a.yaml": io.BytesIO(b"rate: 80.5")}, registry=REGISTRY, source="lab")
    assert isinstance(draft, EvidenceDraft)
    assert isinstance(seen, ObservationDraft)
    assert registry.describe(importer, io.BytesIO(b""), name="a.yaml") == DocumentDraft()
    assert "yaml-like" in registry.names()


def test_files_of_a_group_are_read_together_and_others_one_after_the_other():
    group = {name: io.BytesIO(data) for name, data in tables().items()}
    odcv = registry.pick("odcv-bench", b"", "x")
    assert len(list(registry.read_files(odcv, group, registry=REGISTRY, source="lab"))) == 12
    single = {name: io.BytesIO(json_bytes(document(evidence(subject=name)))) for name in ("a", "b")}
    native = registry.pick("writegate-json", b"", "x")
    found = registry.read_files(native, single, registry=REGISTRY, source=None)
    assert [draft.subject_as_written for draft, _ in found] == ["a", "b"]
