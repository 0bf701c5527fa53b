"""What differs between two dossiers, in words. Both are read as the canonical documents that were, or would be, signed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from policies.admin.marks import RESULT_MARKS

_LEFT_OUT = frozenset(
    {"request", "format", "uid", "core_digest", "facts_digest", "params_digest", "previous", "deciding", "excluded", "requester"}
)
"""What follows from the rest, or names the request itself: its change alone says nothing to a reader."""

_KEYS: Mapping[str, Sequence[str]] = {
    "policies": ("policy", "system"),
    "rules": ("id",),
    "systems": ("key",),
    "reaches": ("subject",),
    "parts": ("name",),
    "all_of": ("factor",),
    "waivers": ("rule", "policy", "system"),
    "evidence": ("source", "subject_as_written", "uid"),
    "unknown": ("rule", "policy", "system"),
    "obstacles": ("sentence",),
    "stops": ("scope", "key", "at"),
    "tests": ("name",),
    "lint": ("code", "place", "message"),
    "changes": ("path",),
    "newly_permitted": ("subject", "subject_version", "domain", "systems"),
    "newly_refused": ("subject", "subject_version", "domain", "systems"),
    "nearest": ("subject", "subject_version", "domain", "systems"),
}
"""By which fields the items of a list are known again."""

_ONE = {
    "policies": "policy",
    "rules": "rule",
    "systems": "system",
    "reaches": "reached model",
    "parts": "part",
    "all_of": "signatures of",
    "waivers": "waiver",
    "unknown": "nothing known for",
    "obstacles": "obstacle",
    "stops": "stop",
    "tests": "test",
    "lint": "finding",
    "changes": "meaning of",
}
THERE = "there"
"""What is said of an item that has no better word for itself."""
_RESULT_WORDS = {str(word): mark.word for word, mark in RESULT_MARKS.items()}


class Change(NamedTuple):
    """One difference: where, and what it was and is. An empty side means that it was not there, or is no more."""

    where: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return what differs, in the order of the documents."""
    return list(_of_mappings((), before, after))


def _of_mappings(path: tuple[str, ...], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    # What was measured is told once, also where the number as stated is the very same.
    told_twice = {"value"} if all(side.get("measured") == side.get("value") for side in (before, after)) else set()
    for name in dict.fromkeys([*before, *after]):
        if name not in _LEFT_OUT | told_twice and before.get(name) != after.get(name):
            yield from _of_values(path, name, before.get(name), after.get(name))


def _of_values(path: tuple[str, ...], name: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _of_mappings((*path, _plain(name)) if path or name not in {"question", "terms"} else path, before, after)
    elif name in _KEYS and isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(path, name, before, after)
    else:
        yield Change(" › ".join((*path, _plain(name))), _spelled(name, before), _spelled(name, after))


def _of_lists(path: tuple[str, ...], name: str, before: list[Any], after: list[Any]) -> Iterator[Change]:
    old, new = ({_key(name, item): item for item in items} for items in (before, after))
    for key in dict.fromkeys([*old, *new]):
        one = f"{_ONE.get(name, _plain(name))} {_words(name, key)}".rstrip()
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            yield Change(
                " › ".join((*path, one)), "" if was is None else _in_short(name, was), "" if now is None else _in_short(name, now)
            )
        elif was != now:
            yield from _of_mappings((*path, one), was, now)


def _key(name: str, item: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(item.get(field, "")) for field in _KEYS[name])


def _words(name: str, key: tuple[str, ...]) -> str:
    if name == "policies":
        return f"`{key[0]}` on `{key[1]}`"
    if name in {"waivers", "unknown"}:
        return f"rule `{key[0]}` of `{key[1]}` on `{key[2]}`"
    if name == "evidence":
        return f"from `{key[0]}` about `{key[1]}`"
    if name == "obstacles":
        # Its sentence is told as what came or went, and names things itself.
        return ""
    return " ".join(f"`{part}`" for part in key)


def _in_short(name: str, item: Mapping[str, Any]) -> str:
    """Say an item that came or went by the one word that matters."""
    for field in ("result", "sentence", "reason", "title", "after"):
        if item.get(field):
            return _spelled(field, item[field])
    return THERE


def _spelled(name: str, value: Any) -> str:
    if value is None or value == "" or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in {"result", "outcome"}:
        return _RESULT_WORDS.get(str(value), str(value))
    if isinstance(value, list):
        return ", ".join(_spelled(name, item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{_plain(field)} {_spelled(field, held)}" for field, held in value.items() if field not in _LEFT_OUT)
    text = str(value)
    if name.endswith("_at"):
        return f"{text[:19].replace('T', ' ')} UTC"
    return f"{text[:19]}…" if text.startswith("sha256:") else text


def _plain(name: str) -> str:
    return "errored or unscored" if name == "lost" else name.replace("_", " ")
