"""Windows of a source that is asked for rows: a database, or a table of the lake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from partitions.window.extent import Extent
from partitions.window.slices import WindowSlice, WorkUnit, extents
from resources.kinds.window import WindowFlow
from resources.tables.table import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class WindowReader(Protocol):
    """A source that is asked for rows of stretches of time and units."""

    def version(self) -> Version | None:
        """What can be asked for again later; None where the source has no versions."""
        ...

    def pin(self, spark: SparkSession) -> str:
        """The schema of the source, as text."""
        ...

    def agree(self, spark: SparkSession, pinned: str, name: str) -> None:
        """Raise SchemaError where the source has another schema than the pinned one."""
        ...

    def read(
        self, spark: SparkSession, extents: Sequence[Extent], pinned: str, version: Version | None = None
    ) -> DataFrame:
        """Exactly the rows of these stretches; none for none."""
        ...

    def failure(self, error: Exception) -> Exception | None:
        """What an error says of the source, where a read of it failed while its rows were written; None where it says nothing."""
        ...


@runtime_checkable
class Numbering(Protocol):
    """A source whose query may ask for many stretches, and tell of each row which one it is of."""

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Exactly the rows of these stretches of one unit each, with the number of theirs in ``NUMBER``."""
        ...


@dataclass
class AskedFlow(WindowFlow):
    """Windows x units that a source is asked for.

    Attributes:
        reader: of the source.
    """

    reader: WindowReader = field(kw_only=True)

    def check(self, piece: WindowSlice) -> None:
        """A table of the lake is read at one version; what a database holds may change, and each read takes what is there."""
        if self._fixed is None:
            self._fixed = self.reader.version()

    def rows_of(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> DataFrame:
        """In one query, as few stretches as it takes."""
        return self.reader.read(spark, extents(works), pinned, self._fixed)

    def tagged_rows_of(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> DataFrame:
        """In one query that numbers them, where the source has such: it is asked once, not once for each."""
        if not isinstance(self.reader, Numbering):
            return super().tagged_rows_of(spark, works, pinned)
        asked = [extents((one,))[0] for one in works]
        return self._columns.tag_numbered(self.reader.numbered(spark, asked, pinned), works)

    def failure(self, error: Exception) -> Exception | None:
        """The source's own words."""
        return self.reader.failure(error)

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """What the source says of its columns."""
        return self.reader.pin(spark)

    def agree(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.reader.agree(spark, pinned, self.dataflow.name)
