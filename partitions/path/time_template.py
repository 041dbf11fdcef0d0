"""Time in partition names, such as ``date=%Y-%m-%d`` (docs/reference/files.md).

A template names one or more leading components of a partition. It writes the prefixes of a cold start, and
reads the time of a partition so that old ones can be closed. All times are UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from partitions.errors import ConfigurationError
from partitions.path.order import LAST, key_before

_DIRECTIVES = {"Y": r"\d{4}", "m": r"\d{2}", "d": r"\d{2}", "j": r"\d{3}", "H": r"\d{2}"}
_FINENESS = {"Y": "years", "m": "months", "d": "days", "j": "days", "H": "hours"}
_ORDERED = ("Y", "Ym", "Ymd", "YmdH", "Yj", "YjH")
_TOKEN = re.compile(r"%(.?)")


@dataclass(frozen=True)
class TimeTemplate:
    """A strftime text with the directives %Y %m %d %j %H; ``*`` stands for any one component.

    Attributes:
        text: the template, with components separated by slashes.
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse a template that cannot write prefixes.

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
    def can_parse(self) -> bool:
        """Whether it can parse a partition's time: %Y, then %m and %d or %j, then %H, without a gap."""
        return "".join(sorted(self._directives, key="YmdjH".index)) in _ORDERED

    @property
    def has_wildcard(self) -> bool:
        """Whether a component may be anything, so that it cannot write prefixes."""
        return "*" in self._parts

    @property
    def unit(self) -> str:
        """The finest unit: ``years``, ``months``, ``days`` or ``hours``."""
        return max(
            (_FINENESS[name] for name in self._directives), key=("years", "months", "days", "hours").index
        )

    def floor(self, instant: datetime) -> datetime:
        """Return the start of the unit that holds an aware instant."""
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
        """Return the start of the unit ``count`` units later."""
        match self.unit:
            case "hours":
                return start + timedelta(hours=count)
            case "days":
                return start + timedelta(days=count)
            case unit:
                months = start.year * 12 + start.month - 1 + count * (12 if unit == "years" else 1)
                return start.replace(year=months // 12, month=months % 12 + 1)

    def time(self, partition: str) -> datetime | None:
        """Return the start of a partition's time range; None if the template does not parse it.

        The template may be coarser than the partition: further components do not matter.
        """
        match = self._pattern.match(partition) if self.can_parse else None
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
        """Return the leading components of a partition that fit the template; None if they do not."""
        match = self._pattern.match(partition)
        return match.group().rstrip("/") if match else None

    def components_without_time(self, prefix: str) -> list[str]:
        """Return the components of a fitting prefix that the template takes whatever they are (``*``)."""
        return [own for own, part in zip(prefix.split("/"), self._parts, strict=False) if part == "*"]

    def end(self, start: datetime) -> datetime:
        """Return the exclusive end of the time range that starts there."""
        return self.step(start, 1)

    def skip(self, partition: str, before: datetime) -> str:
        """Return the key after which a listing has left the partitions that are closed like this one.

        If texts sort like times, the jump goes to the first open time; names in between that do not fit
        the template need a search of their own. Otherwise it leaves only this partition.

        Args:
            partition: a closed partition that the template parses.
            before: partitions below this instant are closed.
        """
        own = partition.split("/")[: len(self._parts)]
        if "".join(self._directives) not in _ORDERED:
            return f"{'/'.join(own)}/{LAST}"
        chosen = []
        for index, open_part in enumerate(before.strftime(self.text.strip("/")).split("/")):
            chosen.append(own[index] if self._parts[index] == "*" else open_part)
            if chosen[index] != own[index] and "*" in self._parts[index:]:
                break  # inside another year, each region starts again
        return key_before("/".join(chosen))

    def leads_to(self, folder: str) -> bool:
        """Return whether the template can have written this folder, or one above or below it."""
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
        directives: set[str] = set()
        return re.compile("/".join(_regex(part, directives) for part in self._parts) + r"(?:/|\Z)", re.ASCII)

    @cached_property
    def _pieces(self) -> list[re.Pattern[str]]:
        """The pattern of each component."""
        return [re.compile(_regex(part, set()), re.ASCII) for part in self._parts]


def _regex(part: str, directives: set[str]) -> str:
    """Return the pattern of a component; a directive in ``directives`` must repeat its earlier text."""

    def pattern_of(text: str) -> str:
        name = text[1:]
        if text[:1] != "%" or name not in _DIRECTIVES:
            return re.escape(text.replace("%%", "%"))
        again = name in directives
        directives.add(name)
        return f"(?P={name})" if again else f"(?P<{name}>{_DIRECTIVES[name]})"

    return "[^/]+" if part == "*" else "".join(map(pattern_of, re.split(r"(%.)", part)))
