"""A stream by the pure operators, row by row, which an engine must equal.

See docs/reference/streams.md.
"""

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
    """A late row, the watermark that it was compared with, and its epoch."""

    row: Row
    watermark: EventTime | None
    epoch: int


@dataclass
class PlainStream:
    """Rows and where they went, epoch by epoch.

    Attributes:
        order: the order of rows.
        split: the column that names a row's split.
        latest: the latest plausible event time; None: every one is plausible.
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
        """Start with an empty buffer."""
        self.buffer = SortBuffer(self.order)

    @property
    def rows(self) -> list[Row]:
        """Return the sorted rows."""
        return [row for row, _ in self.sorted]

    def epoch(self, chunks: Sequence[Chunk], splits: SplitOptions, *, counts: bool = True) -> None:
        """Read chunks as the next epoch.

        Args:
            chunks: the chunks in their order.
            splits: the stream's settings of splits at that time.
            counts: whether it reads all the input.
        """
        number = len(self.values) + 1
        good = [[row for row in chunk if self._is_good(row)] for chunk in chunks]
        self.quarantined += [(row, number) for chunk in chunks for row in chunk if not self._is_good(row)]
        tops: dict[str, Any] = {}
        for row in (row for chunk in good for row in chunk):
            name = row[self.split]
            tops[name] = max(tops.get(name, self.order.time(row)), self.order.time(row))
        opened_epoch = open_epoch(self.state, splits, tops)
        for name in sorted(tops):
            watermark = opened_epoch.bound(name)
            for chunk in good:
                split_rows = [row for row in chunk if row[self.split] == name]
                sifted = sift(split_rows, self.order.time, watermark, splits.timeout)
                self.late += [Late(row, watermark, number) for row in sifted.late]
                self.buffer, watermark = self.buffer.took(sifted.on_time), sifted.watermark
        self.state = close_epoch(opened_epoch, splits, tops, counts=counts)
        self.buffer, leaving = self.buffer.drained(self.state.value)
        self.sorted += [(row, number) for row in leaving]
        self.values.append(self.state.value)

    def _is_good(self, row: Row) -> bool:
        return quarantine_reason(row[self.order.event_time], row[self.split], self.latest) is None
