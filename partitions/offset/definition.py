"""An offset watermark as a user declares it (docs/reference/offsets.md)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ByteSize, Field
from typing_extensions import override

from partitions.offset.changes import change_treatment
from partitions.sources.definition import SourceDefinition
from partitions.sources.table import TableSource
from partitions.target import Target
from partitions.watermark_definition import SliceSize, WatermarkDefinition


class CommitCheckpoint(SliceSize):
    """The size of a slice: it ends before the commit that would exceed a limit. A commit is never cut.

    A first read of a table is cut between its files.

    Attributes:
        commits: the most commits.
        files: the most files to read.
        bytes: the most bytes to read.
    """

    commits: Annotated[int, Field(ge=1, strict=True)] = 50
    files: Annotated[int, Field(ge=1, strict=True)] = 1000
    bytes: Annotated[ByteSize, Field(ge=1)] = ByteSize(10 * 10**9)


class OffsetWatermark(WatermarkDefinition):
    """A watermark that reads the log of a table, commit by commit.

    Attributes:
        checkpoint: the size of a slice.
    """

    rows_name_origin: ClassVar[bool] = False
    reads_versions: ClassVar[bool] = True

    type: Literal["offset"]
    checkpoint: CommitCheckpoint = CommitCheckpoint()

    @override
    def carries_deletes(self, source: SourceDefinition, target: Target) -> bool:
        """Return whether deletes of the table above are applied."""
        return isinstance(source, TableSource) and change_treatment(source, target) == "apply"

    @override
    def pairs_changes(self, source: SourceDefinition) -> bool:
        """Return whether every change becomes a row: a delete and an insert of one key are an update."""
        return isinstance(source, TableSource) and source.on_change == "keep"

    def identity(self) -> dict[str, Any]:
        """Return nothing: the position belongs to the source, which has an identity of its own."""
        return {}
