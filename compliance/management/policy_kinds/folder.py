"""A folder of policy texts: `NAME.yaml` for each policy, byte for byte, and `policies.lock.json`, which says what was pulled.

The manifest is one JSON object: `{"format": "writegate-policies/1", "policies": {NAME: {"file", "version", "digest"}}}`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from compliance.management.policy_kinds.texts import read
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import key_problem
from policies.language.document import MAX_BYTES

FORMAT = "writegate-policies/1"
MANIFEST = "policies.lock.json"
SUFFIX, CASES = ".yaml", ".cases.yaml"
MAX_MANIFEST_BYTES = 16 * 1024 * 1024


class Pulled(NamedTuple):
    """One version as it lies in the folder."""

    policy: str
    version: int
    digest: str


def file_name(policy: str) -> str:
    """Return the one file name of a policy: its name, with whatever a file system could take for more than a name in percent form."""
    return f"{quote(policy, safe='+@')}{SUFFIX}"


def texts_in(folder: Path) -> list[Path]:
    """Return the policy texts of a folder, by name. Raises `InputRefused` where there is no such folder."""
    if not folder.is_dir():
        raise InputRefused([Problem("there is no such directory", str(folder))])
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.endswith(CASES))


def read_manifest(folder: Path) -> dict[str, Pulled]:
    """Return what was pulled into a folder, by policy; empty where nothing was. Raises `InputRefused`."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    try:
        held = json.loads(read(str(path), MAX_MANIFEST_BYTES))
        if held["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        return {name: Pulled(name, int(row["version"]), str(row["digest"])) for name, row in held["policies"].items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        hint = "take it back from version control, or remove it and pull anew"
        raise InputRefused([Problem(f"is no manifest of policies: {error}", str(path), hint=hint)]) from None


def write_folder(folder: Path, texts: Sequence[tuple[Pulled, bytes]], *, force: bool) -> list[Path]:
    """Write texts and the manifest; return the files that are new or changed.

    A file that was changed since it was pulled, or that was never pulled, is not written over unless `force`; nor is any other then.
    Raises `InputRefused` with every such file.
    """
    known = read_manifest(folder)
    wanted: list[tuple[Path, bytes]] = []
    problems: list[Problem] = []
    for pulled, text in texts:
        path = folder / file_name(pulled.policy)
        before = _content(path, problems)
        if before == text:
            continue
        last = known.get(pulled.policy)
        if before is not None and not force and (last is None or digest_of(before) != last.digest):
            hint = "commit or move your change, or write over it with --force"
            problems.append(Problem("was changed here since it was pulled", str(path), code="changed_here", hint=hint))
        wanted.append((path, text))
    if problems:
        raise InputRefused(problems)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in wanted:
            _replace(path, text)
    except OSError as error:
        raise InputRefused([Problem(f"cannot be written: {error.strerror}", str(error.filename or folder))]) from None
    write_manifest(folder, {**known, **{pulled.policy: pulled for pulled, _ in texts}})
    return [path for path, _ in wanted]


def write_manifest(folder: Path, pulled: Mapping[str, Pulled]) -> None:
    """Write what lies in a folder. The same content is the same bytes, so that version control shows what changed alone."""
    rows = {
        name: {"digest": held.digest, "file": file_name(name), "version": held.version} for name, held in sorted(pulled.items())
    }
    content = json.dumps({"format": FORMAT, "policies": rows}, indent=2, ensure_ascii=False) + "\n"
    try:
        _replace(folder / MANIFEST, content.encode())
    except OSError as error:
        raise InputRefused([Problem(f"cannot be written: {error.strerror}", str(folder / MANIFEST))]) from None


def policy_of(path: Path) -> str:
    """Return the policy that a file belongs to by its name. Raises `InputRefused`."""
    name = unquote(path.name.removesuffix(SUFFIX))
    if key_problem(name, field="name") is not None or file_name(name) != path.name:
        hint = "a file is called after its policy: NAME.yaml, as `policy pull` writes it"
        raise InputRefused([Problem("is not called as a policy can be", str(path), code="file_name", hint=hint)])
    return name


def _content(path: Path, problems: list[Problem]) -> bytes | None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        problems.append(Problem("is no plain file", str(path), code="not_a_file", hint="move it away"))
        return None
    return read(str(path), MAX_BYTES) if path.exists() else None


def _replace(path: Path, content: bytes) -> None:
    """Put a file in place whole: an interruption leaves the old one or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its word."""
    return f"{number} {one if number == 1 else many}"
