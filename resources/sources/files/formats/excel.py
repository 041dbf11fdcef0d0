"""Excel: Spark has no reader for workbooks, so each is made a Parquet file below the lake, with the pinned columns (docs/explanation/architecture.md, Staged files)."""

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
from resources.sources.files.beside_folders import fault_beside_folder, folder_fields
from resources.sources.files.cells import (
    Cell,
    MisfitError,
    arrow_schema,
    as_text,
    converter,
    in_words,
    is_blank,
)
from resources.sources.files.checked import NAMED, BadRecord, CheckedFiles
from resources.sources.files.failures import bad_records, unknown_field, without_known_columns
from resources.sources.files.formats.alike import only
from resources.sources.files.formats.excel_inferring import ExcelColumns
from resources.sources.files.formats.excel_sheets import ExcelSheets, other_sheets, unnamed_column
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner, StagedScanner
from resources.sources.files.workbook import Record, Sheet
from resources.staging import StagedBatches, Staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_STAGED_ENDING = "-0.parquet"
_BATCH = 10_000
"""Rows that are converted at once."""


class ExcelFiles(FormatReader):
    """Rows of a sheet, under a header. One workbook at a time is in memory."""

    READER: ClassVar[str] = "parquet"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Stage nothing yet."""
        super().__init__(place, dataflow, staging)
        self._options = ExcelOptions.model_validate(dataflow.files.options)
        self._sheets = ExcelSheets(place, dataflow.files, self._options)
        self.columns = ExcelColumns(self, self._sheets, has_header=self._options.header_row != 0)
        self._staged: set[tuple[str, SourceFile, PinnedSchema]] = set()

    @property
    def remarks(self) -> Sequence[str]:
        """Which sheets hold no record beside others that may, if the definition names no sheet."""
        return self._sheets.remarks

    @override
    def located(
        self, files: Sequence[SourceFile], pinned: PinnedSchema, left_out: Mapping[str, Collection[str]]
    ) -> Mapping[str, Scanner]:
        """Stage the files that are not staged yet.

        Raises:
            BadFile: a file does not read, or has a cell that its column cannot hold.
        """
        for file in files:
            if (bad := self._stage(file, pinned)).total:
                raise self._bad_file(file, bad)
        scanner = StagedScanner(self.staging.folder, _STAGED_ENDING) if files else self.scanner
        return {file.path: scanner for file in files}

    @override
    def reader_options(self, path: str, *, infer: bool) -> dict[str, str]:
        """Spark reads the rows that were put for it."""
        return {}

    def beside_folders(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema without the columns of all folders where it names the columns of sheets from the left."""
        if self._options.header_row == 0:
            return pinned.beside((*spellings([file.path]), *pinned.folders))
        return super().beside_folders(file, pinned)

    @override
    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Stage the files, and return those that cannot be, and the records of others that are bad."""
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
    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Convert it once more."""
        try:
            bad = self._stage(file, pinned)
        except BadFile as error:
            return error
        return self._bad_file(file, bad) if bad.total else None

    def _bad_file(self, file: SourceFile, bad: _BadRecords) -> BadFile:
        total = f"{bad.total} bad records in all" if bad.total > 1 else None
        return bad_records(file.path, bad.named, show=self.dataflow.show_bad_records, total=total)

    def _stage(self, file: SourceFile, pinned: PinnedSchema) -> _BadRecords:
        """Make a file a Parquet file that Spark reads, unless records of it are bad, which are returned.

        Raises:
            BadFile: it does not read, or has other columns.
        """
        key = (self.staging.folder.url, file, pinned)
        if not file.size or key in self._staged:
            return _BadRecords()
        data = self.beside_folders(file, pinned).data
        sheet = self._sheets.read(file)
        spelt = {} if self._options.header_row == 0 else folder_fields(file.path, pinned)
        with_folders = only(pinned.struct, [*data.names, *spelt])
        columns = self._columns(file, sheet, with_folders, is_declared=pinned.declared is not None)
        data = only(with_folders, [*data.names, *columns])
        rows = _Rows(file.path, sheet, data, columns, spelt)
        with self.staging.batches(file.path, arrow_schema(data)) as batches:
            self._sheets.note_records(file, sheet, rows.write(batches))
        if not rows.bad.total:
            self._staged = {staged_key for staged_key in self._staged if staged_key[0] == key[0]} | {key}
        return rows.bad

    def _columns(
        self, file: SourceFile, sheet: Sheet, data: StructType, *, is_declared: bool
    ) -> dict[str, int]:
        """The sheet's column of each column of the schema that it has.

        Raises:
            BadFile: it has columns that the schema lacks (``unknown_fields: check``), or none that the schema has.
        """
        if self._options.header_row == 0:
            return {field.name: number for number, field in enumerate(data.fields)}
        known = {field.name.casefold(): field.name for field in data.fields}
        unknown = [column.name for column in sheet.columns if column.name.casefold() not in known]
        columns = {
            known[key]: column.number
            for column in [*unnamed_column(sheet), *sheet.columns]
            if (key := column.name.casefold()) in known
        }
        if unknown and known and not columns and self.rules.is_strict:
            place, hint = (
                f"sheet {sheet.name}, row {sheet.header_row} (options.header_row)",
                other_sheets(sheet),
            )
            raise without_known_columns(file.path, data.names, unknown, place, hint, is_declared=is_declared)
        if unknown and self.rules.is_strict and self.dataflow.unknown_fields != "ignore":
            raise unknown_field(file.path, unknown, sheet.header_row, self.dataflow, is_declared=is_declared)
        return columns


class _BadRecords(NamedTuple):
    """The bad records of a workbook: the first of them, and how many there are."""

    named: Sequence[BadRecord] = ()
    total: int = 0


class _BadCellError(Exception):
    """A cell that makes its record bad."""

    def __init__(self, record: BadRecord) -> None:
        """Keep what is wrong with the record."""
        super().__init__(record.why)
        self.record = record


class _Rows:
    """The records of a sheet as rows of a schema."""

    def __init__(
        self,
        path: str,
        sheet: Sheet,
        data: StructType,
        columns: Mapping[str, int],
        spelt: Mapping[str, str],
    ) -> None:
        """Refuse a type that no cell can have."""
        self._path, self._sheet, self._schema = path, sheet, data
        self._spelt = spelt
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
        """Convert all records, and return how many there are; ``bad`` has those with a cell that does not fit its column, or stands under no name, and the rows are of no use then."""
        count = 0
        while records := list(islice(self._sheet.records, _BATCH)):
            batch = self._batch(records)
            if not self.bad.total:
                batches.write(batch)
            count += len(records)
        return count

    def _batch(self, records: Sequence[Record]) -> pa.RecordBatch:
        """The records as rows, and note those of them that are bad, whose values are NULL."""
        import pyarrow as pa

        bad: dict[int, BadRecord] = {}

        def noting(convert: Callable[..., Any], record: Record, *column: Any) -> Any:
            try:
                return convert(record, *column)
            except _BadCellError as error:
                bad.setdefault(record.row, error.record)
                return None

        for record in records:
            noting(self._check_named, record)
        schema = arrow_schema(self._schema)
        arrays = [
            pa.array([noting(self._converted, record, *column) for record in records], type_)
            for column, type_ in zip(self._columns, schema.types, strict=True)
        ]
        in_order = [bad[row] for row in sorted(bad)]
        self.bad = _BadRecords([*self.bad.named, *in_order][:NAMED], self.bad.total + len(bad))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _check_named(self, record: Record) -> None:
        """Raise _BadCellError if a value stands under no name."""
        for number, cell in enumerate(record.cells):
            if cell is not None and not is_blank(cell) and number not in self._named:
                row = self._sheet.header_row
                below = (
                    f"below a name of the header in row {row}" if row else "in the columns of source.schema"
                )
                what = f"expected values {below} only, found {in_words(cell)}"
                hint = "options.header_row can name another row" if row else ""
                raise self._bad(record, number, Fault(what, hint=hint))

    def _converted(
        self, record: Record, field: Any, number: int | None, convert: Callable[[Cell], Any]
    ) -> Any:
        """The value of a cell as its column's type.

        Raises:
            _BadCellError: it has none there, or another than the folder of the file says.
        """
        cell = None if number is None or number >= len(record.cells) else record.cells[number]
        if cell is None or number is None:
            return None
        try:
            value = convert(cell)
            if field.name in self._spelt:
                self._check_beside_folder(record, field.name, number, value, convert)
        except MisfitError as misfit:
            if is_blank(cell):
                return None
            reason = str(misfit) or in_words(cell)
        else:
            return value
        what = f"field {field.name}: expected {field.dataType.simpleString()}, found {reason}"
        raise self._bad(record, number, Fault(what))

    def _check_beside_folder(
        self, record: Record, column: str, number: int, value: Any, convert: Callable[[Cell], Any]
    ) -> None:
        """Raise _BadCellError if a cell has another value than the folder that names its column."""
        text = folder_value(self._path, self._spelt[column])
        if text is None or convert(text) != value:
            fault = fault_beside_folder(column, self._spelt[column], self._path, None)
            raise self._bad(record, number, fault)

    def _bad(self, record: Record, number: int, fault: Fault) -> _BadCellError:
        text = "; ".join("" if cell is None else as_text(cell) for cell in record.cells)
        cell = record.cells[number]
        of_cell = fault._replace(value=None if cell is None else as_text(cell))
        return _BadCellError(BadRecord.of(of_cell, text, where=f"{self._sheet.place(record.row, number)}: "))
