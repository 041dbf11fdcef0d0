"""Work units that cannot be read, and the slice that passes over them (docs/reference/windows.md)."""

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
from resources.kinds.window.sources import AskedWindows, FolderWindows, WindowSource
from resources.spark.errors import EngineLost
from resources.spark.failures import root_cause
from resources.spark.process import describe_engine_loss

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class WindowBadParts(BadParts[WindowSlice]):
    """The bad work units of one dataflow.

    Attributes:
        dataflow: the definition.
        source: the source, as a reader of windows x units.
        reading: reads each work unit to test it.
    """

    dataflow: Dataflow
    source: WindowSource
    reading: WindowReading

    def find(
        self, spark: SparkSession, slice_: WindowSlice, pinned: str, error: Exception
    ) -> BadUnits | None:
        """Return the work units that the error names; else read them one by one until all bad ones are known.

        A failing set is halved.

        Raises:
            SourceError: the source as a whole does not answer, so no work unit is bad.
        """
        of_source = self._failure(error)
        if of_source is not None and of_source.transient:
            raise of_source from None  # Spark's own text may quote the options of a connection
        source, bad = self.source, None
        if isinstance(source, FolderWindows):
            bad = source.named_by(spark, slice_, pinned, error)
        bad = bad or failing(slice_.works, lambda works: self._fails(spark, slice_, works, pinned))
        return bad_units(bad, self.dataflow.window.zone) if bad else None

    def _failure(self, error: Exception) -> StrandlineError | None:
        """Return the source's own error, if the source is queried; Spark names a file itself."""
        return self.source.failure(error) if isinstance(self.source, AskedWindows) else None

    def _fails(
        self, spark: SparkSession, slice_: WindowSlice, works: Sequence[WorkUnit], pinned: str
    ) -> str | None:
        try:
            rows = self.reading.read_works(spark, slice_, works, pinned)
            rows.write.format("noop").mode("overwrite").save()
        except StrandlineError as error:
            if error.transient:
                raise
            return error.why if isinstance(error, BadPart) else error.message
        except Exception as error:
            if problem := describe_engine_loss(error):
                doing = "searching for unreadable work units"
                raise EngineLost.of(self.dataflow.name, doing, problem) from error
            of_source = self._failure(error)
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
