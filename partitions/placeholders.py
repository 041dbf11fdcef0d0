"""Placeholders of a window in a user's text: ``{start}``, ``{end:%Y-%m-%d}``, ``{unit.NAME}`` (docs/project-files.md, docs/guide-windows.md).

What stands for them is for the caller to say: in SQL it is a literal, never the bare text of a value. Other braces, such as
those of JSON, stay as they are; ``{{start}}`` is the text ``{start}``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from partitions.errors import ConfigurationError

TIMES = ("start", "end")
_UNIT = "unit."
_TOKEN = re.compile(
    r"\{\{(?P<plain>[^\W\d]\w*(?:\.[^{}:]+)?(?::[^{}]*)?)\}\}|\{(?P<name>[^\W\d]\w*(?:\.[^{}:]+)?)(?::(?P<form>[^{}]*))?\}"
)
_DIRECTIVE = re.compile(r"%(.?)")
_DIRECTIVES = "YmdHMSfjyz%"


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
