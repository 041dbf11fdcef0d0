"""Slices of the stream kind: one epoch, one commit, and the state after it.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from partitions.errors import BadPart
from partitions.plan import Size
from partitions.sentinels import Watermark, encode
from partitions.stream.event_time import EventTime
from partitions.stream.inputs import Input, NoInput
from partitions.stream.state import StreamState


class Tally(NamedTuple):
    """The counts of an epoch's rows: ``rows_in`` plus those buffered before equal the sum of the others.

    Attributes:
        rows_in: the number of rows of its input.
        emitted: rows that leave into the table, or into the results of windows; also from the buffer.
        late: rows below the watermark that judges them.
        quarantined: rows without an event time or split, or too far ahead.
        buffered: rows that wait after it.
    """

    rows_in: int
    emitted: int
    late: int
    quarantined: int
    buffered: int


@dataclass(frozen=True)
class EpochJudgement:
    """The decisions about an epoch's rows, which put each row in one place.

    Attributes:
        before: the state that it builds on.
        after: the state after it.
        bounds: the watermark that judges the first chunk of each split that has rows, by its name.
        timeout: the timeout of the definition then, as :func:`partitions.stream.ticks.span_ticks`.
        latest: the latest accepted event time, in ticks; None: any is.
        tally: the counts of its rows.
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
        number: the number of its entry.
        before: the short watermark before it.
        input: the input that it reads.
        counts: whether it reads all present input; one that leaves some makes no split idle.
        judgement: None until its input is judged.
        since: where a filtered cold start began; None for any other slice.
    """

    number: int
    before: Watermark
    input: Input
    counts: bool
    judgement: EpochJudgement | None = field(default=None, repr=False)
    since: Watermark | None = None

    why: Literal["run"] = "run"
    replaces: Literal[False] = False

    @property
    def judged(self) -> EpochJudgement:
        """Return the judgement of its rows.

        Raises:
            ValueError: if its input is not judged yet.
        """
        if self.judgement is None:
            raise ValueError(f"epoch {self.number}: its input was not read yet")
        return self.judgement

    @property
    def reads_nothing(self) -> bool:
        """Return whether the source is not read, and only waiting rows leave."""
        return isinstance(self.input, NoInput)

    @property
    def lower(self) -> Watermark | None:
        """Return where its input starts; None if nothing was read before."""
        return self.input.lower

    @property
    def upper(self) -> Watermark:
        """Return where its input ends."""
        return self.input.upper

    @property
    def size(self) -> Size:
        """Return the size of its input."""
        return self.input.size

    @property
    def keys(self) -> Collection[Any]:
        """Return the parts that no other epoch reads."""
        return self.input.keys

    @property
    def failures(self) -> Mapping[int, str]:
        """Return no failures: an epoch is read whole, or not at all."""
        return {}

    def contains(self, bad: BadPart) -> bool:
        """Return whether a bad file is part of its input."""
        return bad.part in self.input.keys

    def up_to(self, bad: BadPart) -> EpochSlice | None:
        """Return an epoch of the files before a bad one; None if there are none.

        Only an input of files has such parts.
        """
        before = self.input.up_to(bad.part)
        return None if before is None else replace(self, input=before, counts=False, judgement=None)

    def advance(self, _before: Watermark) -> Watermark:
        """Return the state after it."""
        return self.judged.after.watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Return its number, and its files or versions."""
        reason = self.input.why if isinstance(self.input, NoInput) else "new"
        return [{"epoch": self.number, **self.input.describe(), "reason": reason}]

    def counts_of_rows(self) -> dict[str, Any]:
        """Return epoch, global watermark and tally as JSON data."""
        counts: dict[str, Any] = encode({"epoch": self.number, "global": self.judged.after.value})
        return counts | self.judged.tally._asdict()

    def halve(self) -> tuple[EpochSlice, ...]:
        """Return only itself: the plan decides where epochs are cut."""
        return (self,)
