"""Placeholders of a window in a user's text: ``{start}``, ``{end:%Y-%m-%d}``, ``{unit.NAME}`` (docs/reference/project-files.md, docs/reference/windows.md).

What stands for them is for the caller to say: in SQL it is a literal, never the bare text of a value. Other braces, such as
those of JSON, stay as they are; ``{{start}}`` is the text ``{start}``.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from partitions.bound_text import FIELDS, Field, Wording, in_minutes, iso
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
"""The finest field that each directive tells."""
_TOLD: Mapping[str, tuple[Field, ...]] = {letter: (field,) for letter, field in _FIELDS.items()} | {
    "j": ("month", "day")
}
_TIMES_OF_DAY: tuple[Field, ...] = ("second", "millisecond", "microsecond")
"""The finest fields of forms that say a whole time of day."""
_PLAIN: Field = "millisecond"
"""The finest field of a bound: all are whole milliseconds."""


class PlaceholderError(ConfigurationError):
    """A placeholder that cannot be taken.

    Attributes:
        nearest: the one that may have been meant.
    """

    def __init__(self, expected: str, found: str, nearest: str | None = None) -> None:
        """Keep the nearest."""
        super().__init__(f"expected {expected}, found {found}")
        self.nearest = nearest


@dataclass(frozen=True)
class Placeholder:
    """One of them.

    Attributes:
        name: ``start``, ``end`` or ``unit.NAME``.
        form: strftime's, for the time as it is in the definition's zone; None is ISO 8601. Units have none.
        position: in the text.
    """

    name: str
    form: str | None
    position: int

    @property
    def text(self) -> str:
        """Return it as a user writes it."""
        return f"{{{self.name}:{self.form}}}" if self.form else f"{{{self.name}}}"

    @property
    def unit(self) -> str | None:
        """Return the name of the unit's value, if the placeholder stands for one."""
        return self.name.removeprefix(_UNIT) if self.name.startswith(_UNIT) else None


@dataclass(frozen=True)
class Template:
    """A text with placeholders, in order."""

    parts: tuple[str | Placeholder, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a text.

        Raises:
            PlaceholderError: for an unknown name, a form that strftime does not know everywhere, a unit with a form.
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
        """All of them, in order, each as often as it stands there."""
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    @property
    def names(self) -> frozenset[str]:
        """Which there are: ``start``, ``end``, ``unit.NAME``."""
        return frozenset(part.name for part in self.placeholders)

    def filled(self, text_of: Callable[[Placeholder], str]) -> str:
        """The text with something in the place of each."""
        return "".join(part if isinstance(part, str) else text_of(part) for part in self.parts)


@dataclass(frozen=True)
class SharedName:
    """A name of a folder that units with other values have, too.

    Attributes:
        name: of the folder.
        values: others that it may stand for, by the unit's name.
    """

    name: str
    values: Mapping[str, str]


def shared_name(template: Template, text_of: Callable[[Placeholder], str]) -> SharedName | None:
    """Return the first folder name of a filled template that other values of its units fill in the same way; None if there is none.

    Values have no slash, so names of folders are told apart one by one: ``{unit.a}-{unit.b}`` is ``x-y-z`` for ``x`` and ``y-z``, and for ``x-y`` and ``z``.
    """
    names: list[list[str | Placeholder]] = [[]]
    for part in template.parts:
        if isinstance(part, Placeholder) and part.unit is not None:
            names[-1].append(part)
            continue
        first, *others = (part if isinstance(part, str) else text_of(part)).split("/")
        names[-1].append(first)
        names += [[other] for other in others]
    units_of = [
        {part.unit or "": text_of(part) for part in parts if isinstance(part, Placeholder)} for parts in names
    ]
    alone = dict(item for units in units_of if len(units) == 1 for item in units.items())
    for parts, units in zip(names, units_of, strict=True):
        name = "".join(part if isinstance(part, str) else units[part.unit or ""] for part in parts)
        known = {unit: value for unit, value in alone.items() if unit in units}
        other = next((values for values in _readings(parts, name, known) if values != units), None)
        if other is not None:
            return SharedName(name, other)
    return None


def _readings(
    parts: Sequence[str | Placeholder], text: str, values: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield the values of units with which these parts are a text, each in its own way."""
    if not parts:
        if not text:
            yield values
        return
    first, *rest = parts
    known = first if isinstance(first, str) else values.get(first.unit or "")
    if known is not None:
        if text.startswith(known):
            yield from _readings(rest, text[len(known) :], values)
        return
    assert isinstance(first, Placeholder)
    for length in range(1, len(text) + 1):
        yield from _readings(rest, text[length:], {**values, first.unit or "": text[:length]})


def adjacent_units(template: Template) -> tuple[Placeholder, Placeholder] | None:
    """Return two units with nothing between them, so that no value tells where it ends; None if there are none."""
    parts = [part for part in template.parts if part != ""]
    units = [part if isinstance(part, Placeholder) and part.unit is not None else None for part in parts]
    for first, second in itertools.pairwise(units):
        if first is not None and second is not None and first.unit != second.unit:
            return first, second
    return None


def wording(
    placeholders: Iterable[Placeholder], name: str, zone: tzinfo, *, plain_says_offset: bool = True
) -> Wording:
    """Return how the forms of ``{start}`` or ``{end}`` write a bound together.

    Args:
        placeholders: of one source; several forms of a name add up, as in ``{start:%Y}/{start:%m}/{start:%d}``.
        name: ``start`` or ``end``.
        zone: of the definition.
        plain_says_offset: whether who reads a placeholder without a form takes notice of its offset.
    """
    forms = [placeholder.form for placeholder in placeholders if placeholder.name == name]
    if name == "end" and all(form is None or _is_complete(form) for form in forms):
        # Each is a bound of its own: rows below the finer one that are beyond the coarser one would be left out.
        single = [_wording([form], zone, plain_says_offset) for form in forms]
        return min(single, key=lambda words: (FIELDS.index(words.finest), words.says_offset))
    return _wording(forms, zone, plain_says_offset)


def _wording(forms: Sequence[str | None], zone: tzinfo, plain_says_offset: bool) -> Wording:
    if None in forms:
        return Wording(zone, _PLAIN, plain_says_offset)
    return Wording(zone, _finest(forms), "z" in _letters(forms))


def _finest(forms: Iterable[str | None]) -> Field:
    fields = [_FIELDS[letter] for letter in _letters(forms) if letter in _FIELDS]
    return max(fields, key=FIELDS.index, default=_PLAIN)


def _is_complete(form: str) -> bool:
    """Whether a form says each field from the year down to its finest one."""
    return _says_all([form], _finest([form]))


def written(placeholder: Placeholder, moment: datetime) -> str:
    """Return the text of a moment, as the form says it; ISO 8601 with its offset without one. A year has four digits."""
    if not placeholder.form:
        return iso(moment)
    if (
        "z" in _letters([placeholder.form])
        and _is_complete(placeholder.form)
        and _finest([placeholder.form]) in _TIMES_OF_DAY
    ):
        moment = in_minutes(moment)
    form = _DIRECTIVE.sub(
        lambda match: f"{moment.year:04}" if match[1] == "Y" else match[0], placeholder.form
    )
    return moment.strftime(form)


def inexpressible(name: str, moment: datetime) -> str:
    """Return the message for a bound that the forms of ``{start}`` or ``{end}`` cannot say, if no column tells the time of a row."""
    return (
        f"source: expected placeholders {{{name}:…}} that can say {moment.isoformat()}, an end of what is read, found others; use {{{name}}}"
        " or a form that is as fine and has %z (a local time without it may be one of two), name the column with a row's time as window_column, or"
        " read whole windows (watermark.partial: false)"
    )


def tell_apart(placeholders: Iterable[Placeholder], finest: Field) -> bool:
    """Return whether the forms of ``{start}``, or those of ``{end}``, say each field from the year down to the finest, so that no two windows have one text."""
    given = list(placeholders)
    return any(_says_all([each.form for each in given if each.name == name], finest) for name in TIMES)


def two_digit_year(placeholders: Iterable[Placeholder]) -> Placeholder | None:
    """Return a placeholder that writes a year with two digits alone; None if there is none."""
    given = list(placeholders)
    said = {name: _letters(each.form for each in given if each.name == name) for name in TIMES}
    return next(
        (
            each
            for each in given
            if "y" in _letters([each.form]) and "Y" not in said[each.name] and each.name in TIMES
        ),
        None,
    )


def _says_all(forms: Sequence[str | None], finest: Field) -> bool:
    if None in forms:
        return True
    told = {field for letter in _letters(forms) for field in _TOLD.get(letter, ())}
    return bool(forms) and told.issuperset(FIELDS[: FIELDS.index(finest) + 1])


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
        known = " ".join(f"%{letter}" for letter in _DIRECTIVES)
        raise PlaceholderError(
            f"a form of {known}, such as {{start:%Y-%m-%d}}", f"the placeholder {match[0]}"
        )
    return Placeholder(name, form, match.start())
