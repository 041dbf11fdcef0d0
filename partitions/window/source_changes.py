"""The rows of a lake table that changed since the windows over it were read, by the table's commits.

See docs/reference/windows.md, Windows that changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, NamedTuple

from partitions.intervals import ALWAYS, Interval, union
from partitions.log_position import LogPosition
from partitions.sentinels import canonical
from partitions.window.listed_units import loose_spelling
from partitions.window.units import unit_of


class ChangedStretch(NamedTuple):
    """A time ``[start, end)`` in which a commit changed rows, epoch milliseconds.

    Attributes:
        unit: the key of the rows' unit (:func:`unit_key`); None: rows of any unit.
        start: the first instant.
        end: the instant after the last one.
        commit: the commit for people, such as ``version 41``.
    """

    unit: str | None
    start: int
    end: int
    commit: str


def unit_key(values: Mapping[str, Any], zone: tzinfo) -> str:
    """Return what the values of a unit have in common in all spellings; "" without values."""
    return loose_spelling(canonical(dict(values)), zone) if values else ""


@dataclass(frozen=True)
class SourceChanges:
    """What commits behind a state have changed in the table that windows read.

    Attributes:
        table: the table's name in the lake.
        position: the position of the newest commit; the windows of the plan are read there.
        stretches: what commits behind the state's position changed, in their order; None: the position is
            unknown, so everything may have changed.
        names: the names of a unit's values that a row tells.
        zone: the zone of times without one.
        commits: the number of commits behind the state's position.
        problem: why the commits cannot be told; "" if they can. Then nothing counts as changed.
    """

    table: str
    position: LogPosition
    stretches: Sequence[ChangedStretch] | None
    names: Sequence[str] = ()
    zone: tzinfo | None = None
    commits: int = 0
    problem: str = ""
    _by_key: dict[str | None, list[ChangedStretch]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for stretch in self.stretches or ():
            self._by_key.setdefault(stretch.unit, []).append(stretch)

    def of(self, unit: str) -> Iterator[ChangedStretch]:
        """Yield what has changed of a unit, in the order of commits."""
        if self.stretches is None:
            yield ChangedStretch(None, *ALWAYS, "")
            return
        yield from self._by_key.get(None, ())
        yield from self._by_key.get(self._key(unit), ())

    def changed(self, unit: str) -> list[Interval]:
        """Return the stretches of a unit that have changed, ascending and disjoint."""
        return union(sorted((stretch.start, stretch.end) for stretch in self.of(unit)))

    def _key(self, unit: str) -> str:
        values = unit_of(unit)
        assert self.zone is not None or not self.names
        return unit_key({name: values.get(name) for name in self.names}, self.zone) if self.zone else ""
