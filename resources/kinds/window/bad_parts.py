"""Find the work units that cannot be read, and cut them out of a slice (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, BadUnits, StrandlineError
from partitions.window.slices import WindowSlice
from partitions.window.work_unit import FailedUnit, WorkUnit
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.window.failures import bad_units, failing
from resources.kinds.window.reading import WindowReading
from resources.kinds.window.sources import FolderWindows, QueriedWindows, WindowSource
from resources.spark.errors import EngineLost
from resources.spark.failures import root_cause
from resources.spark.process import describe_engine_loss

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class WindowBadParts(BadParts[WindowSlice]):
    """Finds the bad work units of one dataflow.

    Attributes:
        dataflow: the definition.
        source: the source, as a reader of windows x units.
        reading: reads work units to test them.
    """

    dataflow: Dataflow
    source: WindowSource
    reading: WindowReading

    def find(
        self, spark: SparkSession, slice_: WindowSlice, pinned_schema: str, error: Exception
    ) -> BadUnits | None:
        """Return the work units that the error names; else search for the unreadable ones by test reads.

        The search reads the work units of each unit together and halves those that fail. If the first and
        the last window of a failing part fail alike, all between count as bad without a read of their own.

        Raises:
            SourceError: the source as a whole does not answer, so no work unit is bad.
            EngineLost: Spark stopped during a test read.
        """
        of_source = self._source_error(error)
        if of_source is not None and of_source.transient:
            raise of_source from None  # Spark's own text may quote the options of a connection
        source, bad = self.source, None
        if isinstance(source, FolderWindows):
            bad = source.named_by(spark, slice_, pinned_schema, error)
        bad = bad or failing(slice_.works, lambda works: self._fails(spark, slice_, works, pinned_schema))
        return bad_units(bad, self.dataflow.window.zone) if bad else None

    def _source_error(self, error: Exception) -> StrandlineError | None:
        """Return the error that a queried source raised; None for files, since Spark's error names the file."""
        return self.source.failure(error) if isinstance(self.source, QueriedWindows) else None

    def _fails(
        self, spark: SparkSession, slice_: WindowSlice, works: Sequence[WorkUnit], pinned_schema: str
    ) -> str | None:
        try:
            rows = self.reading.read_works(spark, slice_, works, pinned_schema)
            rows.write.format("noop").mode("overwrite").save()
        except StrandlineError as error:
            if error.transient:
                raise
            return error.why if isinstance(error, BadPart) else error.message
        except Exception as error:
            if problem := describe_engine_loss(error):
                doing = "searching for unreadable work units"
                raise EngineLost.of(self.dataflow.name, doing, problem) from error
            of_source = self._source_error(error)
            if of_source is not None and of_source.transient:
                raise of_source from None  # as above
            return of_source.message if of_source is not None else root_cause(error)
        return None

    def slice_without(self, slice_: WindowSlice, bad: BadPart) -> WindowSlice | None:
        """Return the slice without these work units, which its entry records as failed."""
        if not isinstance(bad, BadUnits) or not slice_.contains(bad):
            return None
        return slice_.without(
            [FailedUnit(work, bad.units[work.key]) for work in slice_.works if work.key in bad.units]
        )
