"""A stream by the pure operators, row by row: what an engine has to give, too (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from partitions.stream.epoch import close_epoch, open_epoch
from partitions.stream.event_time import EventTime
from partitions.stream.splits import SplitOptions
from partitions.stream.state import StreamState
from tests.support.stream_oracle.filter import quarantine_reason, sift
from tests.support.stream_oracle.ordering import Order, Row
from tests.support.stream_oracle.sort import SortBuffer

Chunk = Sequence[Row]


class Late(NamedTuple):
    """A late row, the watermark that judged it, and its epoch."""

    row: Row
    watermark: EventTime | None
    epoch: int


@dataclass
class PlainStream:
    """Rows and where they went, epoch by epoch.

    Attributes:
        order: of rows.
        split: the column that names a row's split.
        latest: the latest event time that is believed; None: each one is.
    """

    order: Order
    split: str = "split"
    latest: EventTime | None = None
    sorted: list[tuple[Row, int]] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    quarantined: list[tuple[Row, int]] = field(default_factory=list)
    values: list[EventTime | None] = field(default_factory=list)
    state: StreamState = field(default_factory=StreamState)
    buffer: SortBuffer = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing that waits."""
        self.buffer = SortBuffer(self.order)

    @property
    def rows(self) -> list[Row]:
        """The sorted rows."""
        return [row for row, _ in self.sorted]

    def epoch(self, chunks: Sequence[Chunk], splits: SplitOptions, *, counts: bool = True) -> None:
        """Read chunks as the next epoch.

        Args:
            chunks: in their order.
            splits: what the stream says of them then.
            counts: whether it reads all the input there is.
        """
        number = len(self.values) + 1
        good = [[row for row in chunk if self._is_good(row)] for chunk in chunks]
        self.quarantined += [(row, number) for chunk in chunks for row in chunk if not self._is_good(row)]
        tops: dict[str, Any] = {}
        for row in (row for chunk in good for row in chunk):
            name = row[self.split]
            tops[name] = max(tops.get(name, self.order.time(row)), self.order.time(row))
        begun = open_epoch(self.state, splits, tops)
        for name in sorted(tops):
            held = begun.bound(name)
            for chunk in good:
                mine = [row for row in chunk if row[self.split] == name]
                sifted = sift(mine, self.order.time, held, splits.timeout)
                self.late += [Late(row, held, number) for row in sifted.late]
                self.buffer, held = self.buffer.took(sifted.kept), sifted.watermark
        self.state = close_epoch(begun, splits, tops, counts=counts)
        self.buffer, left = self.buffer.drained(self.state.value)
        self.sorted += [(row, number) for row in left]
        self.values.append(self.state.value)

    def _is_good(self, row: Row) -> bool:
        return quarantine_reason(row[self.order.event_time], row[self.split], self.latest) is None
