"""The parts of a source of rows that cannot be read: a file, a version, or the source as a whole.

See docs/reference/columns.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.column.slices import ColumnSlice
from partitions.dataflow import Dataflow
from partitions.errors import BadPart, SourceError
from resources.kinds.contract.bad_parts import BadParts
from resources.sources.source import HasVersions, PinsRows, ReadsAbove, TellsFailures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ColumnBadParts(BadParts[ColumnSlice]):
    """Finds the bad parts of a source of rows.

    Attributes:
        dataflow: the definition.
        rows: pins the schema of the source.
        above: the same source, as a reader of rows above a watermark.
    """

    dataflow: Dataflow
    rows: PinsRows
    above: ReadsAbove

    @override
    def find(self, spark: SparkSession, slice_: ColumnSlice, pinned: str, error: Exception) -> BadPart | None:
        """Return the file or version that cannot be read, or the source itself if it refuses the slice.

        Raises:
            SourceError: the source did not answer.
        """
        of_source = self.rows.failure(error) if isinstance(self.rows, TellsFailures) else None
        if isinstance(of_source, BadPart):
            return of_source
        if isinstance(of_source, SourceError) and not of_source.transient:
            # No run can read the slice before somebody corrects source or definition: its number must not hold that up.
            return BadPart(of_source.message, part=self.dataflow.source.label, code=of_source.code)
        if of_source is not None:
            raise of_source from None  # Spark's own text may quote the options of a connection
        if slice_.version is not None and isinstance(self.above, HasVersions):
            return self.above.at(slice_.version).find_unreadable(spark, error)
        return None
