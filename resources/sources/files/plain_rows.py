"""Read the records of small files in this process, to list the units of windows.

Rows that are loaded go through Spark. Values have the types of their format. Values of CSV and of hive folders are
text; an empty one is NULL.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from partitions.errors import SourceError, StrandlineError
from partitions.json_faults import explain_json_error
from partitions.path.hive import folder_value, partition_columns
from partitions.path.source import SourceFile
from partitions.sources import FilesSource
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.sources.files.formats.csv_headers import separator_of_path
from resources.sources.files.lines import decompress, describe_archive_fault
from resources.sources.files.workbook import read_content, read_sheet

Row = Mapping[str, Any]

MAX_BYTES = 64 * 2**20
"""The most bytes of all files together, as they are stored: each call reads all of them."""


class _NoRecordError(Exception):
    """A value that is no record; the text says what was expected and found, and where."""


def plain_rows(
    root: Place, source: FilesSource, files: Sequence[SourceFile], columns: Sequence[str]
) -> Iterator[Row]:
    """Yield the records of files, with the values of their folders.

    Args:
        root: the root of the files.
        source: their format and its options.
        files: the root's files, in order.
        columns: the columns to return; columnar formats read only these.

    Raises:
        SourceError: a file cannot be read or holds no records, or the files exceed 64 MiB.
    """
    paths, size = [file.path for file in files], sum(file.size for file in files)
    if size > MAX_BYTES:
        raise SourceError(
            f"{root}: expected files of at most {MAX_BYTES // 2**20} MiB together, found {size // 2**20} MiB. Load them by a dataflow, and name its table"
        )
    folders = [name for name in partition_columns(paths) if name in columns]
    reader = _READERS[source.format]
    for path in paths:
        folder_values = {name: folder_value(path, name) for name in folders}
        try:
            for row in reader(root, path, source, columns):
                yield {**row, **folder_values} if folder_values else row
        except StrandlineError:
            raise
        except (_NoRecordError, OSError, EOFError, ValueError, LookupError, csv.Error) as error:
            raise SourceError(
                f"file {root.child(path)} cannot be read as {source.format}: {describe_archive_fault(error) or explain_json_error(error)}"
            ) from error


def _read_lines(root: Place, path: str, _source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    with _open_file(root, path) as file:
        for number, line in enumerate(io.TextIOWrapper(file, "utf-8-sig"), 1):
            if line.strip():
                yield _check_record(_parse_json(line, f"line {number}"), f"line {number}")


def _read_document(root: Place, path: str, _source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    with _open_file(root, path) as file:
        text = file.read().decode("utf-8-sig")
    document = _parse_json(text, "the file") if text.strip() else []
    for number, element in enumerate(document if isinstance(document, list) else [document], 1):
        yield _check_record(element, f"element {number}")


def _read_csv(root: Place, path: str, source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    options = {"sep": separator_of_path(path), "quote": '"', "encoding": "utf-8-sig", **source.options}
    with _open_file(root, path) as file:
        text = io.TextIOWrapper(file, str(options["encoding"]), newline="")
        rows = csv.reader(text, delimiter=str(options["sep"]), quotechar=str(options["quote"]), strict=True)
        header = next((row for row in rows if row), [])
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise _NoRecordError(f"line {rows.line_num}: expected {len(header)} values, found {len(row)}")
            yield {name: value or None for name, value in zip(header, row, strict=True)}


def _read_parquet(root: Place, path: str, _source: FilesSource, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with _open_file(root, path) as file, pq.ParquetFile(file) as parquet:
        present_columns = [name for name in columns if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(1_000, columns=present_columns or None):
            yield from batch.to_pylist()


def _read_excel(root: Place, path: str, source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    sheet = read_sheet(root, path, ExcelOptions.model_validate(source.options))
    for record in sheet.records:
        cells = record.cells
        yield {
            column.name: cells[column.number] if column.number < len(cells) else None
            for column in sheet.columns
        }


def _open_file(root: Place, path: str) -> IO[bytes]:
    return decompress(io.BytesIO(read_content(root, path)), path)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _NoRecordError(
            f"{where}: expected JSON, found text that does not parse: {explain_json_error(error)}"
        ) from error


def _check_record(value: Any, where: str) -> Row:
    if isinstance(value, dict):
        return value
    raise _NoRecordError(f"{where}: expected an object, found {type(value).__name__}")


_READERS: Mapping[str, Callable[[Place, str, FilesSource, Sequence[str]], Iterator[Row]]] = {
    "ndjson": _read_lines,
    "json": _read_document,
    "csv": _read_csv,
    "parquet": _read_parquet,
    "excel": _read_excel,
}
"""By format name; :meth:`FilesSource.unit_refusals` refuses the others."""
