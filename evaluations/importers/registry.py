"""The formats we read, one line each: write a module beside this one and add it to `IMPORTERS`.

The order is the order of asking: the first whose `sniff` says yes is taken, so the more particular formats come first.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import BinaryIO, cast

from evaluations.importers import (
    agentdojo,
    agentdojo_luna,
    artificial_analysis,
    enterpriseops_gym,
    every_eval_ever,
    garak,
    hf_eval_results,
    hf_model_index,
    in_toto,
    inspect,
    lm_eval,
    mole,
    odcv_bench,
    promptfoo,
    table,
    tau2_bench,
    tau_bench,
    writegate_csv,
    writegate_json,
)
from evaluations.importers.archives import gzip_head, looks_like_zip, opened
from evaluations.importers.base import (
    DescribingImporter,
    DocumentDraft,
    GroupImporter,
    Importer,
    Intake,
    Pair,
    Profile,
    ProfiledImporter,
    Registry,
    SingleImporter,
    refuse,
)
from evaluations.importers.decoding import BYTE_ORDER_MARK, check_encoding
from evaluations.importers.profiles import check_importer

HEAD_BYTES = 64 * 1024

IMPORTERS: tuple[Importer, ...] = (
    cast(Importer, in_toto),
    cast(Importer, inspect),
    cast(Importer, odcv_bench),
    cast(Importer, enterpriseops_gym),
    cast(Importer, agentdojo_luna),
    cast(Importer, agentdojo),
    cast(Importer, garak),
    cast(Importer, promptfoo),
    cast(Importer, lm_eval),
    cast(Importer, every_eval_ever),
    cast(Importer, hf_eval_results),
    cast(Importer, mole),
    cast(Importer, hf_model_index),
    cast(Importer, artificial_analysis),
    cast(Importer, tau_bench),
    cast(Importer, tau2_bench),
    cast(Importer, writegate_json),
    cast(Importer, table),
    cast(Importer, writegate_csv),
)


def names() -> tuple[str, ...]:
    """Return the names of the known formats, as `--format` takes them."""
    return tuple(importer.NAME for importer in IMPORTERS)


def pick(name: str | None, head: bytes, filename: str) -> Importer:
    """Return the importer called `name`, or the one that recognises the first bytes.

    Raises `InputRefused` for an unknown name and for bytes nobody recognises, with the list of known formats.
    """
    known = ", ".join(names())
    if name is not None:
        for importer in IMPORTERS:
            if name == importer.NAME:
                return importer
        raise refuse(f"unknown format `{name}`", file=filename, field="format", code="unknown_format", hint=f"known: {known}")
    head = gzip_head(head, limit=HEAD_BYTES)
    if not looks_like_zip(head):
        bare = head.removeprefix(BYTE_ORDER_MARK)
        if bare != head and any(
            getattr(importer, "READS_MARK", False) and importer.sniff(bare, filename) for importer in IMPORTERS
        ):
            head = bare
        check_encoding(head, filename)
    for importer in IMPORTERS:
        if importer.sniff(head[:HEAD_BYTES], filename):
            return importer
    raise refuse(
        "the format is not recognised",
        file=filename,
        field="format",
        code="unknown_format",
        hint=f"name it with --format; known: {known}",
    )


def read_files(
    importer: Importer,
    files: Mapping[str, BinaryIO],
    *,
    registry: Registry,
    source: str | None,
    subject: str | None = None,
    published_at: datetime | None = None,
    profile: Profile | None = None,
) -> Iterator[Pair]:
    """Read all FILEs of one command with one importer: together where the format is a group, else one after the other.

    `subject` and `published_at` are for formats that do not state them; formats that do refuse or ignore them. A profile that the
    format does not take is refused: what was said must not be passed over.
    """
    files = {name: opened(stream, name=name) for name, stream in files.items()}
    if profile is not None:
        if not isinstance(importer, ProfiledImporter):
            raise refuse(
                f"{importer.NAME} takes no profile: its files say what their numbers mean",
                file=next(iter(files), ""),
                field="profile",
                code="not_taken",
                hint="leave it out, or name another format with --format",
            )
        check_importer(profile, importer.NAME)
    if isinstance(importer, GroupImporter):
        intake = Intake(registry, source, subject, published_at, profile)
        sets = [files] if importer.GROUP else [{name: stream} for name, stream in files.items()]
        for each in sets:
            yield from importer.read_group(each, intake)
        return
    if importer.GROUP:
        raise TypeError(f"importer {importer.NAME} says GROUP but has no read_group")
    if not isinstance(importer, SingleImporter):
        raise TypeError(f"importer {importer.NAME} has no read")
    for name, stream in files.items():
        yield from importer.read(stream, name=name, registry=registry, source=source)


def describe(importer: Importer, stream: BinaryIO, *, name: str) -> DocumentDraft:
    """Return what the file says about itself, or an empty draft where its format says nothing."""
    if isinstance(importer, DescribingImporter):
        return importer.describe(stream, name=name)
    return DocumentDraft()
