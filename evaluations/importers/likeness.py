"""What two names have in common: for a person who has to say whether they mean the same. Nothing here decides anything.

Effort, snapshot, provider prefix, quantisation and fallback are part of an identity. They are split off only to find the names that
are the same without them, and are named as what differs.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

_PROVIDERS = (
    "anthropic azure azure_ai bedrock cohere deepinfra deepseek deepseek-ai fireworks fireworks_ai gemini google groq hf "
    "huggingface litellm litellm_proxy meta meta-llama mistral mistralai models moonshotai ollama openai openai-api openrouter "
    "qwen replicate together together_ai together-ai vertex vertex_ai vllm x-ai xai zai z-ai"
)
PROVIDERS = frozenset(_PROVIDERS.split())
"""Hosts and routers that names carry in front, each followed by `/` or `:`."""

SAME_LETTERS, LOOKS_ALIKE, SAME_BUT_PARTS, CLOSE = "same_letters", "looks_alike", "same_but_parts", "close"
WAYS = (SAME_LETTERS, LOOKS_ALIKE, SAME_BUT_PARTS, CLOSE)
"""How a name is like another, nearest first."""

CLOSE_ENOUGH = 0.85
MOST = 5

_EFFORT = r"(?:x-?high|high|medium|low|minimal|max|none|non-reasoning|reasoning|no-?thinking|thinking(?:-[0-9]+k)?)(?:-effort)?"
_QUANTISED = r"(?:fp(?:4|8|16)|bf16|int[48]|[48]-?bit|awq|gptq|gguf|nvfp4|q[2-8](?:-[0k])?(?:-[sml])?)"
_SNAPSHOT = r"(?:20[0-9]{2}-?[01][0-9]-?[0-3][0-9])"
_TAILS = (
    ("fallback", re.compile(r"-(?:with|w)-((?:[a-z0-9-]+-)?fallbacks?)$")),
    ("fallback", re.compile(r"-(fallbacks?)$")),
    ("snapshot", re.compile(rf"-({_SNAPSHOT})$")),
    ("effort", re.compile(rf"-({_EFFORT})$")),
    ("quantisation", re.compile(rf"-({_QUANTISED})$")),
)
_BETWEEN = re.compile(r"[^a-z0-9]+")
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "8": "b"})


class Parts(NamedTuple):
    """A name taken apart: what is left of it in letters and digits, and what was split off, by kind ("effort": "high")."""

    base: str
    split: Mapping[str, str]


class Likeness(NamedTuple):
    """A known name that another is like, by which of `WAYS`, and the parts in which they differ as (kind, its own, the known one's)."""

    known: str
    way: str
    differs: tuple[tuple[str, str, str], ...]


def letters_of(name: str) -> str:
    """Return a name's letters and digits in lower case with one `-` between: `GPT_4.5 (High)` and `gpt-4-5-high` are the same."""
    return _BETWEEN.sub("-", name.lower()).strip("-")


def parts_of(name: str) -> Parts:
    """Take a name apart. What is not known as a prefix, a date, an effort or the like stays in its base."""
    split: dict[str, str] = {}
    rest, prefixes = name.strip().lower(), []
    while True:
        head, mark, tail = rest.partition("/") if "/" in rest else rest.partition(":")
        if not mark or head not in PROVIDERS or not tail:
            break
        prefixes.append(head)
        rest = tail
    if prefixes:
        split["provider"] = "/".join(prefixes)
    base = letters_of(rest)
    found = True
    while found:
        found = False
        for kind, pattern in _TAILS:
            match = pattern.search(base)
            # A name is never split to nothing, and no kind twice: what is left over then belongs to the name.
            if match and match.start() > 0 and kind not in split:
                split[kind], base, found = match[1], base[: match.start()], True
    return Parts(base, split)


class KnownNames:
    """Names that mean something, ready to be asked which of them another name is like."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(set(names))
        self._by: dict[str, dict[str, list[str]]] = {way: {} for way in WAYS}
        for name in self._names:
            letters = letters_of(name)
            for way, form in (
                (SAME_LETTERS, letters),
                (LOOKS_ALIKE, letters.translate(_ALIKE)),
                (SAME_BUT_PARTS, parts_of(name).base),
                (CLOSE, letters),
            ):
                self._by[way].setdefault(form, []).append(name)

    def like(self, name: str, *, close: bool = True) -> list[Likeness]:
        """Return at most `MOST` known names, nearest first. `close` also compares letter by letter, which takes its time."""
        letters, parts = letters_of(name), parts_of(name)
        forms = {SAME_LETTERS: [letters], LOOKS_ALIKE: [letters.translate(_ALIKE)], SAME_BUT_PARTS: [parts.base]}
        if close:
            forms[CLOSE] = get_close_matches(letters, self._by[CLOSE], n=MOST, cutoff=CLOSE_ENOUGH)
        found: dict[str, Likeness] = {}
        for way, each in forms.items():
            for known in (known for form in each for known in self._by[way].get(form, ())):
                if known != name:
                    found.setdefault(known, Likeness(known, way, _differences(parts, parts_of(known))))
        return sorted(found.values(), key=lambda one: (WAYS.index(one.way), len(one.differs)))[:MOST]


def _differences(own: Parts, known: Parts) -> tuple[tuple[str, str, str], ...]:
    kinds = sorted(own.split.keys() | known.split.keys())
    return tuple(
        (kind, own.split.get(kind, ""), known.split.get(kind, ""))
        for kind in kinds
        if own.split.get(kind, "") != known.split.get(kind, "")
    )
