"""Slices of the stream kind: one epoch, one commit, and the state after it (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from partitions.errors import BadPart
from partitions.plan import Size
from partitions.sentinels import Watermark, encode
from partitions.stream.event_time import EventTime
from partitions.stream.state import StreamState


class Tally(NamedTuple):
    """What became of an epoch's rows: ``rows_in`` and what was buffered before are the sum of the others.

    Attributes:
        rows_in: of its input.
        emitted: into the sorted table, also from the buffer.
        late: below their split's watermark.
        quarantined: without an event time or split, or too far ahead.
        buffered: that wait after it.
    """

    rows_in: int
    emitted: int
    late: int
    quarantined: int
    buffered: int


class Input(NamedTuple):
    """The versions of a table that an epoch reads.

    Attributes:
        table: id of the table, which another one of the same name does not have.
        first: version, inclusive.
        last: version, inclusive.
        whole: whether the first is read with all that was there before.
        files: that are read.
        bytes: of these.
    """

    table: str
    first: int
    last: int
    whole: bool
    files: int
    bytes: int


@dataclass(frozen=True)
class Judgement:
    """What fixes an epoch's rows, each in one place.

    Attributes:
        before: the state that it builds on.
        after: the state after it.
        bounds: the watermark that judges the first chunk of each split that has rows, by its name.
        timeout: of the definition then, as :func:`partitions.stream.ticks.span_ticks`.
        latest: the latest event time that is believed, in ticks; None: each one is.
        tally: of its rows.
    """

    before: StreamState
    after: StreamState
    bounds: Mapping[str, EventTime | None]
    timeout: int
    latest: int | None
    tally: Tally


@dataclass(frozen=True)
class EpochSlice:
    """One epoch.

    Attributes:
        number: of its entry.
        before: the short watermark before it.
        input: what it reads.
        counts: whether it reads all the input there was; one that leaves some makes no split idle.
        judgement: None before its input was looked at.
    """

    number: int
    before: Watermark
    input: Input
    counts: bool
    judgement: Judgement | None = field(default=None, repr=False)

    why: Literal["run"] = "run"
    since: None = None
    replaces: Literal[False] = False

    @property
    def judged(self) -> Judgement:
        """What fixes its rows.

        Raises:
            ValueError: its input was not looked at yet.
        """
        if self.judgement is None:
            raise ValueError(f"epoch {self.number}: its input was not looked at")
        return self.judgement

    @property
    def lower(self) -> Watermark | None:
        """The version before its first; None if there is none."""
        return {"version": self.input.first - 1} if self.input.first and not self.input.whole else None

    @property
    def upper(self) -> Watermark:
        """Its last version."""
        return {"version": self.input.last}

    @property
    def position(self) -> Mapping[str, Any]:
        """Up to where the source is read after it."""
        return {"table": self.input.table, "version": self.input.last}

    @property
    def size(self) -> Size:
        """The files that it reads."""
        return Size(bytes=self.input.bytes, ranges=1)

    @property
    def keys(self) -> Collection[int]:
        """Its last version, which no other epoch reads."""
        return [self.input.last]

    @property
    def failures(self) -> Mapping[int, str]:
        """None: an epoch is read whole, or not at all."""
        return {}

    def contains(self, bad: BadPart) -> bool:  # noqa: ARG002 - part of what all slices have
        """No: its rows are not told apart by a part of the source."""
        return False

    def up_to(self, bad: BadPart) -> None:  # noqa: ARG002 - part of what all slices have
        """None: no part of it comes before a bad one."""
        return

    def advance(self, before: Watermark) -> Watermark:  # noqa: ARG002 - its judgement was made on that state
        """The state after it."""
        return self.judged.after.watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Its number and versions."""
        versions = {"first": self.input.first, "last": self.input.last}
        return [{"epoch": self.number, "files": None, "versions": versions, "reason": "new"}]

    def counts_of_rows(self) -> dict[str, Any]:
        """Epoch, global watermark, and the tally."""
        told: dict[str, Any] = encode({"epoch": self.number, "global": self.judged.after.value})
        return told | self.judged.tally._asdict()

    def halve(self) -> tuple[EpochSlice, ...]:
        """Only itself: where epochs are cut is the plan's to say."""
        return (self,)
