"""The rows of a test of a stream over splits: one epoch, after which the input has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.loads import Append, Load
from partitions.stream.ending import draining_watermark
from partitions.stream.event_time import EventTime
from partitions.stream.operators import EPOCH
from partitions.stream.state import Segment, StreamState
from partitions.stream.ticks import event_time
from resources.kinds.contract.fixtures import FixtureRules
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.buffer import Buffer
from resources.kinds.stream.emission import emission_of, refusals_of_spark
from resources.kinds.stream.epoch import Epoch
from resources.kinds.stream.judging import source_columns
from resources.tables.contract.commit_log import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StreamFixtures(FixtureRules):
    """Rows of a first epoch. All leave, as after `strandline stream flush`: none is late, and none waits."""

    @override
    def rows_read(self, rows: DataFrame) -> DataFrame:
        """Return the rows in the order of event time, or what the operator makes of them.

        Rows that a stream puts in quarantine, such as those without an event time, are left out.
        """
        from pyspark.sql import functions as F

        definition = self.dataflow.stream
        versioned = rows.withColumn(VERSION, F.lit(0).cast("long"))
        type_name = R.time_type(versioned, definition, self.dataflow.name)
        judged = R.none_late(R.marked(versioned, definition, type_name, None))
        names = source_columns(versioned.columns)
        value = self._value_after(judged, type_name)
        epoch = Epoch(1, judged, StreamState(), value, type_name, names, ends=True)
        with refusals_of_spark(self.dataflow):
            emitted = emission_of(self.dataflow, Buffer(self.dataflow, {}, {})).rows(epoch, small=True)
        return emitted.withColumn(EPOCH, F.lit(1).cast("long"))

    def _value_after(self, judged: DataFrame, type_name: str) -> EventTime | None:
        """Return the global watermark at which all rows leave; None without rows."""
        from pyspark.sql import functions as F

        times = judged.where(F.col(R.REASON).isNull())
        totals: Any = times.agg(
            F.min(R.TIME).alias("a"), F.max(R.TIME).alias("z"), F.count("*").alias("n")
        ).first()
        if not totals["n"]:
            return None
        lowest, highest = (event_time(totals[name], timed=R.is_timed(type_name)) for name in ("a", "z"))
        waiting = StreamState(segments=(Segment("1", totals["n"], lowest, highest, totals["n"]),))
        return draining_watermark(waiting, self.dataflow.operators)

    @override
    def load(self) -> Load:
        """Return an append: a stream only adds rows."""
        return Append()
