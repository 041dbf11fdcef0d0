"""Decode files of change events into staged lines of rows.

Each line of a staged file is the row of the same line, so that both have the same number.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO

from partitions.dataflow import Dataflow
from partitions.ddl import parse_ddl
from partitions.path.source import SourceFile
from partitions.records.debezium import EventDecoder
from partitions.records.judge import Fault
from partitions.schema_types import Schema
from partitions.sources.formats import DebeziumOptions
from resources.connections.places import Place
from resources.sources.files.checked import MAX_NAMED_RECORDS, BadRecord
from resources.sources.files.failures import bad_document_error
from resources.sources.files.formats.json import NdjsonFiles
from resources.sources.files.formats.schema_rules import SchemaRules
from resources.sources.files.lines import compress, describe_archive_fault, find_undecodable_line, open_file
from resources.staging import Staging

_FOLDER = "_rows"
"""The folder of the staged rows. No file of a source lies in such a one: a leading underscore hides it."""

_AT_ONCE = 4


@dataclass
class StagedEvents:
    """What the decoding of a file has found.

    Attributes:
        schema: the columns of its rows in Spark's JSON form; None: its events do not tell them.
        bad: its first lines that are no change of a row: at least those that its error names, and more than
            ``max_bad_records`` if there are more.
        bad_count: the number of all such lines.
    """

    schema: Schema | None = None
    bad: list[BadRecord] = field(default_factory=list)
    bad_count: int = 0


class EventStaging:
    """The staged rows of one dataflow's files; each file is decoded once while its staging lasts."""

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the root of the files, the definition and the place of staged files; decode nothing."""
        self._place, self._dataflow, self._staging = place, dataflow, staging
        source = dataflow.files
        self._options = DebeziumOptions.model_validate(source.options)
        columns = parse_ddl(source.schema_) if source.schema_ else []
        self._declared = {column.name: column for column in columns}
        lines = source.model_copy(update={"format": "ndjson", "options": {}})
        self._of_rows = dataflow.model_copy(update={"source": lines})
        self._staged: dict[SourceFile, StagedEvents] = {}
        self._rows: NdjsonFiles | None = None

    @property
    def rows(self) -> NdjsonFiles:
        """The reader of the staged rows, which have the paths of their files."""
        place = self._staging.folder.child(_FOLDER)
        if self._rows is None or self._rows.place.url != place.url:
            self._rows, self._staged = NdjsonFiles(place, self._of_rows, self._staging), {}
        return self._rows

    def stage(self, files: Sequence[SourceFile]) -> Mapping[SourceFile, StagedEvents]:
        """Decode the files that are not decoded yet; return what was found in each file with content.

        Raises:
            BadFile: a file cannot be read, or is no text.
        """
        _ = self.rows  # whose folder is new for each slice
        new_files = [file for file in files if file.size > 0 and file not in self._staged]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for file, events in zip(new_files, pool.map(self._decode, new_files), strict=True):
                self._staged[file] = events
        return {file: self._staged[file] for file in files if file.size > 0}

    def _decode(self, file: SourceFile) -> StagedEvents:
        events = StagedEvents()
        keeps_lost = SchemaRules(self._dataflow).marks_absent
        decoder = EventDecoder(self._options, self._declared, keeps_lost=keeps_lost)
        try:
            with (
                open_file(self._place, file.path) as packed,
                self._staging.file(f"{_FOLDER}/{file.path}") as copy,
                compress(copy, file.path) as rows,
            ):
                self._write_rows(packed, rows, decoder, events)
        except UnicodeError as error:
            line = find_undecodable_line(self._place, file.path)
            raise bad_document_error(
                file.path, f"line {line}: expected text in UTF-8, found other bytes"
            ) from error
        except (OSError, EOFError) as error:
            if (why := describe_archive_fault(error)) is None:
                raise
            raise bad_document_error(file.path, f"it cannot be read: {why}") from error
        events.schema = decoder.schema
        return events

    def _write_rows(
        self, packed: IO[bytes], rows: IO[bytes], decoder: EventDecoder, events: StagedEvents
    ) -> None:
        """Write the row of each line as a line; an empty one for a line that has none."""
        most = max(self._dataflow.max_bad_records + 1, MAX_NAMED_RECORDS)
        with io.TextIOWrapper(packed, "utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                text = line.rstrip("\r\n")
                row = decoder.decode(text)
                if isinstance(row, Fault):
                    events.bad_count += 1
                    if len(events.bad) < most:
                        events.bad.append(BadRecord.of(row, text, number))
                rows.write(row.encode() + b"\n" if isinstance(row, str) else b"\n")
