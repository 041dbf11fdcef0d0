"""Rows with their values over the rows around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from partitions.stream.emission_rules import is_carried, leaves_over_window
from partitions.stream.event_time import EventTime
from partitions.stream.over import NUMBERING, OverCall, Reach
from tests.support.stream_oracle.ordering import Order, Row


def value_of(call: OverCall, rows: Sequence[Row], at: int, ranks: Ranks) -> Any:
    """Return the value of the row at a place among its neighbours."""
    if call.fn in NUMBERING:
        return getattr(ranks, call.fn)
    first, last = call.reach
    framed = [row[call.column] for row in rows[max(0, at + first) : max(0, at + last + 1)]]
    if call.fn in ("lag", "lead"):
        return framed[0] if framed else None
    values = [value for value in framed if value is not None]
    if not values:
        return None
    return max(values) if call.fn == "max" else sum(values[1:], start=values[0])


@dataclass(frozen=True)
class Ranks:
    """The ranks of one row in its partition; zeros before the first row."""

    row_number: int = 0
    rank: int = 0
    dense_rank: int = 0
    time: EventTime | None = None

    def next(self, time: EventTime) -> Ranks:
        """Return the ranks of the next row."""
        number, tie = self.row_number + 1, self.row_number > 0 and time == self.time
        return Ranks(number, self.rank if tie else number, self.dense_rank + (not tie), time)


@dataclass(frozen=True)
class Partition:
    """The rows of a partition that later rows need, and those that wait for later rows.

    Attributes:
        rows: the rows in order.
        out: how many of the first ones have left.
        ranks: the ranks of the last one that left.
    """

    rows: tuple[Row, ...] = ()
    out: int = 0
    ranks: Ranks = Ranks()


@dataclass(frozen=True)
class Over:
    """Rows of one order within each partition.

    Attributes:
        partition_by: the partition columns; none: all rows are one partition.
        calls: the calls by the name of the added column.
        order: the order of rows.
        partitions: the partitions by their columns' values.
    """

    partition_by: tuple[str, ...]
    calls: Mapping[str, OverCall]
    order: Order
    partitions: Mapping[tuple[Any, ...], Partition] = field(default_factory=dict)

    def advanced(self, rows: Iterable[Row]) -> tuple[Over, tuple[Row, ...]]:
        """Return it after sorted rows, and the rows that leave with their values, in order.

        Args:
            rows: rows in order, none before an earlier one.
        """
        came: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            came.setdefault(tuple(row[name] for name in self.partition_by), []).append(row)
        partitions, out = dict(self.partitions), []
        for group, more in came.items():
            partitions[group], leaving = self._advance_partition(partitions.get(group, Partition()), more)
            out += leaving
        return Over(self.partition_by, self.calls, self.order, partitions), self.order.sorted(out)

    def _advance_partition(self, partition: Partition, more: list[Row]) -> tuple[Partition, list[Row]]:
        reach = Reach.of(self.calls.values())
        rows, ranks = (*partition.rows, *more), partition.ranks
        out: list[Row] = []
        places, before = range(1, len(rows) + 1), partition.out
        has_left = [
            place for place in places if place <= before or leaves_over_window(place, len(rows), reach.ahead)
        ]
        for at in range(before, len(has_left)):
            ranks = ranks.next(self.order.time(rows[at]))
            out.append(
                {**rows[at], **{name: value_of(call, rows, at, ranks) for name, call in self.calls.items()}}
            )
        carried = [
            place for place in places if is_carried(place, before, len(rows), reach.ahead, reach.behind)
        ]
        dropped = len(rows) - len(carried)
        return Partition(rows[dropped:], len(has_left) - dropped, ranks), out
