"""Change events of Debezium: this process decodes files into lines of rows, which Spark reads.

See docs/explanation/architecture.md, Staged files.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.ddl import parse_ddl
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.debezium import EventDecoder
from partitions.records.judge import Fault
from partitions.schema_types import Schema
from partitions.sources.event_columns import EVENT_COLUMNS
from partitions.sources.formats import DebeziumOptions
from resources.connections.places import Place
from resources.sources.files.checked import BadRecord, CheckedFiles, sort_by_file
from resources.sources.files.failures import bad_document_error
from resources.sources.files.formats.debezium_inferring import DebeziumColumns
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.json import NdjsonFiles
from resources.sources.files.lines import compress, describe_archive_fault, open_file
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue
from resources.sources.files.scan import Scanner
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FOLDER = "_rows"
"""The folder of the staged rows. No file of a source lies in such a one: a leading underscore hides it."""

_AT_ONCE = 4


@dataclass
class StagedEvents:
    """What the decoding of a file has found.

    Attributes:
        schema: the columns of its rows in Spark's JSON form; None: its events do not tell them.
        bad: its first lines that are no change of a row, up to the bad records that a slice may set aside.
        bad_count: the number of all such lines.
        tombstones: the number of lines that are null.
    """

    schema: Schema | None = None
    bad: list[BadRecord] = field(default_factory=list)
    bad_count: int = 0
    tombstones: int = 0


class DebeziumFiles(FormatReader):
    """A reader of files with one envelope a line. Each line of a staged copy is the row of the same line."""

    READER: ClassVar[str] = "json"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; stage nothing."""
        super().__init__(place, dataflow, staging)
        source = dataflow.files
        self._options = DebeziumOptions.model_validate(source.options)
        self._declared = (
            {column.name: column for column in parse_ddl(source.schema_ or "")} if source.schema_ else {}
        )
        lines = source.model_copy(update={"format": "ndjson", "options": {}})
        self._of_rows = dataflow.model_copy(update={"source": lines})
        self._staged: dict[SourceFile, StagedEvents] = {}
        self._rows: NdjsonFiles | None = None
        self.columns = DebeziumColumns(self)

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

    @property
    def rows(self) -> NdjsonFiles:
        """The reader of the staged rows, which have the paths of their files."""
        place = self.staging.folder.child(_FOLDER)
        if self._rows is None or self._rows.place.url != place.url:
            self._rows = NdjsonFiles(place, self._of_rows, self.staging)
            self._staged = {}
        return self._rows

    def stage(self, files: Sequence[SourceFile]) -> Mapping[SourceFile, StagedEvents]:
        """Decode the files that are not decoded yet; return what was found in all of these.

        Raises:
            BadFile: a file cannot be read, or is no text.
        """
        place = self.rows.place
        new_files = [file for file in files if file.size > 0 and file not in self._staged]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for file, staged in zip(new_files, pool.map(self._decode, new_files), strict=True):
                self._staged[file] = staged
        assert place.url == self.rows.place.url
        return {file: self._staged[file] for file in files if file.size > 0}

    def _decode(self, file: SourceFile) -> StagedEvents:
        events = StagedEvents()
        decoder = EventDecoder(self._options, self._declared, keeps_lost=self.rules.marks_absent)
        try:
            with (
                open_file(self.place, file.path) as packed,
                self.staging.file(f"{_FOLDER}/{file.path}") as copy,
                compress(copy, file.path) as rows,
            ):
                self._write_rows(packed, rows, decoder, events)
        except UnicodeError as error:
            raise bad_document_error(file.path, "expected text in UTF-8, found other bytes") from error
        except (OSError, EOFError) as error:
            if (why := describe_archive_fault(error)) is None:
                raise
            raise bad_document_error(file.path, f"it cannot be read: {why}") from error
        events.schema, events.tombstones = decoder.schema, decoder.tombstones
        return events

    def _write_rows(
        self, packed: IO[bytes], rows: IO[bytes], decoder: EventDecoder, events: StagedEvents
    ) -> None:
        """Write the row of each line as a line; an empty one for a line that has none."""
        most = self.dataflow.max_bad_records + 1
        with io.TextIOWrapper(packed, "utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                text = line.rstrip("\r\n")
                row = decoder.decode(text)
                if isinstance(row, Fault):
                    events.bad_count += 1
                    if len(events.bad) < max(most, 3):
                        events.bad.append(BadRecord.of(row, text, number))
                rows.write(row.encode() + b"\n" if isinstance(row, str) else b"\n")

    @override
    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Decode the files; return unreadable ones, and lines without a change or with a wrong row."""
        bad_files: dict[str, BadFile] = {}
        for file in files:
            try:
                self.stage([file])
            except BadFile as error:
                bad_files[file.path] = error
        readable = [file for file in files if file.path not in bad_files]
        checked = self.rows.check(spark, readable, pinned) if readable else CheckedFiles()
        staged = self.stage(readable)
        records = [*checked.bad_records]
        counts = dict(checked.counts)
        for file, events in staged.items():
            if events.bad_count:
                records += [(file.path, record) for record in events.bad]
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
        staged = {file.path: events for file, events in self.stage(files).items()}
        of_rows = {
            path: {*texts} - {record.text for record in staged[path].bad}
            for path, texts in bad_texts.items()
            if path in staged
        }
        return self.rows.locate_rows(files, pinned, of_rows)

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
        return self.rows.rescue(spark, files, own, data, folders, scanner)

    @override
    def find_exact_error(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return the error of a file that cannot be decoded."""
        try:
            self.stage([file])
        except BadFile as error:
            return error
        return self.rows.find_exact_error(spark, file, pinned)
