"""Time in partition names: ``date=%Y-%m-%d`` and its like (docs/reference/files.md).

A template names one or more leading components of a partition. It is used both ways: to write the prefixes of a cold
start, and to read the time of a partition so that old ones can be closed. All times are UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from partitions.errors import ConfigurationError
from partitions.path.order import LAST, below

_DIRECTIVES = {"Y": r"\d{4}", "m": r"\d{2}", "d": r"\d{2}", "j": r"\d{3}", "H": r"\d{2}"}
_FINENESS = {"Y": "years", "m": "months", "d": "days", "j": "days", "H": "hours"}
_ORDERED = ("Y", "Ym", "Ymd", "YmdH", "Yj", "YjH")
_TOKEN = re.compile(r"%(.?)")


@dataclass(frozen=True)
class TimeTemplate:
    """A strftime text with the directives %Y %m %d %j %H; ``*`` stands for any one component.

    Attributes:
        text: the template, components separated by slashes.
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse what no prefix could be written from.

        Raises:
            ConfigurationError: unknown directives, no time at all, a wildcard inside a component.
        """
        unknown = [name for name in _TOKEN.findall(self.text) if name not in _DIRECTIVES and name != "%"]
        if unknown:
            raise ConfigurationError(
                f"time template {self.text!r}: expected %Y %m %d %j %H, found %{unknown[0]}"
            )
        if not self._directives:
            raise ConfigurationError(
                f"time template {self.text!r}: expected at least one of %Y %m %d %j %H, found none"
            )
        if any("*" in part and part != "*" for part in self._parts):
            raise ConfigurationError(
                f"time template {self.text!r}: expected * to stand for a whole component"
            )

    @property
    def reads(self) -> bool:
        """Whether a partition's time can be read back: %Y, then %m and %d or %j, then %H, without a hole."""
        return "".join(sorted(self._directives, key="YmdjH".index)) in _ORDERED

    @property
    def wildcard(self) -> bool:
        """Whether a component may be anything, so that prefixes cannot be written from it."""
        return "*" in self._parts

    @property
    def unit(self) -> str:
        """The finest unit: ``years``, ``months``, ``days`` or ``hours``."""
        return max(
            (_FINENESS[name] for name in self._directives), key=("years", "months", "days", "hours").index
        )

    def floor(self, instant: datetime) -> datetime:
        """Start of the unit that holds an aware instant."""
        start = instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        match self.unit:
            case "hours":
                return start
            case "days":
                return start.replace(hour=0)
            case "months":
                return start.replace(hour=0, day=1)
            case _:
                return start.replace(hour=0, day=1, month=1)

    def step(self, start: datetime, count: int) -> datetime:
        """Move the start of a unit by whole units."""
        match self.unit:
            case "hours":
                return start + timedelta(hours=count)
            case "days":
                return start + timedelta(days=count)
            case unit:
                months = start.year * 12 + start.month - 1 + count * (12 if unit == "years" else 1)
                return start.replace(year=months // 12, month=months % 12 + 1)

    def time(self, partition: str) -> datetime | None:
        """The start of a partition's own time range; ``None`` if the template does not parse it.

        The template may be coarser than the partition: further components do not matter.
        """
        match = self._pattern.match(partition) if self.reads else None
        if match is None:
            return None
        part = {name: int(value) for name, value in match.groupdict().items()}
        try:
            start = datetime(part["Y"], part.get("m", 1), part.get("d", 1), part.get("H", 0), tzinfo=UTC)
        except ValueError:
            return None
        if "j" not in part:
            return start
        day = start + timedelta(days=part["j"] - 1)
        return day if part["j"] >= 1 and day.year == start.year else None

    def prefix(self, partition: str) -> str | None:
        """Return the leading components of a partition that the template can have written; None if it fits none."""
        match = self._pattern.match(partition)
        return match.group().rstrip("/") if match else None

    def end(self, start: datetime) -> datetime:
        """Exclusive end of the time range that starts there."""
        return self.step(start, 1)

    def skip(self, partition: str, before: datetime) -> str:
        """The key after which a listing has left the partitions that are closed like this one.

        If texts sort like times, the jump is to the first open time; what lies in between and the template does not fit
        has to be looked for by itself. Elsewhere it leaves just this partition.

        Args:
            partition: a closed one, that the template parses.
            before: the instant below which partitions are closed.
        """
        own = partition.split("/")[: len(self._parts)]
        if "".join(self._directives) not in _ORDERED:
            return f"{'/'.join(own)}/{LAST}"
        chosen = []
        for index, written in enumerate(before.strftime(self.text.strip("/")).split("/")):
            chosen.append(own[index] if self._parts[index] == "*" else written)
            if chosen[index] != own[index] and "*" in self._parts[index:]:
                break  # below another year, each region begins again
        return below("/".join(chosen))

    def leads_to(self, folder: str) -> bool:
        """Whether the template could have written this folder, or one that lies above or below it."""
        return all(
            pattern.fullmatch(part) for pattern, part in zip(self._pieces, folder.split("/"), strict=False)
        )

    @cached_property
    def _parts(self) -> list[str]:
        return self.text.strip("/").split("/")

    @cached_property
    def _directives(self) -> list[str]:
        return [name for name in dict.fromkeys(_TOKEN.findall(self.text)) if name in _DIRECTIVES]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        seen: set[str] = set()
        return re.compile("/".join(_regex(part, seen) for part in self._parts) + r"(?:/|\Z)", re.ASCII)

    @cached_property
    def _pieces(self) -> list[re.Pattern[str]]:
        """Of each component by itself."""
        return [re.compile(_regex(part, set()), re.ASCII) for part in self._parts]


def _regex(part: str, seen: set[str]) -> str:
    """What a component looks like; a directive that was ``seen`` before has to agree with itself."""

    def pattern_of(text: str) -> str:
        name = text[1:]
        if text[:1] != "%" or name not in _DIRECTIVES:
            return re.escape(text.replace("%%", "%"))
        again = name in seen
        seen.add(name)
        return f"(?P={name})" if again else f"(?P<{name}>{_DIRECTIVES[name]})"

    return "[^/]+" if part == "*" else "".join(map(pattern_of, re.split(r"(%.)", part)))
