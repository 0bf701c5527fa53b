"""Watched folders, below one that the operator names: regular files alone, once they have stopped changing, each once.

A link is never followed, neither to a file nor to a folder; a file that changes while it is read is left for the next time.
"""

import os
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from django.conf import settings

from evaluations.services.fetching import FetchFailed
from evaluations.services.gathering import Batch, Gathered
from evaluations.vocabulary import RefreshCause

UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".swp")
MAX_FILES = 1_000


def folder_problem(address: str) -> str:
    """Return what is wrong with a folder's address, or ""."""
    if settings.WATCH_DIR is None:
        return "no folder is watched: the operator names one by WRITEGATE_WATCH_DIR"
    path = PurePosixPath(address)
    unclean = not address or path.is_absolute() or ".." in path.parts or "\\" in address or not address.isprintable()
    return "write the folder's path below WRITEGATE_WATCH_DIR, such as lab/results" if unclean else ""


def gather_folder(address: str, *, known: Mapping[str, Any], together: bool, files: ExitStack) -> Gathered:
    """Return the new and changed files of a folder, each a batch of its own or all `together`; `files` closes them.

    Raises `FetchFailed` where the folder cannot be read, or leads out of the watched one.
    """
    folder = _folder(address)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise _refused(f"the folder cannot be read: {error.strerror}") from None
    marks: dict[str, Any] = {}
    batches: list[Batch] = []
    size = 0
    for entry in entries:
        seen = _seen(entry)
        if seen is None:
            continue
        if known.get(entry.name) == seen:
            marks[entry.name] = seen
            continue
        size += seen[0]
        if size > settings.REFRESH_MAX_BYTES and batches:
            break  # the rest comes with the next run
        if seen[0] > settings.REFRESH_MAX_BYTES:
            raise FetchFailed(RefreshCause.TOO_LARGE, f"`{entry.name}` is larger than {settings.REFRESH_MAX_BYTES} bytes")
        stream = _read(Path(entry.path), seen, files)
        if stream is not None:
            batches.append(Batch({entry.name: stream}, {entry.name: seen}))
        if len(batches) >= MAX_FILES:
            break
    if together and batches:
        whole = {name: stream for batch in batches for name, stream in batch.files.items()}
        batches = [Batch(whole, {name: mark for batch in batches for name, mark in batch.marks.items()})]
    return Gathered(tuple(batches), marks, RefreshCause.SAME_BYTES if batches else RefreshCause.NOTHING_THERE)


def _folder(address: str) -> Path:
    problem = folder_problem(address)
    if problem or settings.WATCH_DIR is None:
        raise _refused(problem)
    root = settings.WATCH_DIR.resolve()
    folder = (root / address).resolve()
    if not folder.is_relative_to(root):
        raise _refused(f"`{address}` leads out of the watched folder")
    if not folder.is_dir():
        raise _refused(f"there is no folder `{address}`")
    return folder


def _seen(entry: "os.DirEntry[str]") -> list[int] | None:
    """Return size and time of change of a file that has stopped changing; None for everything else that lies there."""
    unfinished = entry.name.startswith(".") or entry.name.lower().endswith(UNFINISHED) or not entry.name.isprintable()
    if unfinished or not entry.is_file(follow_symlinks=False):
        return None
    found = entry.stat(follow_symlinks=False)
    if time.time() - found.st_mtime < settings.WATCH_STABLE_SECONDS:
        return None
    return [found.st_size, found.st_mtime_ns]


def _read(path: Path, seen: list[int], files: ExitStack) -> BinaryIO | None:
    """Return a copy of a file, or None where it changed meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _refused(f"`{path.name}` cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream:
        copy: BinaryIO = files.enter_context(TemporaryFile())  # noqa: SIM115 - the run closes it
        shutil.copyfileobj(stream, copy)
        after = os.fstat(descriptor)
        if not stat.S_ISREG(after.st_mode) or [after.st_size, after.st_mtime_ns] != seen or copy.tell() != seen[0]:
            return None
    copy.seek(0)
    return copy


def _refused(detail: str) -> FetchFailed:
    return FetchFailed(RefreshCause.FOLDER_REFUSED, detail)
