"""The state of a stream: watermarks of the splits, the global one, and the buffer.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self

from typing_extensions import override

from partitions.errors import CorruptWatermark
from partitions.sentinels import Watermark, value_text
from partitions.stream.event_time import EventTime, later
from partitions.watermark import is_empty
from partitions.watermark_state import ReadVersion, WatermarkState

_PARTS = ("splits", "global", "segments")


@dataclass(frozen=True)
class Split:
    """One split.

    Attributes:
        watermark: None: it is declared, and has had no row yet.
        idle: the number of consecutive epochs without rows, up to now.
    """

    watermark: EventTime | None = None
    idle: int = 0


@dataclass(frozen=True)
class Segment:
    """Rows of the buffer that one epoch wrote; they are never rewritten.

    Attributes:
        name: the segment's name: the number of the epoch that wrote it.
        rows: the number of its rows that still wait: those at or above the global watermark, and those in
            open windows.
        lowest: a lower bound of the event times of these rows.
        highest: the highest event time of these rows; the segment is deleted once no row waits.
        written: the number of rows that the epoch wrote; 0: unknown, since an older version wrote it.
    """

    name: str
    rows: int
    lowest: EventTime
    highest: EventTime
    written: int = 0

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Segment:
        """Parse the stored form; in older versions it also has ``bytes``, which was always 0."""
        return cls(**{name: value for name, value in stored.items() if name != "bytes"})


@dataclass(frozen=True)
class Carry:
    """Rows of an over-window below the global watermark that are still needed, in a side table.

    Attributes:
        epoch: wrote them; rows of other epochs do not count.
        rows: the number of all of them.
        waiting: the number of rows that have not left, since their values look ahead.
    """

    epoch: int
    rows: int
    waiting: int


@dataclass(frozen=True)
class Flush:
    """A decision to let rows out of the buffer.

    Attributes:
        to: rows below it leave; None: all rows, as if no row came after them.
    """

    to: EventTime | None = None


@dataclass(frozen=True)
class StreamState(WatermarkState):
    """The committed state. No watermark in it ever falls.

    Attributes:
        splits: the splits, by name.
        value: the global watermark; None: undefined.
        segments: the buffer's segments, oldest first.
        epoch: number of the newest epoch's entry; 0 before the first.
        position: up to where the source was read, in the source's terms; empty before the first epoch.
        emptied: names of the segments that the newest epoch has read for the last time; the next one
        deletes them.
        late: the number of late rows since the start.
        quarantined: the number of quarantined rows since the start.
        drained: the global watermark of the newest epoch, up to which rows have left and windows are
        closed; ``value`` rises between epochs when a split is removed.
        carry: the carry of an over-window; None: nothing yet.
        flush: rows that a decision lets out once all present input is read; None: none.
        heard_at: the run's clock at the newest epoch with input, aware; None: unknown, in states of older
        versions.
        newest: the highest event time of all rows read, late ones included, quarantined ones not; None: no
        row yet, or unknown, in states of older versions.
    """

    splits: Mapping[str, Split] = field(default_factory=dict)
    value: EventTime | None = None
    segments: tuple[Segment, ...] = ()
    epoch: int = 0
    position: Mapping[str, Any] = field(default_factory=dict)
    emptied: tuple[str, ...] = ()
    late: int = 0
    quarantined: int = 0
    drained: EventTime | None = None
    carry: Carry | None = None
    flush: Flush | None = None
    heard_at: datetime | None = None
    newest: EventTime | None = None

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Parse ``{"global": …, "splits": {…}, "segments": […]}``; empty is the state of a new stream.

        Raises:
            CorruptWatermark: for an object of another form.
        """
        if watermark is None or is_empty(watermark):
            return cls()
        try:
            splits = {name: Split(**split) for name, split in watermark["splits"].items()}
            segments = tuple(Segment.of(segment) for segment in watermark["segments"])
            rest = {name: value for name, value in watermark.items() if name not in _PARTS}
            rest["emptied"] = tuple(rest.get("emptied", ()))
            rest["carry"] = Carry(**rest["carry"]) if rest.get("carry") else None
            rest["flush"] = Flush(**rest["flush"]) if rest.get("flush") else None
            state = cls(splits, watermark["global"], segments, **rest)
        except (KeyError, TypeError, AttributeError):
            state = None
        if state is None or not state._is_sound():
            raise CorruptWatermark(
                'stream watermark: expected {"global": time, "splits": {name: {"watermark", "idle"}}, "segments": […]},'
                f" times all whole numbers or all datetimes, found {value_text(dict(watermark))}"
            )
        return state

    @staticmethod
    def holds_nothing(watermark: Mapping[str, Any], /) -> bool:
        """Return whether a watermark counts nothing of the source as read."""
        state = StreamState.of(watermark)
        none_heard = all(split.watermark is None for split in state.splits.values())
        return not state.segments and none_heard and not state.position

    @staticmethod
    @override
    def read_version(watermark: Mapping[str, Any], /) -> ReadVersion | None:
        """Return the version of a table that is read; None for a stream of files or of Spark's engine."""
        position = StreamState.of(watermark).position
        version = position.get("version")
        return ReadVersion(version, position.get("id")) if isinstance(version, int) else None

    @staticmethod
    def short_form(watermark: Watermark, /) -> Watermark:
        """Return the epoch and the global watermark."""
        state = StreamState.of(watermark)
        return {"epoch": state.epoch, "global": state.value}

    def watermark(self) -> Watermark:
        """Return the stored form of the state."""
        return {
            "global": self.value,
            "splits": {name: asdict(split) for name, split in self.splits.items()},
            "segments": [asdict(segment) for segment in self.segments],
            "epoch": self.epoch,
            "position": dict(self.position),
            "emptied": list(self.emptied),
            "late": self.late,
            "quarantined": self.quarantined,
            "drained": self.drained,
            "carry": asdict(self.carry) if self.carry else None,
            **({"flush": asdict(self.flush)} if self.flush is not None else {}),
            **({"heard_at": self.heard_at} if self.heard_at is not None else {}),
            **({"newest": self.newest} if self.newest is not None else {}),
        }

    @property
    def buffered(self) -> int:
        """Return the number of waiting rows."""
        carried = self.carry.waiting if self.carry else 0
        return carried + sum(segment.rows for segment in self.segments)

    @property
    def newest_event(self) -> EventTime | None:
        """The highest event time read, as far as the state tells; None if it does not."""
        return later(self.newest, max((segment.highest for segment in self.segments), default=None))

    @property
    def open_from(self) -> EventTime | None:
        """Return the earliest event time that an open window or session may hold, by its rows.

        None: no row below the global watermark waits in one.
        """
        lowest = min((segment.lowest for segment in self.segments), default=None)
        return lowest if self.drained is not None and lowest is not None and lowest < self.drained else None

    def bound(self, name: str) -> EventTime | None:
        """Return the watermark that judges a split's next chunk: the higher of its own and the global one."""
        split = self.splits.get(name, Split())
        return later(split.watermark, self.value)

    def _is_sound(self) -> bool:
        to = self.flush.to if self.flush else None
        marks = [
            self.value,
            self.drained,
            to,
            self.newest,
            *(split.watermark for split in self.splits.values()),
        ]
        spans = [time for segment in self.segments for time in (segment.lowest, segment.highest)]
        kinds = {type(time) for time in (*marks, *spans) if time is not None}
        counts = (
            [split.idle for split in self.splits.values()]
            + [self.epoch, self.late, self.quarantined]
            + [count for segment in self.segments for count in (segment.rows, segment.written)]
            + (list(asdict(self.carry).values()) if self.carry else [])
        )
        return (
            kinds in (set(), {int}, {datetime})
            and None not in spans
            and all(type(count) is int and count >= 0 for count in counts)
            and all(isinstance(segment.name, str) for segment in self.segments)
            and all(isinstance(name, str) for name in self.emptied)
            and isinstance(self.position, Mapping)
            and (self.heard_at is None or isinstance(self.heard_at, datetime))
        )
