"""Placeholders of a window in a user's text: ``{start}``, ``{end:%Y-%m-%d}``, ``{unit.NAME}`` (docs/project-files.md, docs/guide-windows.md).

What stands for them is for the caller to say: in SQL it is a literal, never the bare text of a value. Other braces, such as
those of JSON, stay as they are; ``{{start}}`` is the text ``{start}``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from partitions.errors import ConfigurationError
from partitions.instants import Floor

TIMES = ("start", "end")
_UNIT = "unit."
_TOKEN = re.compile(
    r"\{\{(?P<plain>[^\W\d]\w*(?:\.[^{}:]+)?(?::[^{}]*)?)\}\}|\{(?P<name>[^\W\d]\w*(?:\.[^{}:]+)?)(?::(?P<form>[^{}]*))?\}"
)
_DIRECTIVE = re.compile(r"%(.?)")
_DIRECTIVES = "YmdHMSfjyz%"
_STEPS = {"Y": 0, "y": 0, "m": 1, "d": 2, "j": 2, "H": 3, "M": 4, "S": 5, "f": 6}
"""What each directive tells: the year, the month, the day, the hour, the minute, the second, the microsecond."""
_YEAR, _MONTH, _DAY, _FINEST = 0, 1, 2, 6
_FLOORS: dict[Floor, int] = {"day": 2, "hour": 3, "minute": 4}
_SHORTER = {3: timedelta(hours=1), 4: timedelta(minutes=1), 5: timedelta(seconds=1)}
_LOWEST = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}


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


def expressible(placeholders: Iterable[Placeholder], name: str, moment: datetime) -> datetime:
    """Return the bound that the forms of ``{start}`` or ``{end}`` can say together: at least the stretch of time that is meant lies within.

    Args:
        placeholders: of one source; several forms of a name add up, as in ``{start:%Y}/{start:%m}/{start:%d}``.
        name: ``start`` moves down to what can be said, ``end`` moves up.
        moment: the bound, in the definition's zone.
    """
    step = _finest_step(placeholder for placeholder in placeholders if placeholder.name == name)
    cut = list(_LOWEST)[step:]
    floored = moment.replace(**{field: _LOWEST[field] for field in cut}) if cut else moment  # type: ignore[arg-type]
    return floored if name == "start" or floored == moment else _next(floored, step)


def inexpressible(name: str, moment: datetime) -> str:
    """Return the message for a bound that the forms of ``{start}`` or ``{end}`` cannot say, if no column tells the time of a row."""
    return (
        f"source: expected placeholders {{{name}:…}} that can say {moment.isoformat()}, an end of what is read, found coarser ones; use {{{name}}}"
        " or a finer form, name the column with a row's time as window_column, or read whole windows (watermark.partial: false)"
    )


def coarser_than(placeholders: Iterable[Placeholder], name: str, floor: Floor) -> bool:
    """Return whether the forms of ``{start}`` or ``{end}`` are too coarse for most bounds that are floored to a day, an hour or a minute."""
    return (
        _finest_step(placeholder for placeholder in placeholders if placeholder.name == name) < _FLOORS[floor]
    )


def _finest_step(placeholders: Iterable[Placeholder]) -> int:
    steps = [_FINEST]
    forms = [placeholder.form for placeholder in placeholders]
    if forms and None not in forms:
        letters = [letter for form in forms for letter in _DIRECTIVE.findall(form or "")]
        steps = [_STEPS[letter] for letter in letters if letter in _STEPS] or [_FINEST]
    return max(steps)


def _next(floored: datetime, step: int) -> datetime:
    """The next bound of a step; on the calendar from days on."""
    if step in _SHORTER:
        return (floored.astimezone(UTC) + _SHORTER[step]).astimezone(floored.tzinfo)
    day = {
        _YEAR: lambda: date(floored.year + 1, 1, 1),
        _MONTH: lambda: date(floored.year + floored.month // 12, floored.month % 12 + 1, 1),
        _DAY: lambda: floored.date() + timedelta(days=1),
    }[step]()
    return datetime.combine(day, time.min, floored.tzinfo)


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
