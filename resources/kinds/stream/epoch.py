"""An epoch of a stream whose rows are judged, and what becomes of them (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from partitions.stream.event_time import EventTime
from partitions.stream.state import Carry, Segment, StreamState
from resources.kinds.stream import judged_rows as R
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Epoch:
    """An epoch whose rows are judged.

    Attributes:
        number: of it.
        judged: its rows, with the watermark that judges each.
        before: the state that it builds on.
        value: the global watermark after it.
        type_name: of the event time.
        columns: of the source, in their order, without ``_epoch``.
        ends: whether no row comes after it, as far as values look ahead.
    """

    number: int
    judged: DataFrame
    before: StreamState
    value: EventTime | None
    type_name: str
    columns: Sequence[str]
    ends: bool = False

    @property
    def spark(self) -> SparkSession:
        """The session that it is read with."""
        return self.judged.sparkSession

    @property
    def timed(self) -> bool:
        """Whether event times are timestamps."""
        return R.is_timed(self.type_name)

    @property
    def valid_rows(self) -> DataFrame:
        """Return the rows that are neither late nor quarantined, with their event time in ticks."""
        return self.judged.where(R.is_kept()).select(*self.own, R.TIME)

    @property
    def own(self) -> list[Column]:
        """The source's columns."""
        from pyspark.sql import functions as F

        return [F.col(quoted(name)) for name in self.columns]

    def own_beside(self, *names: str) -> list[Column]:
        """Return the source's columns without those that a side table has itself."""
        return [
            column for name, column in zip(self.columns, self.own, strict=True) if name.lower() not in names
        ]


class Decision(NamedTuple):
    """What becomes of an epoch's rows.

    Attributes:
        late: how many are below their split's watermark.
        emitted: how many leave, also those that have waited.
        segments: of the buffer after it.
        carry: after it.
    """

    late: int
    emitted: int
    segments: tuple[Segment, ...]
    carry: Carry | None = None
