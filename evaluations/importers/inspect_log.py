"""Inspect logs as bytes: the header, and one row a sample, from `.eval` archives and from `.json`, transcripts left alone.

Source of the format: repository UKGovernmentBEIS/inspect_ai (MIT), `src/inspect_ai/log/_log.py` and `_recorders/eval.py`.

    .eval   a zip: _journal/start.json {version, eval, plan}; samples/<id>_epoch_<n>.json; _journal/summaries/<i>.json, each a list;
            and at the end summaries.json, all of them, reductions.json and header.json. Members are Zstandard since 0.3.206.
    .json   the header's object, with `samples` and `reductions` in it

Without header.json the process died while it ran: its status is `started`. Versions 1 to 3 are read; a log without the key is 2. Of an
archive header and summaries are read, and of at most three samples the name of the model that answered, which stands nowhere else. A
`.json` is walked sample by sample, so that its size does not matter.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers.archives import Archive, looks_like_zip
from evaluations.importers.base import Problems, refuse
from evaluations.importers.decoding import decode_text
from evaluations.importers.fields import NumberText, shown
from evaluations.importers.jsonstream import Reader
from evaluations.importers.jsontext import kind_of, parse

STATUSES = ("started", "success", "cancelled", "error")
VERSIONS = ("1", "2", "3")
MAX_SAMPLES = 2_000_000
SAMPLES_LOOKED_INTO = 3

_HEADER_LIMIT = 64 * 1024 * 1024
_ROW_LIMIT = 64 * 1024 * 1024
_TRANSCRIPT_LIMIT = 4 * 1024 * 1024
_JOURNAL = re.compile(r"_journal/summaries/([0-9]{1,9})\.json\Z")
_MEMBERS = 4 * MAX_SAMPLES


class Row(NamedTuple):
    """One sample in one epoch: what it was, how it ended, and its scores by scorer. `answered` is empty where nobody says."""

    task: str
    epoch: int
    errored: bool
    limited: bool
    completed: bool
    scores: Mapping[str, Any]
    answered: tuple[str, ...]


class Log:
    """One log. `header` has the fields of header.json; `rows()` reads the samples anew each time it is called."""

    def __init__(self, stream: BinaryIO, *, name: str) -> None:
        self.name = name
        self._stream = stream
        stream.seek(0)
        self._archive = Archive(stream, name=name, max_members=_MEMBERS) if looks_like_zip(stream.read(4)) else None
        stream.seek(0)
        self.header = self._read_header()
        _check(self.header, name)

    def rows(self) -> Iterator[Row]:
        """Yield every sample that the log holds. Raises `InputRefused` naming member and sample."""
        for count, (place, raw) in enumerate(self._raw_rows() if self._archive is None else _summaries(self._archive)):
            if count >= MAX_SAMPLES:
                raise refuse(f"there are more than {MAX_SAMPLES} samples", file=self.name, code="too_large", hint="split the run")
            yield _row(raw, place)

    def answered(self) -> set[str]:
        """Return the models that answered, of an archive: from at most three of its samples, the first, a middle one and the last."""
        if self._archive is None:
            return set()
        samples = [member for member in self._archive.members if member.startswith("samples/") and member.endswith(".json")]
        chosen = {samples[at] for at in (0, len(samples) // 2, len(samples) - 1)} if samples else set()
        return {name for member in sorted(chosen) for name in _answered_in(self._archive, member)}

    def _read_header(self) -> dict[str, Any]:
        if self._archive is None:
            return self._json_header()
        member = "header.json" if "header.json" in self._archive.members else "_journal/start.json"
        if member not in self._archive.members:
            raise refuse(
                "the archive holds no Inspect log: neither header.json nor _journal/start.json",
                file=self.name,
                code="unknown_shape",
                hint="give the .eval as Inspect wrote it",
            )
        place = self._archive.place(member)
        header = parse(decode_text(self._archive.read(member, limit=_HEADER_LIMIT), name=place), Problems(place))
        if not isinstance(header, dict):
            raise _no_log(header, place)
        return header if member == "header.json" else {**header, "status": "started"}

    def _json_header(self) -> dict[str, Any]:
        reader = Reader(self._stream, name=self.name, limit=_ROW_LIMIT)
        if not reader.starts("{"):
            raise _no_log(None, self.name)
        header: dict[str, Any] = {}
        for key in reader.keys():  # noqa: SIM118  (a stream, no mapping)
            if key in ("samples", "reductions") and reader.starts("["):
                for _ in reader.items():
                    pass
            else:
                header[key] = _exact(reader.value())
        reader.end()
        return header

    def _raw_rows(self) -> Iterator[tuple[str, Any]]:
        self._stream.seek(0)
        reader = Reader(self._stream, name=self.name, limit=_ROW_LIMIT)
        for key in reader.keys():  # noqa: SIM118
            if key == "samples" and reader.starts("["):
                for index, value in enumerate(reader.items()):
                    yield f"{self.name}: samples[{index}]", value
            else:
                reader.value()


def _summaries(archive: Archive) -> Iterator[tuple[str, Any]]:
    """Yield each summary with its place: from summaries.json, or from the journal where the run did not end."""
    members = ["summaries.json"] if "summaries.json" in archive.members else []
    if not members:
        numbered = ((found, member) for member in archive.members if (found := _JOURNAL.match(member)))
        members = [member for _, member in sorted((int(found[1]), member) for found, member in numbered)]
    for member in members:
        with archive.open(member) as stream:
            reader = Reader(stream, name=archive.place(member), limit=_ROW_LIMIT)
            for index, value in enumerate(reader.items()):
                yield f"{archive.place(member)}: [{index}]", value
            reader.end()


def _answered_in(archive: Archive, member: str) -> Iterator[str]:
    """Yield the model named in the output of a sample, unless so much stands before it that it is not looked for."""
    if archive.members[member].file_size > _TRANSCRIPT_LIMIT:
        return
    with archive.open(member) as stream:
        reader = Reader(stream, name=archive.place(member), limit=_TRANSCRIPT_LIMIT)
        for key in reader.keys():  # noqa: SIM118
            value = reader.value()
            if key == "output":
                yield from _model_of(value)
                return


def _model_of(output: object) -> tuple[str, ...]:
    model = output.get("model") if isinstance(output, dict) else None
    return (model,) if isinstance(model, str) and model else ()


def _row(raw: Any, place: str) -> Row:
    identity = raw.get("id") if isinstance(raw, dict) else None
    epoch = raw.get("epoch", 1) if isinstance(raw, dict) else None
    if isinstance(identity, bool) or not isinstance(identity, int | str) or type(epoch) is not int or not 0 < epoch < 10**6:
        raise refuse("it is no sample with `id` and `epoch`", file=place, code="malformed", hint="fetch the log again")
    scores = raw.get("scores")
    score = raw.get("score")  # until 2024 a sample had one score without a name
    if not isinstance(scores, dict):
        scores = {"": score} if isinstance(score, dict) else {}
    fallbacks = raw.get("model_fallbacks")
    names = [each.get("fallback_model") for each in fallbacks if isinstance(each, dict)] if isinstance(fallbacks, list) else []
    return Row(
        task=identity if isinstance(identity, str) else f"#{identity}",
        epoch=epoch,
        errored=bool(raw.get("error")),
        limited=bool(raw.get("limit")),
        completed=raw.get("completed") is not False,
        scores=scores,
        answered=(*_model_of(raw.get("output")), *(name for name in names if isinstance(name, str) and name)),
    )


def _check(header: Mapping[str, Any], name: str) -> None:
    """Refuse what is no log, or one of a version or status that nobody here knows."""
    version = str(header.get("version", "2"))
    if version not in VERSIONS:
        raise refuse(
            f"the log has version {shown(version[:20])}",
            file=name,
            field="version",
            code="unknown_version",
            hint=f"versions {', '.join(VERSIONS)} are read",
        )
    if not isinstance(header.get("eval"), dict):
        raise _no_log(header, name)
    status = header.get("status")
    if status not in STATUSES:
        raise refuse(
            f"unknown status {shown(status)}",
            file=name,
            field="status",
            code="unknown_word",
            hint=f"known: {', '.join(STATUSES)}",
        )


def _no_log(value: object, name: str) -> Exception:
    return refuse(
        f"it is no Inspect log, but {kind_of(value)}", file=name, code="unknown_shape", hint="give a log as Inspect wrote it"
    )


def _exact(value: Any) -> Any:
    """Return a header's value with whole numbers as text too, as the header of an archive has them."""
    if isinstance(value, dict):
        return {key: _exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_exact(inner) for inner in value]
    return NumberText(str(value)) if type(value) is int else value
