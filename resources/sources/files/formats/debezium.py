"""Change events of Debezium: this process decodes files into lines of rows, which Spark reads.

See docs/explanation/architecture.md, Staged files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.sources.event_columns import EVENT_COLUMNS
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles, sort_by_file
from resources.sources.files.formats.debezium_inferring import DebeziumColumns
from resources.sources.files.formats.debezium_staging import EventStaging
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue
from resources.sources.files.scan import Scanner
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class DebeziumFiles(FormatReader):
    """A reader of files with one envelope a line."""

    READER: ClassVar[str] = "json"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; stage nothing."""
        super().__init__(place, dataflow, staging)
        self._events = EventStaging(place, dataflow, staging)
        self.columns = DebeziumColumns(self, self._events)

    @property
    @override
    def added_columns(self) -> Mapping[str, str]:
        """The columns that say what each event is."""
        return EVENT_COLUMNS

    @override
    def reader_options(self, path: str, *, infer: bool) -> dict[str, str]:
        """Return no options: they are those of the events, not of the staged rows."""
        return {}

    @property
    @override
    def own_options(self) -> Mapping[str, str]:
        """No options: Spark reads the staged rows."""
        return {}

    @override
    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Decode the files; return unreadable ones, and lines without a change or with a wrong row."""
        bad_files: dict[str, BadFile] = {}
        for file in files:
            try:
                self._events.stage([file])
            except BadFile as error:
                bad_files[file.path] = error
        readable = [file for file in files if file.path not in bad_files]
        checked = self._events.rows.check(spark, readable, pinned) if readable else CheckedFiles()
        records, counts = [*checked.bad_records], dict(checked.counts)
        for file, events in self._events.stage(readable).items():
            records += [(file.path, record) for record in events.bad]
            if events.bad_count:
                counts[file.path] = counts.get(file.path, 0) + events.bad_count
        records.sort(key=lambda record: record[1].line or 0)
        return replace(
            checked,
            bad_files={**bad_files, **checked.bad_files},
            bad_records=sort_by_file(records, files),
            counts=counts,
        )

    @override
    def locate_rows(
        self, files: Sequence[SourceFile], pinned: PinnedSchema, bad_texts: Mapping[str, Collection[str]]
    ) -> Mapping[str, Scanner]:
        """Return the scanners of the staged rows, which lack the lines that are no change of a row.

        Raises:
            BadFile: a file cannot be read.
        """
        staged = {file.path: events for file, events in self._events.stage(files).items()}
        texts_of_rows = {
            path: {*texts} - {record.text for record in staged[path].bad}
            for path, texts in bad_texts.items()
            if path in staged
        }
        return self._events.rows.locate_rows(files, pinned, texts_of_rows)

    @override
    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        folders: Sequence[FolderValue],
        scanner: Scanner,
    ) -> DataFrame:
        """Parse the text of each row."""
        return self._events.rows.rescue(spark, files, own, data, folders, scanner)

    @override
    def find_exact_error(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return the error of a file that cannot be decoded."""
        try:
            self._events.stage([file])
        except BadFile as error:
            return error
        return self._events.rows.find_exact_error(spark, file, pinned)
