"""The rows that a retention has taken out of a table that windows read (docs/how-to/chains.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from partitions.intervals import Interval, subtract, union

_ALWAYS = -(2**62)


class LoadedSpan(NamedTuple):
    """``[start, end)`` of a unit that a dataflow has loaded, epoch milliseconds."""

    unit: str
    start: int
    end: int


class EarlierExpiry(NamedTuple):
    """Rows that a retention took out under one entry.

    Attributes:
        before: rows before this instant went, epoch milliseconds.
        loaded_since: what was loaded again since, so that its rows are back.
    """

    before: int
    loaded_since: Sequence[LoadedSpan] = ()


@dataclass(frozen=True)
class ExpiredRows:
    """Rows of a table that a retention has taken out: no window that lacks them counts as complete.

    Attributes:
        table: the table's name in the lake.
        before: the retention of now takes out rows before this instant, epoch milliseconds; None: there is
            none.
        earlier: what the retention has taken out so far, by the entries under which it did.
    """

    table: str
    before: int | None = None
    earlier: Sequence[EarlierExpiry] = ()

    def of(self, units: Iterable[str]) -> list[Interval]:
        """Return the stretches that lack rows of some units of the dataflow that loads the table."""
        stretches: list[Interval] = [] if self.before is None else [(_ALWAYS, self.before)]
        for unit in units if self.earlier else ():
            for before, loaded_since in self.earlier:
                again = union(sorted((start, end) for name, start, end in loaded_since if name == unit))
                stretches += subtract([(_ALWAYS, before)], again)
        return union(sorted(stretches))

    def everything(self) -> list[Interval]:
        """Return the stretches that lack rows, of a table whose rows belong to no unit of a dataflow."""
        limits = [expiry.before for expiry in self.earlier]
        limits += [] if self.before is None else [self.before]
        return [(_ALWAYS, max(limits))] if limits else []
