"""Placeholders of a window in a user's text: ``{start}``, ``{end:%Y-%m-%d}``, ``{unit.NAME}``.

The caller fills them in (docs/reference/project-files.md, docs/reference/windows.md). In SQL it writes a literal, never
the bare text of a value. Other braces, such as those of JSON, stay as they are; ``{{start}}`` is the text
``{start}``.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from partitions.bound_text import FIELDS, BoundFormat, Field, iso_text, with_minute_offset
from partitions.errors import ConfigurationError

TIMES = ("start", "end")
_UNIT = "unit."
_TOKEN = re.compile(
    r"\{\{(?P<plain>[^\W\d]\w*(?:\.[^{}:]+)?(?::[^{}]*)?)\}\}|\{(?P<name>[^\W\d]\w*(?:\.[^{}:]+)?)(?::(?P<form>[^{}]*))?\}"
)
_DIRECTIVE = re.compile(r"%(.?)")
_DIRECTIVES = "YmdHMSfjyz%"
_FIELDS: Mapping[str, Field] = {
    "Y": "year",
    "y": "year",
    "m": "month",
    "d": "day",
    "j": "day",
    "H": "hour",
    "M": "minute",
    "S": "second",
    "f": "microsecond",
}
"""The finest field that each directive writes."""
_TOLD: Mapping[str, tuple[Field, ...]] = {letter: (field,) for letter, field in _FIELDS.items()} | {
    "j": ("month", "day")
}
_TIMES_OF_DAY: tuple[Field, ...] = ("second", "millisecond", "microsecond")
"""The finest fields of forms that write a whole time of day."""
_PLAIN: Field = "millisecond"
"""The finest field of a bound: all are whole milliseconds."""


class PlaceholderError(ConfigurationError):
    """A placeholder that is refused.

    Attributes:
        nearest: the placeholder that the user may have meant.
    """

    def __init__(self, expected: str, actual: str, nearest: str | None = None) -> None:
        """Keep the nearest placeholder."""
        super().__init__(f"expected {expected}, found {actual}")
        self.nearest = nearest


@dataclass(frozen=True)
class Placeholder:
    """One placeholder of a text.

    Attributes:
        name: ``start``, ``end`` or ``unit.NAME``.
        form: strftime format for the time in the definition's zone; None: ISO 8601. Units have none.
        position: offset in the text.
    """

    name: str
    form: str | None
    position: int

    @property
    def text(self) -> str:
        """The placeholder as a user writes it."""
        return f"{{{self.name}:{self.form}}}" if self.form else f"{{{self.name}}}"

    @property
    def unit(self) -> str | None:
        """The name of its unit value; None for a time."""
        return self.name.removeprefix(_UNIT) if self.name.startswith(_UNIT) else None


@dataclass(frozen=True)
class Template:
    """A text with placeholders, in order."""

    parts: tuple[str | Placeholder, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Parse a text.

        Raises:
            PlaceholderError: an unknown name, a format that strftime does not support everywhere, or a
            unit with a format.
        """
        parts: list[str | Placeholder] = []
        end = 0
        for match in _TOKEN.finditer(text):
            parts.append(text[end : match.start()])
            parts.append(f"{{{match['plain']}}}" if match["plain"] else _placeholder(match))
            end = match.end()
        return cls((*parts, text[end:]))

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All placeholders, in order, with repetitions."""
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    @property
    def names(self) -> frozenset[str]:
        """The names of its placeholders: ``start``, ``end``, ``unit.NAME``."""
        return frozenset(part.name for part in self.placeholders)

    def filled(self, text_of: Callable[[Placeholder], str]) -> str:
        """Return the text with each placeholder replaced."""
        return "".join(part if isinstance(part, str) else text_of(part) for part in self.parts)


@dataclass(frozen=True)
class SharedName:
    """A folder name that several combinations of unit values share.

    Attributes:
        name: name of the folder.
        values: another combination with that name, by unit.
    """

    name: str
    values: Mapping[str, str]


def shared_name(template: Template, text_of: Callable[[Placeholder], str]) -> SharedName | None:
    """Return the first folder name that other unit values would fill in the same way, or None.

    Values hold no slash, so folder names are compared one by one. Example: ``{unit.a}-{unit.b}`` is
    ``x-y-z`` for ``x`` and ``y-z``, and for ``x-y`` and ``z``.
    """
    names: list[list[str | Placeholder]] = [[]]
    for part in template.parts:
        if isinstance(part, Placeholder) and part.unit is not None:
            names[-1].append(part)
            continue
        first, *following_folders = (part if isinstance(part, str) else text_of(part)).split("/")
        names[-1].append(first)
        names += [[other_values] for other_values in following_folders]
    units_of = [
        {part.unit or "": text_of(part) for part in parts if isinstance(part, Placeholder)} for parts in names
    ]
    alone = dict(item for units in units_of if len(units) == 1 for item in units.items())
    for parts, units in zip(names, units_of, strict=True):
        name = "".join(part if isinstance(part, str) else units[part.unit or ""] for part in parts)
        values_of_lone_units = {unit: value for unit, value in alone.items() if unit in units}
        other_values = next(
            (values for values in _readings(parts, name, values_of_lone_units) if values != units), None
        )
        if other_values is not None:
            return SharedName(name, other_values)
    return None


def _readings(
    parts: Sequence[str | Placeholder], text: str, values: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield each combination of unit values with which these parts are the text."""
    if not parts:
        if not text:
            yield values
        return
    first, *rest = parts
    text_of_part = first if isinstance(first, str) else values.get(first.unit or "")
    if text_of_part is not None:
        if text.startswith(text_of_part):
            yield from _readings(rest, text[len(text_of_part) :], values)
        return
    assert isinstance(first, Placeholder)
    for length in range(1, len(text) + 1):
        yield from _readings(rest, text[length:], {**values, first.unit or "": text[:length]})


def adjacent_units(template: Template) -> tuple[Placeholder, Placeholder] | None:
    """Return two units without text between them, or None if there are none.

    No value of the first would show where it ends.
    """
    parts = [part for part in template.parts if part != ""]
    units = [part if isinstance(part, Placeholder) and part.unit is not None else None for part in parts]
    for first, second in itertools.pairwise(units):
        if first is not None and second is not None and first.unit != second.unit:
            return first, second
    return None


def bound_format(
    placeholders: Iterable[Placeholder], name: str, zone: tzinfo, *, plain_says_offset: bool = True
) -> BoundFormat:
    """Return the fields that all forms of ``{start}`` or ``{end}`` write together.

    Args:
        placeholders: those of one source; several forms of a name add up, as in
        ``{start:%Y}/{start:%m}/{start:%d}``.
        name: ``start`` or ``end``.
        zone: zone of the definition.
        plain_says_offset: whether the reader of a placeholder without a form uses its offset.
    """
    forms = [placeholder.form for placeholder in placeholders if placeholder.name == name]
    if name == "end" and all(form is None or _is_complete(form) for form in forms):
        # Each is a bound of its own: rows below the finer one that are beyond the coarser one would be left out.
        single = [_wording([form], zone, plain_says_offset) for form in forms]
        return min(single, key=lambda words: (FIELDS.index(words.finest), words.says_offset))
    return _wording(forms, zone, plain_says_offset)


def _wording(forms: Sequence[str | None], zone: tzinfo, plain_says_offset: bool) -> BoundFormat:
    if None in forms:
        return BoundFormat(zone, _PLAIN, plain_says_offset)
    return BoundFormat(zone, _finest(forms), "z" in _letters(forms))


def _finest(forms: Iterable[str | None]) -> Field:
    fields = [_FIELDS[letter] for letter in _letters(forms) if letter in _FIELDS]
    return max(fields, key=FIELDS.index, default=_PLAIN)


def _is_complete(form: str) -> bool:
    """Return whether a form has each field from the year down to its finest one."""
    return _says_all([form], _finest([form]))


def format_moment(placeholder: Placeholder, moment: datetime) -> str:
    """Return the text of a moment in the placeholder's form; without a form ISO 8601 with its offset.

    A year has four digits.
    """
    if not placeholder.form:
        return iso_text(moment)
    if (
        "z" in _letters([placeholder.form])
        and _is_complete(placeholder.form)
        and _finest([placeholder.form]) in _TIMES_OF_DAY
    ):
        moment = with_minute_offset(moment)
    form = _DIRECTIVE.sub(
        lambda match: f"{moment.year:04}" if match[1] == "Y" else match[0], placeholder.form
    )
    return moment.strftime(form)


def inexpressible_bound(name: str, moment: datetime) -> str:
    """Return the message for a bound that no form of ``{start}`` or ``{end}`` can write.

    It applies if no column holds the time of a row.
    """
    return (
        f"source: expected placeholders {{{name}:…}} that can write {moment.isoformat()}, the {name} of the read, found others; use {{{name}}}"
        " or a finer form with %z (without it a local time may mean two instants), set window_column to the column with a row's time, or"
        " read whole windows (watermark.partial: false)"
    )


def forms_reach(placeholders: Iterable[Placeholder], finest: Field) -> bool:
    """Return whether the forms of ``{start}`` or of ``{end}`` write each field down to the finest.

    Then no two windows have the same text.
    """
    all_placeholders = list(placeholders)
    return any(
        _says_all([placeholder.form for placeholder in all_placeholders if placeholder.name == name], finest)
        for name in TIMES
    )


def two_digit_year(placeholders: Iterable[Placeholder]) -> Placeholder | None:
    """Return a placeholder that writes the year with two digits only; None if there is none."""
    all_placeholders = list(placeholders)
    letters_by_name = {
        name: _letters(placeholder.form for placeholder in all_placeholders if placeholder.name == name)
        for name in TIMES
    }
    return next(
        (
            placeholder
            for placeholder in all_placeholders
            if "y" in _letters([placeholder.form])
            and "Y" not in letters_by_name[placeholder.name]
            and placeholder.name in TIMES
        ),
        None,
    )


def _says_all(forms: Sequence[str | None], finest: Field) -> bool:
    if None in forms:
        return True
    fields = {field for letter in _letters(forms) for field in _TOLD.get(letter, ())}
    return bool(forms) and fields.issuperset(FIELDS[: FIELDS.index(finest) + 1])


def _letters(forms: Iterable[str | None]) -> set[str]:
    return {letter for form in forms for letter in _DIRECTIVE.findall(form or "")}


def _placeholder(match: re.Match[str]) -> Placeholder:
    name, form = match["name"], match["form"]
    if name not in TIMES and not name.startswith(_UNIT):
        close = difflib.get_close_matches(name.casefold(), [*TIMES, "unit"], n=1)
        raise PlaceholderError(
            "{start}, {end} or {unit.NAME}; a text in braces is written {{so}}",
            f"the placeholder {match[0]}",
            {"start": "{start}", "end": "{end}", "unit": "{unit.NAME}"}[close[0]] if close else None,
        )
    if form is not None and name not in TIMES:
        raise PlaceholderError("{unit.NAME} without a form", f"the placeholder {match[0]}")
    unknown = [letter for letter in _DIRECTIVE.findall(form or "") if letter not in _DIRECTIVES or not letter]
    if unknown or form == "":
        directives = " ".join(f"%{letter}" for letter in _DIRECTIVES)
        raise PlaceholderError(
            f"a form of {directives}, such as {{start:%Y-%m-%d}}", f"the placeholder {match[0]}"
        )
    return Placeholder(name, form, match.start())
