"""What the commit of an epoch does: rows for the table, and for the side tables of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.loads import Append, Load
from partitions.predicate import Among, Between, Predicate, any_of
from partitions.stream.late_rows import are_diverted
from partitions.stream.operators import EPOCH
from partitions.stream.side_table_names import BUFFER, CARRY, LATE, QUARANTINE
from partitions.stream.slices import EpochSlice
from resources.kinds.contract.writing import SideRows, WritesSideTables, Writing
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.epoch import Epoch
from resources.kinds.stream.judging import Judging
from resources.sql import quoted
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SPLIT, _WATERMARK, _REASON = "_split", "_watermark", "_reason"
"""Columns of side tables."""


@dataclass(frozen=True)
class StreamWriting(Writing[EpochSlice], WritesSideTables[EpochSlice]):
    """Loads of epochs.

    Attributes:
        dataflow: what the user declared.
        sides: the side tables, by their short names.
        judging: tells what becomes of each row.
    """

    dataflow: Dataflow
    sides: Mapping[str, Table]
    judging: Judging

    @override
    def load(self, slice_: EpochSlice, rows: DataFrame) -> Load:
        """Rows are only added."""
        return Append()

    def side_rows(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Sequence[SideRows]:
        """Return the waiting, late and quarantined rows; they replace what an abandoned number wrote."""
        from pyspark.sql import functions as F

        judgement, number = slice_.judged, slice_.number
        read = self.judging.epoch(spark, slice_, pinned)
        judged = read.judged
        epoch = F.lit(number).cast("long").alias(EPOCH)
        definition = self.dataflow.stream
        waits = any(segment.name == str(number) for segment in judgement.after.segments)
        # In the order of event time, so that later epochs read of a file only what lies below their global watermark; the columns that tell
        # which files these are come first, since statistics are kept of so many.
        at = F.col(quoted(definition.event_time))
        rest = [F.col(quoted(name)) for name in read.columns if name != definition.event_time]
        waiting = self.judging.emission.waiting(read).select(epoch, at, *rest).sortWithinPartitions(at)
        above: Predicate = Between(EPOCH, judgement.before.epoch, None, lower_inclusive=False)
        emptied = tuple(int(name) for name in judgement.before.emptied)
        # side tables that stand before a first epoch are of a table that somebody has removed
        nothing_else = 0 < judgement.before.epoch == number - 1
        asides = [
            SideRows(
                BUFFER,
                waiting,
                waits,
                any_of((above, Among(EPOCH, emptied))) if emptied else above,
                replaces_none=nothing_else and not emptied,
            )
        ]
        if CARRY in self.sides:
            asides.append(self._carry(read, slice_, above, replaces_none=nothing_else))
        split = F.col(R.SPLIT).alias(_SPLIT)
        mark = R.from_ticks(R.JUDGED_BY, read.type_name).alias(_WATERMARK)
        late = judged.where(R.is_late()).select(*read.own_beside(_SPLIT, _WATERMARK), split, mark, epoch)
        diverts = are_diverted(definition.late, judgement.tally.late)
        asides.append(SideRows(LATE, late, diverts, above, nothing_else))
        bad = judged.where(F.col(R.REASON).isNotNull())
        reason = F.col(R.REASON).alias(_REASON)
        quarantined = bad.select(*read.own_beside(_REASON), reason, epoch)
        asides.append(SideRows(QUARANTINE, quarantined, judgement.tally.quarantined > 0, above, nothing_else))
        return asides

    def _carry(self, read: Epoch, slice_: EpochSlice, above: Predicate, *, replaces_none: bool) -> SideRows:
        """Return the rows that an over-window carries on; they replace those of the epoch before last."""
        from pyspark.sql import functions as F

        before, after = slice_.judged.before.carry, slice_.judged.after.carry
        carried = self.judging.emission.carry(read)
        assert carried is not None
        rows = carried.withColumn(EPOCH, F.lit(slice_.number).cast("long"))
        if after is None or after == before:
            return SideRows(CARRY, rows, False, above, replaces_none)
        older = [Between(EPOCH, None, before.epoch)] if before is not None else []
        return SideRows(CARRY, rows, True, any_of((above, *older)), replaces_none and not older)
