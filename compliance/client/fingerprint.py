"""The fingerprint of an agent, from the files that a pipeline has. Standard library only.

What it reads: `writegate.toml` in the agent's directory,

    [agent]
    key = "hr-agent"
    title = "HR agent"                         # optional, as is provider
    harness = "our-harness"
    harness_version = "2.1"
    models = ["claude-opus-4.8@1", "gpt-5"]    # every model that can answer; `key` alone is the newest version at the server
    prompts = ["prompts/**"]                   # this is the default
    tools = ["tools.json"]                     # default: tools.json and mcp.json, as far as they are there
    closed = true                              # false: other models may answer too, and no verdict is possible

and the files that `prompts` and `tools` name. A pattern's `*`, `?` and `[…]` match within one part of a path, `**` any number of parts;
a pattern that matches no file is refused. What matches counts, hidden files too.

The canonical form (`canonical` is `evaluations.kernel.canonical`: JSON, keys sorted, no white space, UTF-8):

- digest of a set of files: SHA-256 of canonical `{"files": [{"digest": D, "path": P}, …], "format": "writegate-files/1"}`, where P is
  the path below the directory with `/` between its parts, exactly as it is named, D is `sha256:` and the SHA-256 of the file's bytes
  exactly as they are (line endings are not touched), and the list is sorted by the UTF-8 bytes of P. Times, owners and modes do
  not count;
- fingerprint: SHA-256 of canonical `{"closed", "format": "writegate-agent/1", "kind": "agent", "models", "pin", "subject"}`, where
  `models` is the sorted list without repetitions and `pin` is `{"harness": {"name", "version"}, "prompt_digest",
  "tool_manifest_digest"}`;
- digest of the version that a server pins: SHA-256 of canonical `{"closed", "kind", "pin", "reaches", "subject"}`, where `reaches`
  is the sorted list of the digests of the model versions that `models` mean there.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from compliance.client.outcome import Refused
from evaluations.kernel.canonical import DIGEST_PREFIX, NotCanonical, digest
from evaluations.kernel.names import key_problem

SETTINGS = "writegate.toml"
PROMPTS = ("prompts/**",)
TOOLS = ("tools.json", "mcp.json")
FILES_FORMAT = "writegate-files/1"
AGENT_FORMAT = "writegate-agent/1"

MAX_SETTINGS_BYTES = 64 * 1024
MAX_FILES = 2_000
MAX_SEEN = 50_000
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_MODELS = 100
MAX_LINE = 120

_TEXTS = ("key", "title", "provider", "harness", "harness_version")
_REQUIRED = ("key", "harness", "harness_version")
_LISTS = ("models", "prompts", "tools")
_MEMBERS = (*_TEXTS, *_LISTS, "closed")
_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files by path, each with the digest of its bytes, in the canonical order."""

    files: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        listed = [{"path": path, "digest": held} for path, held in self.files]
        return digest({"format": FILES_FORMAT, "files": listed})


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An agent as its directory states it. `models` is sorted, without repetitions."""

    key: str
    title: str
    provider: str
    harness: str
    harness_version: str
    models: tuple[str, ...]
    closed: bool
    prompts: FileSet
    tools: FileSet

    @property
    def pin(self) -> dict[str, Any]:
        """The part of a version's pin that the files decide."""
        return {
            "prompt_digest": self.prompts.digest,
            "tool_manifest_digest": self.tools.digest,
            "harness": {"name": self.harness, "version": self.harness_version},
        }

    @property
    def digest(self) -> str:
        """The fingerprint."""
        return digest(
            {
                "format": AGENT_FORMAT,
                "kind": "agent",
                "subject": self.key,
                "closed": self.closed,
                "models": list(self.models),
                "pin": self.pin,
            }
        )

    def version_digest(self, reaches: Iterable[str]) -> str:
        """Return the digest under which a server pins this agent, where its models mean the versions with these digests."""
        return digest({"kind": "agent", "subject": self.key, "closed": self.closed, "reaches": sorted(reaches), "pin": self.pin})

    def request(self) -> dict[str, Any]:
        """Return the body that registers it."""
        whole: dict[str, Any] = {
            "kind": "agent",
            "key": self.key,
            "title": self.title,
            "provider": self.provider,
            "models": list(self.models),
            **self.pin,
            "closed": self.closed,
        }
        return {name: value for name, value in whole.items() if value != ""}

    def as_value(self) -> dict[str, Any]:
        """Return all of it, for a reader or another program."""
        files = {name: [{"path": path, "digest": held} for path, held in one.files] for name, one in self._sets()}
        return {"fingerprint": self.digest, **self.request(), "files": files}

    def _sets(self) -> tuple[tuple[str, FileSet], ...]:
        return (("prompts", self.prompts), ("tools", self.tools))


def fingerprint(directory: Path, *, prompts: Sequence[str] = (), tools: Sequence[str] = ()) -> Fingerprint:
    """Return the fingerprint of the agent in a directory; `prompts` and `tools` take the place of its settings' patterns.

    Raises `Refused`.
    """
    try:
        root = directory.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise Refused(f"there is no directory `{directory}`") from error
    if not root.is_dir():
        raise Refused(f"`{directory}` is no directory")
    stated = _settings(root)
    chosen_prompts = tuple(prompts) or stated.get("prompts") or PROMPTS
    chosen_tools = tuple(tools) or stated.get("tools") or tuple(name for name in TOOLS if os.path.lexists(root / name))
    if not chosen_tools:
        raise Refused(f"there is neither {' nor '.join(TOOLS)}: name the tool manifest under `tools`, or with --tools")
    made = Fingerprint(
        key=stated["key"],
        title=stated.get("title", ""),
        provider=stated.get("provider", ""),
        harness=stated["harness"],
        harness_version=stated["harness_version"],
        models=tuple(sorted(set(stated["models"]))),
        closed=stated.get("closed", True),
        prompts=read_files(root, chosen_prompts, what="prompts"),
        tools=read_files(root, chosen_tools, what="tools"),
    )
    try:
        made.digest  # noqa: B018 - a path that is no UTF-8 has no canonical form, and is to be refused here
    except NotCanonical as error:
        raise Refused(f"a file's name cannot be written down: {error}") from error
    return made


# --- settings -------------------------------------------------------------------------------------------------------------------


def _settings(root: Path) -> Mapping[str, Any]:
    path = root / SETTINGS
    try:
        with _inside(root, path, SETTINGS).open("rb") as stream:
            content = stream.read(MAX_SETTINGS_BYTES + 1)
    except OSError as error:
        raise Refused(f"`{SETTINGS}` cannot be read: {error.strerror}; it names key, harness and models under [agent]") from error
    if len(content) > MAX_SETTINGS_BYTES:
        raise Refused(f"`{SETTINGS}` has more than {MAX_SETTINGS_BYTES} bytes")
    try:
        whole = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Refused(f"`{SETTINGS}` is no TOML: {error}") from error
    _refuse_unknown(whole, ("agent",), "")
    stated = whole.get("agent")
    if not isinstance(stated, dict):
        raise Refused(f"`{SETTINGS}` has no [agent]")
    _refuse_unknown(stated, _MEMBERS, "agent.")
    _check(stated)
    return stated


def _check(stated: Mapping[str, Any]) -> None:
    for name in _TEXTS:
        text = stated.get(name)
        if text is None or text == "":
            if name in _REQUIRED:
                raise Refused(f"`agent.{name}` is missing in {SETTINGS}")
        elif not isinstance(text, str) or len(text) > MAX_LINE or not text.isprintable() or text != text.strip():
            raise Refused(f"`agent.{name}` is one line of at most {MAX_LINE} printable characters")
    for name in _LISTS:
        items = stated.get(name)
        if items is not None and not (isinstance(items, list) and all(isinstance(item, str) for item in items)):
            raise Refused(f"`agent.{name}` is a list of texts")
    if not isinstance(stated.get("closed", True), bool):
        raise Refused("`agent.closed` is true or false")
    models = stated.get("models")
    if not models or len(models) > MAX_MODELS:
        raise Refused(f"`agent.models` names every model that can answer: 1 to {MAX_MODELS}, each `key` or `key@number`")
    for field, key in (("key", stated["key"]), *((f"models[{place}]", model) for place, model in enumerate(models))):
        problem = key_problem(key, field=f"agent.{field}")
        if problem is not None:
            raise Refused(str(problem))


def _refuse_unknown(given: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
            raise Refused(f"`{place}{name[:60]}` is unknown in {SETTINGS}; {hint}")


# --- files ----------------------------------------------------------------------------------------------------------------------


def read_files(root: Path, patterns: Sequence[str], *, what: str) -> FileSet:
    """Return the files below a resolved directory that the patterns name. Raises `Refused` for a pattern that names none."""
    chosen: set[str] = set()
    for pattern in patterns:
        found = set(_matching(root, pattern))
        if not found:
            raise Refused(f"the {what} are not whole: `{pattern}` matches no file in {root}")
        chosen |= found
    if len(chosen) > MAX_FILES:
        raise Refused(f"the {what} are {len(chosen)} files: at most {MAX_FILES} are read")
    total, files = 0, []
    for path in sorted(chosen, key=lambda path: path.encode("utf-8", "surrogatepass")):
        held, size = _digest_of_file(root, path)
        total += size
        if total > MAX_TOTAL_BYTES:
            raise Refused(f"the {what} have more than {MAX_TOTAL_BYTES} bytes together")
        files.append((path, held))
    if not total:
        raise Refused(f"the {what} are empty: every file that matches has no bytes")
    return FileSet(tuple(files))


def _matching(root: Path, pattern: str) -> Iterator[str]:
    parts = pattern.split("/")
    if not pattern or pattern.startswith("/") or "\\" in pattern or any(part in ("", ".", "..") for part in parts):
        raise Refused(f"`{pattern}` is no pattern: write a path below the directory, with `/`, without `..`")
    # Only below the part that has no wildcard: a directory may hold far more than the agent's own files.
    fixed = 0
    while fixed < len(parts) - 1 and not re.search(r"[*?\[]", parts[fixed]):
        fixed += 1
    start = "/".join(parts[:fixed])
    if not re.search(r"[*?\[]", pattern):
        if os.path.lexists(root / pattern):
            yield pattern
        return
    for path, is_linked_directory in _below(root, start):
        if is_linked_directory:
            # What lies behind it would be left out silently, or lie elsewhere.
            if _matches(path.split("/"), parts) or _matches([*path.split("/"), "x"], parts):
                raise Refused(f"`{path}` is a symbolic link to a directory: name its files where they are")
        elif _matches(path.split("/"), parts):
            yield path


def _below(root: Path, start: str) -> Iterator[tuple[str, bool]]:
    """Yield every path below `start` that is no directory of its own, and whether it is a link to a directory."""
    waiting, seen = [start], 0
    while waiting:
        place = waiting.pop()
        directory = _inside(root, root / place, place) if place else root
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Refused(f"`{place or '.'}` cannot be read: {error.strerror}") from error
        for entry in entries:
            seen += 1
            if seen > MAX_SEEN:
                raise Refused(f"`{start or '.'}` holds more than {MAX_SEEN} files: narrow the pattern")
            path = f"{place}/{entry.name}" if place else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield path, entry.is_symlink() and os.path.isdir(entry.path)  # noqa: PTH112 - a link to itself is no directory, and no error


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        # At the end it stands for any file below; before other parts, for any number of directories, also none.
        if len(pattern) == 1:
            return bool(path)
        return any(_matches(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def _inside(root: Path, path: Path, name: str) -> Path:
    """Return the path with its links followed. Raises `Refused` where they lead out of the directory."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:
        raise Refused(f"`{name}` is a symbolic link that leads nowhere") from error
    if not real.is_relative_to(root):
        raise Refused(f"`{name}` leads out of the directory: a fingerprint is of the agent's own files")
    return real


def _digest_of_file(root: Path, path: str) -> tuple[str, int]:
    real = _inside(root, root / path, path)
    hashed, size = sha256(), 0
    try:
        if not stat.S_ISREG(real.stat().st_mode):
            raise Refused(f"`{path}` is no file; for all files of a directory write `{path}/**`")
        with real.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise Refused(f"`{path}` has more than {MAX_FILE_BYTES} bytes")
                hashed.update(chunk)
    except OSError as error:
        raise Refused(f"`{path}` cannot be read: {error.strerror}") from error
    return DIGEST_PREFIX + hashed.hexdigest(), size
