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
from partitions.spark_stream.definition import StructuredStream
from resources.connections.places import Place
from resources.kinds.spark_stream.folder import StreamFolder, describe_files
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
        dataflow: the definition, with a watermark of Spark's engine.
        sources: each source's definition, with the place of its files or its table.
        files: the sources of files, by their numbers in ``sources``.
        project: project folder, for modules of the user.
    """

    dataflow: Dataflow
    sources: Sequence[tuple[SourceDefinition, Place]]
    files: Mapping[int, FileSource]
    project: Path

    @classmethod
    def of(cls, dataflow: Dataflow, roots: Sequence[Place], staging: Staging, project: Path) -> Self:
        """Bind a dataflow to its sources.

        Args:
            dataflow: the definition, with a watermark of Spark's engine.
            roots: place of the files or the table of each source, in the sources' order.
            staging: receives rows of files that Spark cannot read in place.
            project: project folder, for modules of the user.
        """
        files = {
            number: FileSource(root, reading, staging)
            for number, (reading, root) in enumerate(zip(dataflows_by_source(dataflow), roots, strict=True))
            if isinstance(reading.source, FilesSource)
        }
        return cls(dataflow, list(zip(dataflow.source.parts.values(), roots, strict=True)), files, project)

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the sources about their files."""
        return [warning for source in self.files.values() for warning in source.remarks]

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables among the sources, by their names in the lake."""
        return {
            source.table: find_table(root) for source, root in self.sources if isinstance(source, TableSource)
        }

    def look(self) -> SourceSnapshot:
        """Return a snapshot of the sources' present contents; its text has the sources in their order."""
        texts = (
            describe_files(root)
            if isinstance(source, FilesSource)
            else str(find_table(root).contents.newest_version())
            for source, root in self.sources
        )
        return SourceSnapshot("; ".join(texts), 0, 0)

    def inboxes(self, folder: StreamFolder) -> Sequence[Inbox]:
        """Return the inbox of each source of files."""
        return [
            Inbox(_name(source), self.files[number], source.schema_ or "", folder, number)
            for number, (source, _) in enumerate(self.sources)
            if isinstance(source, FilesSource)
        ]

    def query(self, spark: SparkSession, inboxes: Sequence[Inbox] | None = None) -> DataFrame:
        """Return the query over the inboxes and tables.

        Without inboxes, sources of files only have their columns: the query shows its schema, and must
        not run.
        """
        definition = self.dataflow.watermark_as(StructuredStream)
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
        """Return the rows of one source as a stream, with the source's name and timeout."""
        definition = self.dataflow.watermark_as(StructuredStream)
        files_per_batch = definition.checkpoint.interval_files
        if not isinstance(source, FilesSource):
            rows = table_stream(spark, root, files_per_batch)
        elif inbox is None:
            rows = columns_stream(spark, source.schema_ or "")
        else:
            rows = inbox_stream(spark, inbox, source.schema_ or "", files_per_batch)
        own_timeout = source.timeout if isinstance(source, NamedFiles | NamedTable) else None
        delay = own_timeout or definition.timeout
        return StreamInput(_name(source) or "input", rows, delay)

    def _user_class(self, name: str) -> type[Any]:
        """Return the user's class; Spark's Python processes get its module with it."""
        import sys

        from pyspark import cloudpickle

        user_class: Any = user_function("operators.function", name, self.project)
        cloudpickle.register_pickle_by_value(sys.modules[user_class.__module__])  # type: ignore[no-untyped-call]
        return user_class  # type: ignore[no-any-return]


def _name(source: SourceDefinition) -> str | None:
    """Return the name of one of several sources; None for the only one."""
    return source.name if isinstance(source, NamedFiles | NamedTable) else None
