"""YAML of other tools, read as plain values: numbers keep their text, duplicate keys and aliases are refused.

Aliases are refused because a few hundred bytes of them can stand for a billion values; no result file needs one.
"""

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from evaluations.importers.base import refuse
from evaluations.importers.fields import NumberText
from evaluations.kernel.errors import InputRefused

MAX_DEPTH = 60
MAX_EVENTS = 2_000_000


def parse_yaml(text: str, *, name: str) -> Any:
    """Return the value of one YAML document. Raises `InputRefused` naming the line."""
    try:
        depth = 0
        for count, event in enumerate(YAML(typ="safe", pure=True).parse(text)):
            if isinstance(event, AliasEvent):
                raise _refuse("an alias stands for another part of the file", name, event.start_mark)
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > MAX_DEPTH or count > MAX_EVENTS:
                raise _refuse("the YAML is nested too deeply, or too long", name, event.start_mark)
        loader = YAML(typ="safe", pure=True)
        loader.allow_duplicate_keys = False
        return _plain(loader.load(text))
    except DuplicateKeyError as error:
        raise _refuse("a key stands twice", name, error.problem_mark) from None
    except MarkedYAMLError as error:
        raise _refuse(f"this is no YAML: {error.problem or error.context}", name, error.problem_mark) from None
    except (
        YAMLError,
        ValueError,
        TypeError,
        ArithmeticError,
        RecursionError,
        AttributeError,
        IndexError,
        AssertionError,
    ) as error:
        raise _refuse(
            f"this is no YAML: {str(error)[:80].splitlines()[0] if str(error) else type(error).__name__}", name, None
        ) from None


def _refuse(message: str, name: str, mark: Any) -> InputRefused:
    line = mark.line + 1 if mark is not None else None
    return refuse(
        " ".join(message.split()), file=name, line=line, code="malformed", hint="fetch the file again, or give it as JSON"
    )


def _plain(value: Any) -> Any:
    """Return the value with numbers as text and keys as text, as the JSON reader gives them."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return NumberText(repr(value))
    return str(value)
