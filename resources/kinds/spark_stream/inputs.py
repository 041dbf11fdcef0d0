"""The input of a stream on Spark's engine: its sources, their inboxes, and the query over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from partitions.dataflow import Dataflow
from partitions.last_look import SourceSnapshot
from partitions.readings import dataflows_by_source
from partitions.sources import FilesSource, TableSource
from partitions.sources.definition import SourceDefinition
from partitions.sources.several import NamedFiles, NamedTable
from resources.connections.places import Place
from resources.kinds.spark_stream.folder import StreamFolder, listed
from resources.kinds.spark_stream.inbox import Inbox
from resources.kinds.spark_stream.query import StreamInput, stream_query
from resources.kinds.spark_stream.sources import columns_stream, inbox_stream, table_stream
from resources.sources.files.source import FileSource
from resources.staging import Staging
from resources.tables.contract.table import Table
from resources.tables.registry import find_table
from resources.user_functions import user_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Inputs:
    """The sources of one dataflow.

    Attributes:
        dataflow: with a watermark of this engine.
        sources: each source, and where its files or its table lie.
        files: those of files, by their numbers.
        project: folder in which modules of the user may lie.
    """

    dataflow: Dataflow
    sources: Sequence[tuple[SourceDefinition, Place]]
    files: Mapping[int, FileSource]
    project: Path

    @classmethod
    def of(cls, dataflow: Dataflow, roots: Sequence[Place], staging: Staging, project: Path) -> Self:
        """Bind a dataflow to its sources.

        Args:
            dataflow: with a watermark of this engine.
            roots: where the files or the table of each of its sources lie, in their order.
            staging: takes rows of files that Spark cannot read where they lie.
            project: folder in which modules of the user may lie.
        """
        files = {
            number: FileSource(root, reading, staging)
            for number, (reading, root) in enumerate(zip(dataflows_by_source(dataflow), roots, strict=True))
            if isinstance(reading.source, FilesSource)
        }
        return cls(dataflow, list(zip(dataflow.source.parts.values(), roots, strict=True)), files, project)

    @property
    def warnings(self) -> Sequence[str]:
        """What the sources have to say of their files."""
        return [warning for source in self.files.values() for warning in source.remarks]

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables among the sources, by their names in the lake."""
        return {
            source.table: find_table(root) for source, root in self.sources if isinstance(source, TableSource)
        }

    def look(self) -> SourceSnapshot:
        """Return a snapshot of what the sources hold now; several in their order."""
        looks = (
            listed(root)
            if isinstance(source, FilesSource)
            else str(find_table(root).contents.newest_version())
            for source, root in self.sources
        )
        return SourceSnapshot("; ".join(looks), 0, 0)

    def inboxes(self, folder: StreamFolder) -> Sequence[Inbox]:
        """Return where Spark reads the sources of files."""
        return [
            Inbox(_name(source), self.files[number], source.schema_ or "", folder, number)
            for number, (source, _) in enumerate(self.sources)
            if isinstance(source, FilesSource)
        ]

    def query(self, spark: SparkSession, inboxes: Sequence[Inbox] | None = None) -> DataFrame:
        """Return the query over the inboxes; without them one of the same columns, which is not run."""
        definition = self.dataflow.spark_stream
        places = {inbox.number: inbox.place for inbox in inboxes or ()}
        return stream_query(
            [
                self._input(spark, source, root, places.get(number))
                for number, (source, root) in enumerate(self.sources)
            ],
            definition.event_time,
            self.dataflow.operators,
            output_mode=definition.output_mode,
            load_class=self._user_class,
        )

    def _input(
        self, spark: SparkSession, source: SourceDefinition, root: Place, inbox: Place | None
    ) -> StreamInput:
        """Return the rows of one source, with its name and timeout if there are several."""
        definition = self.dataflow.spark_stream
        most = definition.checkpoint.interval_files
        if not isinstance(source, FilesSource):
            rows = table_stream(spark, root, most)
        elif inbox is None:
            rows = columns_stream(spark, source.schema_ or "")
        else:
            rows = inbox_stream(spark, inbox, source.schema_ or "", most)
        named = source if isinstance(source, NamedFiles | NamedTable) else None
        delay = (named.timeout if named else None) or definition.timeout
        return StreamInput(_name(source) or "input", rows, delay)

    def _user_class(self, name: str) -> type[Any]:
        """Return the user's class, sent to Spark's Python processes with its whole module."""
        import sys

        from pyspark import cloudpickle

        function: Any = user_function("operators.function", name, self.project)
        cloudpickle.register_pickle_by_value(sys.modules[function.__module__])  # type: ignore[no-untyped-call]
        return function  # type: ignore[no-any-return]


def _name(source: SourceDefinition) -> str | None:
    """Return the name of one of several sources; None for the only one."""
    return source.name if isinstance(source, NamedFiles | NamedTable) else None
