"""Find what a run cannot read of a table's log: a version whose files are damaged or missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.errors import BadPart
from partitions.offset.slices import OffsetSlice
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.offset.source_log import SourceLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class OffsetBadParts(BadParts[OffsetSlice]):
    """Finds unreadable versions of the table.

    Attributes:
        log: the table's log.
    """

    log: SourceLog

    @override
    def find(self, spark: SparkSession, slice_: OffsetSlice, pinned: str, error: Exception) -> BadPart | None:
        """Return the last version that a slice reads if it cannot be read; else None.

        Raises:
            NeedsDecision: code ``versions_gone``: that version can be read, but files of earlier ones are
                missing.
        """
        return self.log.find_unreadable(spark, slice_, error)
