"""Over-windows: a row leaves with its values once no row that they need can come any more (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from partitions.stream.event_time import EventTime
from partitions.stream.ordering import Order, Row

Function = Literal["row_number", "rank", "dense_rank", "lag", "lead", "max", "sum"]

NUMBERING: tuple[Function, ...] = ("row_number", "rank", "dense_rank")
"""Functions that count from the first row of a partition."""


@dataclass(frozen=True)
class Call:
    """One value of a row.

    Attributes:
        fn: numbering goes by order, ranks by event time.
        column: of lag, lead, max and sum.
        offset: of lag and lead, in rows.
        frame: of max and sum: first and last row, relative to this one; NULLs are passed over, and nothing left is NULL.
    """

    fn: Function
    column: str = ""
    offset: int = 1
    frame: tuple[int, int] = (0, 0)

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last row that the value needs, relative to its own."""
        match self.fn:
            case "lag":
                return -self.offset, -self.offset
            case "lead":
                return self.offset, self.offset
            case "max" | "sum":
                return self.frame
        return 0, 0

    def value(self, rows: Sequence[Row], at: int, ranks: Ranks) -> Any:
        """Return the value of the row at a place among its neighbours."""
        if self.fn in NUMBERING:
            return getattr(ranks, self.fn)
        first, last = self.reach
        framed = [row[self.column] for row in rows[max(0, at + first) : max(0, at + last + 1)]]
        if self.fn in ("lag", "lead"):
            return framed[0] if framed else None
        values = [value for value in framed if value is not None]
        if not values:
            return None
        return max(values) if self.fn == "max" else sum(values[1:], start=values[0])


@dataclass(frozen=True)
class Reach:
    """How many rows of a partition are kept, below the global watermark.

    Attributes:
        ahead: so many of them, the last ones, wait for rows that their values look ahead to.
        behind: so many of those that have left are kept for the values of later ones.
    """

    ahead: int
    behind: int

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Reach:
        """Return the farthest that any value needs. A frame without rows needs none."""
        spans = [call.reach for call in calls if call.reach[0] <= call.reach[1]]
        return cls(max([0, *(last for _, last in spans)]), max([0, *(-first for first, _ in spans)]))


@dataclass(frozen=True)
class Ranks:
    """The numbers of one row in its partition; of none before the first."""

    row_number: int = 0
    rank: int = 0
    dense_rank: int = 0
    time: EventTime | None = None

    def next(self, time: EventTime) -> Ranks:
        """Return the numbers of the row that follows."""
        number, tie = self.row_number + 1, self.row_number > 0 and time == self.time
        return Ranks(number, self.rank if tie else number, self.dense_rank + (not tie), time)


@dataclass(frozen=True)
class Partition:
    """The rows of a partition that later ones need, and those that wait for later ones.

    Attributes:
        rows: in order.
        out: so many of them, the first ones, have left.
        ranks: of the last one that left.
    """

    rows: tuple[Row, ...] = ()
    out: int = 0
    ranks: Ranks = Ranks()


@dataclass(frozen=True)
class Over:
    """Rows of one order within each partition.

    Attributes:
        partition_by: columns; none: all rows are one partition.
        calls: by the name of the column that is added.
        order: of rows.
        partitions: by their columns' values.
    """

    partition_by: tuple[str, ...]
    calls: Mapping[str, Call]
    order: Order
    partitions: Mapping[tuple[Any, ...], Partition] = field(default_factory=dict)

    def advanced(self, rows: Iterable[Row]) -> tuple[Over, tuple[Row, ...]]:
        """Return it after rows that the sort gave out, and the rows that leave with their values, in order.

        Args:
            rows: in order, none before one that came earlier.
        """
        came: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            came.setdefault(tuple(row[name] for name in self.partition_by), []).append(row)
        partitions, out = dict(self.partitions), []
        for group, more in came.items():
            partitions[group], left = self._left(partitions.get(group, Partition()), more)
            out += left
        return Over(self.partition_by, self.calls, self.order, partitions), self.order.sorted(out)

    def _left(self, partition: Partition, more: list[Row]) -> tuple[Partition, list[Row]]:
        reach = Reach.of(self.calls.values())
        rows, ranks = (*partition.rows, *more), partition.ranks
        out: list[Row] = []
        until = max(partition.out, len(rows) - reach.ahead)
        for at in range(partition.out, until):
            ranks = ranks.next(self.order.time(rows[at]))
            out.append(
                {**rows[at], **{name: call.value(rows, at, ranks) for name, call in self.calls.items()}}
            )
        drop = max(0, until - reach.behind)
        return Partition(rows[drop:], until - drop, ranks), out
