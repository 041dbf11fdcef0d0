"""The state of a stream: a watermark per split, the global one, and the buffer's segments (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from partitions.errors import CorruptWatermark
from partitions.sentinels import Watermark
from partitions.stream.event_time import EventTime, later
from partitions.watermark import is_empty


@dataclass(frozen=True)
class Split:
    """One split.

    Attributes:
        watermark: None: it is declared, and had no row yet.
        idle: epochs without rows, one after another, up to now.
    """

    watermark: EventTime | None = None
    idle: int = 0


@dataclass(frozen=True)
class Segment:
    """Files of the buffer that one epoch wrote; they are never rewritten.

    Attributes:
        name: where they are.
        rows: that are buffered still: those at or above the global watermark.
        bytes: of its files.
        lowest: event time of these rows.
        highest: event time of these rows; the segment goes when the global watermark is above it.
    """

    name: str
    rows: int
    bytes: int
    lowest: EventTime
    highest: EventTime


@dataclass(frozen=True)
class StreamState:
    """What is committed. No watermark in it ever falls.

    Attributes:
        splits: by name.
        value: the global watermark; None: undefined.
        segments: of the buffer, oldest first.
    """

    splits: Mapping[str, Split] = field(default_factory=dict)
    value: EventTime | None = None
    segments: tuple[Segment, ...] = ()

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> StreamState:
        """Read ``{"global": …, "splits": {…}, "segments": […]}``; empty is the state of a new stream.

        Raises:
            CorruptWatermark: for an object of another form.
        """
        if watermark is None or is_empty(watermark):
            return cls()
        try:
            splits = {name: Split(**split) for name, split in watermark["splits"].items()}
            segments = tuple(Segment(**segment) for segment in watermark["segments"])
            state = cls(splits, watermark["global"], segments)
        except (KeyError, TypeError, AttributeError):
            state = None
        if state is None or len(watermark) != 3 or not state._is_sound():
            raise CorruptWatermark(
                'stream watermark: expected {"global": time, "splits": {name: {"watermark", "idle"}}, "segments": […]},'
                f" times all whole numbers or all datetimes, found {dict(watermark)!r}"
            )
        return state

    @staticmethod
    def holds_nothing(watermark: Mapping[str, Any]) -> bool:
        """Return whether no split has a watermark and nothing is buffered."""
        state = StreamState.of(watermark)
        return not state.segments and all(split.watermark is None for split in state.splits.values())

    def watermark(self) -> Watermark:
        """The state as it is stored."""
        return {
            "global": self.value,
            "splits": {name: asdict(split) for name, split in self.splits.items()},
            "segments": [asdict(segment) for segment in self.segments],
        }

    def bound(self, name: str) -> EventTime | None:
        """Return the watermark that judges a split's next chunk: its own, or the global one if that is higher."""
        split = self.splits.get(name, Split())
        return later(split.watermark, self.value)

    def _is_sound(self) -> bool:
        marks = [self.value, *(split.watermark for split in self.splits.values())]
        spans = [time for segment in self.segments for time in (segment.lowest, segment.highest)]
        kinds = {type(time) for time in (*marks, *spans) if time is not None}
        counts = [split.idle for split in self.splits.values()] + [
            count for segment in self.segments for count in (segment.rows, segment.bytes)
        ]
        return (
            kinds in (set(), {int}, {datetime})
            and None not in spans
            and all(type(count) is int and count >= 0 for count in counts)
            and all(isinstance(segment.name, str) for segment in self.segments)
        )
