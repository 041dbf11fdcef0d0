"""An epoch of a stream, its judged rows, and the decision about them (docs/reference/streams.md)."""

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
        number: number of the epoch's entry.
        judged: the epoch's own rows, each with the watermark that judges it, in ticks.
        before: the state that the epoch builds on.
        value: the global watermark after the epoch; None: undefined.
        type_name: Spark's name of the event time's type.
        columns: names of the source's columns in their order, without ``_epoch``.
        ends: whether rows leave as if no row came after this epoch.
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
        """Session that reads the rows."""
        return self.judged.sparkSession

    @property
    def timed(self) -> bool:
        """Whether event times are timestamps, not whole numbers."""
        return R.is_timed(self.type_name)

    @property
    def valid_rows(self) -> DataFrame:
        """Rows that are neither late nor quarantined: the source's columns, and the event time in ticks."""
        return self.judged.where(R.is_kept()).select(*self.own, R.TIME)

    @property
    def own(self) -> list[Column]:
        """Columns of the source, in their order."""
        from pyspark.sql import functions as F

        return [F.col(quoted(name)) for name in self.columns]

    def own_beside(self, *names: str) -> list[Column]:
        """Return the source's columns except those named like columns that a side table adds.

        Args:
            names: the added columns, in lower case; case is ignored.
        """
        return [
            column for name, column in zip(self.columns, self.own, strict=True) if name.lower() not in names
        ]


class Decision(NamedTuple):
    """The decision about an epoch's rows.

    Attributes:
        late: the number of the epoch's rows below the watermark that judges them.
        emitted: the number of rows that leave, including rows that waited before.
        segments: segments of the buffer after the epoch.
        carry: rows that an over-window carries after the epoch; None: no row.
    """

    late: int
    emitted: int
    segments: tuple[Segment, ...]
    carry: Carry | None = None
