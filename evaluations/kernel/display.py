"""What a read-only page is made of: small pieces of safe HTML, and the sections that a record's page shows.

Knows no domain noun. A cell is text (escaped when rendered), safe HTML made here, or an `ActorReference`, which the site may
render by the person's name.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from evaluations.kernel.canonical import DIGEST_PREFIX
from evaluations.kernel.numbers import plain

NOT_STATED = "not stated"
SHOWN_DIGEST = 12
UNIT_SIGNS = {"percent": "%", "usd": "US$", "count": ""}


class ActorReference(str):  # noqa: SLOT000 - it carries a name
    """An actor as rows cite it, `kind:id`. Whoever renders the page may set `name`, which is then shown in its place."""

    name: str = ""

    def __html__(self) -> SafeString:
        if self.name:
            return format_html('<span class="wg-actor" title="{}">{}</span>', str.__str__(self), self.name)
        return format_html("<code>{}</code>", str.__str__(self))


Cell = Any
"""`str`, `SafeString` or `ActorReference`."""


@dataclass(frozen=True)
class Fields:
    """Labelled values of one record."""

    title: str
    rows: Sequence[tuple[str, Cell]]
    note: str = ""
    template: ClassVar[str] = "writegate/sections/fields.html"

    def cells(self) -> Iterable[Cell]:
        return (value for _, value in self.rows)


@dataclass(frozen=True)
class Table:
    """Rows under headed columns; `empty` is the sentence shown in place of no rows, `more` a link to all of them."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    empty: str
    note: Cell = ""
    more: Cell = ""
    template: ClassVar[str] = "writegate/sections/table.html"

    def cells(self) -> Iterable[Cell]:
        return (cell for row in self.rows for cell in row)

    def labelled(self) -> Iterable[Iterable[tuple[str, Cell]]]:
        """Yield each row's cells with their columns' names, which a narrow page shows beside each value."""
        return (zip(self.columns, row, strict=True) for row in self.rows)


@dataclass(frozen=True)
class Texts:
    """Preformatted texts side by side, each with its label."""

    title: str
    texts: Sequence[tuple[str, str]]
    note: Cell = ""
    template: ClassVar[str] = "writegate/sections/texts.html"

    def cells(self) -> Iterable[Cell]:
        return ()


@dataclass(frozen=True)
class Custom:
    """A section with a template of its own, which finds `data` in its context."""

    title: str
    template: str
    data: Any = None

    def cells(self) -> Iterable[Cell]:
        return ()


Section = Fields | Table | Texts | Custom


@dataclass(frozen=True)
class Record:
    """A record's page. `lead` says in one sentence what this is; `target` is how audit entries name it, (kind, id)."""

    lead: Cell = ""
    mark: Cell = ""
    sections: Sequence[Section] = ()
    downloads: Sequence[tuple[str, str]] = ()
    target: tuple[str, str] | None = None


def references_in(sections: Iterable[Section]) -> list[ActorReference]:
    """Return every actor that the sections cite."""
    return [cell for section in sections for cell in section.cells() if isinstance(cell, ActorReference)]


class Mark(NamedTuple):
    """How a word of a closed list looks: the word itself always, a symbol and a tone beside it."""

    word: str
    tone: str = "neutral"
    symbol: str = ""


def chip(mark: Mark) -> SafeString:
    """Render a word as a chip. The word carries the meaning; symbol and colour only repeat it."""
    symbol = (
        format_html('<span class="material-symbols-outlined wg-symbol" aria-hidden="true">{}</span>', mark.symbol)
        if mark.symbol
        else ""
    )
    return format_html('<span class="wg-chip wg-{}">{}{}</span>', mark.tone, symbol, mark.word)


def instant(moment: datetime | None, *, empty: str = NOT_STATED) -> Cell:
    """Render an instant in UTC to the second; the reader's own zone is put beside it by script where there is one."""
    if moment is None:
        return empty
    utc = moment.astimezone(UTC)
    return format_html(
        '<span class="wg-when"><time class="wg-time" datetime="{}">{} UTC</time></span>',
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
    )


def number(value: Decimal | int | None, unit: str = "", *, empty: str = NOT_STATED) -> str:
    """Spell a number exactly, with its unit; a value that is not finite is named as such, never shown as a figure."""
    if value is None:
        return empty
    exact = value if isinstance(value, Decimal) else Decimal(value)
    if not exact.is_finite():
        return f"not a finite number ({exact})"
    sign = UNIT_SIGNS.get(unit, unit)
    return f"{plain(exact)} {sign}".rstrip()


def digest(value: str) -> Cell:
    """Show a digest's head; the whole of it is in the title and selectable."""
    if not value:
        return NOT_STATED
    head = value.removeprefix(DIGEST_PREFIX)[:SHOWN_DIGEST]
    return format_html('<code class="wg-digest" title="{}">{}…</code>', value, head)


def whole_digest(value: str) -> Cell:
    """Show a digest in full, breaking where the page needs it."""
    return format_html('<code class="wg-digest wg-whole">{}</code>', value) if value else NOT_STATED


def shortened(text: str, *, most: int = 40) -> Cell:
    """Show the head of a long identifier, the whole of it in the title."""
    return text if len(text) <= most else format_html('<span title="{}">{}…</span>', text, text[: most - 1])


def code(text: str) -> SafeString:
    return format_html("<code>{}</code>", text)


def ticked(text: str) -> SafeString:
    """Render a sentence whose names stand in back-ticks."""
    parts = text.split("`")
    return format_html_join("", "{}", ((code(part) if place % 2 else part,) for place, part in enumerate(parts)))


def url_of(row: Model, site: str = "admin") -> str:
    """Return the address of a record's page, "" where no page shows it."""
    meta = row._meta
    try:
        return reverse(f"{site}:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    except NoReverseMatch:
        return ""


def link(row: Model | None, text: object = None, *, empty: str = NOT_STATED) -> Cell:
    """Link to a record's page under `text`, by default the row's own text."""
    if row is None:
        return empty
    shown = str(row) if text is None else text
    address = url_of(row)
    return anchor(address, shown) if address else shown


def anchor(address: str, text: object) -> SafeString:
    return format_html('<a class="wg-link" href="{}">{}</a>', address, text)


def list_link(model: type[Model], text: object, **query: str | int) -> SafeString:
    """Link to a model's list, narrowed by query parameters."""
    meta = model._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return anchor(f"{address}?{urlencode(query)}" if query else address, text)


def outside(address: str) -> Cell:
    """Link to another site; anything but http and https is shown as text."""
    if not address:
        return NOT_STATED
    if not address.startswith(("https://", "http://")):
        return address
    return format_html('<a class="wg-link" href="{}" rel="noopener noreferrer nofollow">{}</a>', address, address)


def yes_no(value: object) -> str:
    return "yes" if value else "no"


def said(text: object, *, empty: str = NOT_STATED) -> str:
    """Return the text, or the words for its absence."""
    return str(text) if text not in (None, "") else empty


def words(values: Iterable[object], *, empty: str = "none") -> Cell:
    """Render several words, each of which may break onto its own line."""
    return format_html_join(" ", "<code>{}</code>", ((value,) for value in values)) or empty


def readable_json(content: bytes | str | Mapping[str, Any]) -> str:
    """Return JSON spread over lines, every number spelled as stored; what is no JSON is returned as text."""
    if isinstance(content, Mapping):
        return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True, default=str)
    text = content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text, parse_float=Decimal), indent=2, ensure_ascii=False, default=str)
    except ValueError:
        return text


def size(count: int) -> str:
    """Spell a number of bytes, exactly and readably."""
    shown = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if shown < 1024 or unit == "GiB":
            break
        shown /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{shown:.1f} {unit} ({count:,} bytes)"
