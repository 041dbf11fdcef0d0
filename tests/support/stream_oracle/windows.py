"""Rows of windows that are open, each in all windows that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from partitions.stream.emission_rules import is_window_closed
from partitions.stream.event_time import EventTime
from partitions.stream.windows import Hop
from tests.support.stream_oracle.ordering import Order, Row

Window: TypeAlias = tuple[EventTime, EventTime]
"""Start and end, half-open."""


@dataclass(frozen=True)
class WindowBuffer:
    """Rows of open windows.

    Attributes:
        hop: the windows.
        order: the order of rows in a window.
        open: their rows.
    """

    hop: Hop
    order: Order
    open: Mapping[Window, tuple[Row, ...]] = field(default_factory=dict)

    def took(self, rows: Iterable[Row]) -> WindowBuffer:
        """Return it with more rows, each in all windows that hold it."""
        grown = {window: list(window_rows) for window, window_rows in self.open.items()}
        for row in rows:
            for window in self.hop.windows(self.order.time(row)):
                grown.setdefault(window, []).append(row)
        return WindowBuffer(
            self.hop, self.order, {window: tuple(window_rows) for window, window_rows in grown.items()}
        )

    def closed(
        self, value: EventTime | None
    ) -> tuple[WindowBuffer, tuple[tuple[Window, tuple[Row, ...]], ...]]:
        """Return the open rest, and the windows that a global watermark closes, with sorted rows.

        A window closes if the watermark is at or above its end; windows come by end.
        """
        closing = (
            []
            if value is None
            else sorted((end, start) for start, end in self.open if is_window_closed(end, value))
        )
        out = tuple(((start, end), self.order.sorted(self.open[start, end])) for end, start in closing)
        closed_windows = {window for window, _ in out}
        rest = {
            window: window_rows for window, window_rows in self.open.items() if window not in closed_windows
        }
        return WindowBuffer(self.hop, self.order, rest), out
