"""Rows that wait until the global watermark has passed them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partitions.stream.drain import leaves_buffer
from partitions.stream.event_time import EventTime
from tests.support.stream_oracle.ordering import Order, Row


@dataclass(frozen=True)
class SortBuffer:
    """Rows that wait for the global watermark.

    Attributes:
        order: the order in which they leave.
        rows: the rows, in no order.
    """

    order: Order
    rows: tuple[Row, ...] = ()

    def took(self, rows: Iterable[Row]) -> SortBuffer:
        """Return it with more rows, such as those of a split that it takes over."""
        return SortBuffer(self.order, (*self.rows, *rows))

    def drained(self, value: EventTime | None) -> tuple[SortBuffer, tuple[Row, ...]]:
        """Return the rest, and the rows that leave at a global watermark, in order."""
        out = [row for row in self.rows if leaves_buffer(self.order.time(row), value)]
        rest = [row for row in self.rows if not leaves_buffer(self.order.time(row), value)]
        return SortBuffer(self.order, tuple(rest)), self.order.sorted(out)
