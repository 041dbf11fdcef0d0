"""Excel files: Spark cannot read workbooks, so each is staged as a Parquet file.

See docs/explanation/architecture.md, Staged files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, ConfigurationError
from partitions.path.hive import folder_value
from partitions.path.source import SourceFile
from partitions.records.judge import Fault
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.sources.files.cells import (
    Cell,
    MisfitError,
    arrow_schema,
    as_text,
    converter,
    describe_cell,
    is_blank,
)
from resources.sources.files.checked import MAX_NAMED_RECORDS, BadRecord, CheckedFiles
from resources.sources.files.failures import bad_records_error, no_known_columns_error, unknown_field_error
from resources.sources.files.folder_conflicts import folder_conflict_fault, folder_fields
from resources.sources.files.formats.excel_inferring import ExcelColumns
from resources.sources.files.formats.excel_sheets import ExcelSheets, other_sheets, unnamed_column
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.scan_groups import select_columns
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner, StagedScanner
from resources.sources.files.workbook import Sheet, SheetRecord
from resources.staging import StagedBatches, Staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_STAGED_ENDING = "-0.parquet"
_BATCH = 10_000
"""The most rows of a batch."""


class ExcelFiles(FormatReader):
    """A reader of workbooks. Only one workbook is in memory at a time."""

    READER: ClassVar[str] = "parquet"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; stage nothing."""
        super().__init__(place, dataflow, staging)
        self._options = ExcelOptions.model_validate(dataflow.files.options)
        self._sheets = ExcelSheets(place, dataflow.files, self._options)
        self.columns = ExcelColumns(self, self._sheets, has_header=self._options.header_row != 0)
        self._staged: set[tuple[str, SourceFile, PinnedSchema]] = set()

    @property
    def remarks(self) -> Sequence[str]:
        """The warning about sheets without records beside other sheets, if the definition names no sheet."""
        return self._sheets.remarks

    @override
    def locate_rows(
        self, files: Sequence[SourceFile], pinned: PinnedSchema, bad_texts: Mapping[str, Collection[str]]
    ) -> Mapping[str, Scanner]:
        """Stage the files that are not staged yet, and return their scanners.

        Raises:
            BadFile: a file cannot be read, or has a cell that its column cannot hold.
        """
        for file in files:
            if (bad := self._stage(file, pinned)).total:
                raise self._bad_file(file, bad)
        scanner = StagedScanner(self.staging.folder, _STAGED_ENDING) if files else self.scanner
        return {file.path: scanner for file in files}

    @override
    def reader_options(self, path: str, *, infer: bool) -> dict[str, str]:
        """Return no options: Spark reads the staged Parquet files."""
        return {}

    def schema_of_file(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema of a file; without a header, columns of folders are never in sheets."""
        if self._options.header_row == 0:
            return pinned.for_folders((*folder_names([file.path]), *pinned.folders))
        return super().schema_of_file(file, pinned)

    @override
    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Stage the files; return the unreadable ones, and the bad records of the others."""
        bad_files: dict[str, BadFile] = {}
        bad_records: list[tuple[str, BadRecord]] = []
        counts: dict[str, int] = {}
        for file in files:
            try:
                bad = self._stage(file, pinned)
            except BadFile as error:
                bad_files[file.path] = error
                continue
            if bad.total:
                bad_records += [(file.path, record) for record in bad.named]
                counts[file.path] = bad.total
        return CheckedFiles(bad_files, bad_records, counts)

    @override
    def find_exact_error(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Stage the file again, and return its error."""
        try:
            bad = self._stage(file, pinned)
        except BadFile as error:
            return error
        return self._bad_file(file, bad) if bad.total else None

    def _bad_file(self, file: SourceFile, bad: _BadRecords) -> BadFile:
        total = f"{bad.total} bad records in all" if bad.total > 1 else None
        return bad_records_error(file.path, bad.named, show=self.dataflow.show_bad_records, total=total)

    def _stage(self, file: SourceFile, pinned: PinnedSchema) -> _BadRecords:
        """Write a workbook as Parquet, unless it has bad records, which are returned.

        Raises:
            BadFile: it cannot be read, or has other columns.
        """
        key = (self.staging.folder.url, file, pinned)
        if not file.size or key in self._staged:
            return _BadRecords()
        data = self.schema_of_file(file, pinned).data
        sheet = self._sheets.read(file)
        spellings = {} if self._options.header_row == 0 else folder_fields(file.path, pinned)
        with_folders = select_columns(pinned.struct, [*data.names, *spellings])
        columns = self._columns(file, sheet, with_folders, is_declared=pinned.declared is not None)
        data = select_columns(with_folders, [*data.names, *columns])
        rows = _SheetRows(file.path, sheet, data, columns, spellings)
        with self.staging.batches(file.path, arrow_schema(data)) as batches:
            self._sheets.note_records(file, sheet, rows.write(batches))
        if not rows.bad.total:
            self._staged = {staged_key for staged_key in self._staged if staged_key[0] == key[0]} | {key}
        return rows.bad

    def _columns(
        self, file: SourceFile, sheet: Sheet, data: StructType, *, is_declared: bool
    ) -> dict[str, int]:
        """Return the sheet's column number for each column of the schema that the sheet has.

        Raises:
            BadFile: the sheet has columns that the schema lacks (``unknown_fields: check``), or none of the
                schema's.
        """
        if self._options.header_row == 0:
            return {field.name: number for number, field in enumerate(data.fields)}
        name_by_key = {field.name.casefold(): field.name for field in data.fields}
        unknown = [column.name for column in sheet.columns if column.name.casefold() not in name_by_key]
        columns = {
            name_by_key[key]: column.number
            for column in [*unnamed_column(sheet), *sheet.columns]
            if (key := column.name.casefold()) in name_by_key
        }
        if unknown and name_by_key and not columns and self.rules.is_strict:
            place, hint = (
                f"sheet {sheet.name}, row {sheet.header_row} (options.header_row)",
                other_sheets(sheet),
            )
            raise no_known_columns_error(file.path, data.names, unknown, place, hint, is_declared=is_declared)
        if unknown and self.rules.is_strict and self.dataflow.unknown_fields != "ignore":
            raise unknown_field_error(
                file.path, unknown, sheet.header_row, self.dataflow, is_declared=is_declared
            )
        return columns


class _BadRecords(NamedTuple):
    """The first bad records of a workbook, and their total number."""

    named: Sequence[BadRecord] = ()
    total: int = 0


class _BadCellError(Exception):
    """A cell that makes its record bad."""

    def __init__(self, record: BadRecord) -> None:
        """Store the bad record."""
        super().__init__(record.why)
        self.record = record


class _SheetRows:
    """The records of a sheet as rows of a schema."""

    def __init__(
        self,
        path: str,
        sheet: Sheet,
        data: StructType,
        columns: Mapping[str, int],
        spellings: Mapping[str, str],
    ) -> None:
        """Store the columns; raise ConfigurationError for a type that no cell can have."""
        self._path, self._sheet, self._schema = path, sheet, data
        self._spellings = spellings
        self.bad = _BadRecords()
        self._named = {column.number for column in sheet.columns} | set(columns.values())
        self._columns: list[tuple[Any, int | None, Callable[[Cell], Any]]] = []
        for field in data.fields:
            convert = converter(field.dataType)
            if convert is None:
                raise ConfigurationError(
                    f"source.schema: expected a type that a cell can have, found {field.name} {field.dataType.simpleString()}: use string,"
                    " numbers, decimal, boolean, date, timestamp or timestamp_ntz"
                )
            self._columns.append((field, columns.get(field.name), convert))

    def write(self, batches: StagedBatches) -> int:
        """Convert and write all records, and return their number.

        ``bad`` then holds the records with a cell that does not fit its column, or has no column name; if there are
        any, the batches are incomplete.
        """
        count = 0
        while records := list(islice(self._sheet.records, _BATCH)):
            batch = self._batch(records)
            if not self.bad.total:
                batches.write(batch)
            count += len(records)
        return count

    def _batch(self, records: Sequence[SheetRecord]) -> pa.RecordBatch:
        """Convert records to rows, and note the bad ones, whose values are NULL."""
        import pyarrow as pa

        bad: dict[int, BadRecord] = {}

        def noting(convert: Callable[..., Any], record: SheetRecord, *column: Any) -> Any:
            try:
                return convert(record, *column)
            except _BadCellError as error:
                bad.setdefault(record.row, error.record)
                return None

        for record in records:
            noting(self._check_has_name, record)
        schema = arrow_schema(self._schema)
        arrays = [
            pa.array([noting(self._convert, record, *column) for record in records], type_)
            for column, type_ in zip(self._columns, schema.types, strict=True)
        ]
        bad_in_order = [bad[row] for row in sorted(bad)]
        self.bad = _BadRecords(
            [*self.bad.named, *bad_in_order][:MAX_NAMED_RECORDS], self.bad.total + len(bad)
        )
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _check_has_name(self, record: SheetRecord) -> None:
        """Raise _BadCellError if a value is in a column without a name."""
        for number, cell in enumerate(record.cells):
            if cell is not None and not is_blank(cell) and number not in self._named:
                row = self._sheet.header_row
                below = (
                    f"in columns that header row {row} names" if row else "in the columns of source.schema"
                )
                message = f"expected values only {below}, found {describe_cell(cell)}"
                hint = "options.header_row can name another row" if row else ""
                raise self._bad_cell(record, number, Fault(message, hint=hint))

    def _convert(
        self, record: SheetRecord, field: Any, number: int | None, convert: Callable[[Cell], Any]
    ) -> Any:
        """Convert a cell to its column's type.

        Raises:
            _BadCellError: the cell does not fit, or contradicts the folder of the file.
        """
        cell = None if number is None or number >= len(record.cells) else record.cells[number]
        if cell is None or number is None:
            return None
        try:
            value = convert(cell)
            if field.name in self._spellings:
                self._check_folder_conflict(record, field.name, number, value, convert)
        except MisfitError as misfit:
            if is_blank(cell):
                return None
            reason = str(misfit) or describe_cell(cell)
        else:
            return value
        message = f"field {field.name}: expected {field.dataType.simpleString()}, found {reason}"
        raise self._bad_cell(record, number, Fault(message))

    def _check_folder_conflict(
        self, record: SheetRecord, column: str, number: int, value: Any, convert: Callable[[Cell], Any]
    ) -> None:
        """Raise _BadCellError if a cell contradicts the folder that names its column."""
        text = folder_value(self._path, self._spellings[column])
        if text is None or convert(text) != value:
            fault = folder_conflict_fault(column, self._spellings[column], self._path, None)
            raise self._bad_cell(record, number, fault)

    def _bad_cell(self, record: SheetRecord, number: int, fault: Fault) -> _BadCellError:
        text = "; ".join("" if cell is None else as_text(cell) for cell in record.cells)
        cell = record.cells[number]
        cell_fault = fault._replace(value=None if cell is None else as_text(cell))
        return _BadCellError(
            BadRecord.of(cell_fault, text, where=f"{self._sheet.place(record.row, number)}: ")
        )
