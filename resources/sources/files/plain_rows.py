"""The records of files, read in this process: small files that list the units of windows. Rows that are loaded go through Spark.

Values have the types of their format: those of CSV and of hive-style folders are texts, an empty one is NULL.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from partitions.errors import SourceError, StrandlineError
from partitions.json_faults import in_plain_words
from partitions.path.hive import folder_value, partition_columns
from partitions.path.source import SourceFile
from partitions.sources import FilesSource
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.sources.files.formats.csv_headers import separator
from resources.sources.files.lines import fault_of_archive, unpacked
from resources.sources.files.workbook import content_of, read_sheet

Row = Mapping[str, Any]

MOST_BYTES = 64 * 2**20
"""Of all files together, as they lie there: each look reads all of them."""


class _NoRecord(Exception):
    """What a file holds in the place of a record; the text says what was expected, found, and where."""


def plain_rows(
    root: Place, source: FilesSource, files: Sequence[SourceFile], columns: Sequence[str]
) -> Iterator[Row]:
    """Yield the records of files, with the values of the folders that they lie in.

    Args:
        root: of the files.
        source: their format and its options.
        files: of the root, in order.
        columns: that are wanted; a format by columns reads no others.

    Raises:
        SourceError: a file cannot be read, or holds something else than records; or the files are large.
    """
    paths, size = [file.path for file in files], sum(file.size for file in files)
    if size > MOST_BYTES:
        raise SourceError(
            f"{root}: expected files of at most {MOST_BYTES // 2**20} MiB together, found {size // 2**20} MiB. Load them by a dataflow, and name its table"
        )
    folders = [name for name in partition_columns(paths) if name in columns]
    reader = _READERS[source.format]
    for path in paths:
        of_folders = {name: folder_value(path, name) for name in folders}
        try:
            for row in reader(root, path, source, columns):
                yield {**row, **of_folders} if of_folders else row
        except StrandlineError:
            raise
        except (_NoRecord, OSError, EOFError, ValueError, LookupError, csv.Error) as error:
            raise SourceError(
                f"file {root.child(path)} cannot be read as {source.format}: {fault_of_archive(error) or in_plain_words(error)}"
            ) from error


def _lines(root: Place, path: str, _source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    with _opened(root, path) as file:
        for number, line in enumerate(io.TextIOWrapper(file, "utf-8-sig"), 1):
            if line.strip():
                yield _record(_parsed(line, f"line {number}"), f"line {number}")


def _document(root: Place, path: str, _source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    with _opened(root, path) as file:
        text = file.read().decode("utf-8-sig")
    found = _parsed(text, "the file") if text.strip() else []
    for number, each in enumerate(found if isinstance(found, list) else [found], 1):
        yield _record(each, f"element {number}")


def _csv(root: Place, path: str, source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    options = {"sep": separator(path), "quote": '"', "encoding": "utf-8-sig", **source.options}
    with _opened(root, path) as file:
        text = io.TextIOWrapper(file, str(options["encoding"]), newline="")
        rows = csv.reader(text, delimiter=str(options["sep"]), quotechar=str(options["quote"]), strict=True)
        header = next((row for row in rows if row), [])
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise _NoRecord(f"line {rows.line_num}: expected {len(header)} values, found {len(row)}")
            yield {name: value or None for name, value in zip(header, row, strict=True)}


def _parquet(root: Place, path: str, _source: FilesSource, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with _opened(root, path) as file, pq.ParquetFile(file) as parquet:
        there = [name for name in columns if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(1_000, columns=there or None):
            yield from batch.to_pylist()


def _excel(root: Place, path: str, source: FilesSource, _columns: Sequence[str]) -> Iterator[Row]:
    sheet = read_sheet(root, path, ExcelOptions.model_validate(source.options))
    for record in sheet.records:
        cells = record.cells
        yield {
            column.name: cells[column.number] if column.number < len(cells) else None
            for column in sheet.columns
        }


def _opened(root: Place, path: str) -> IO[bytes]:
    return unpacked(io.BytesIO(content_of(root, path)), path)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _NoRecord(
            f"{where}: expected JSON, found text that does not parse: {in_plain_words(error)}"
        ) from error


def _record(value: Any, where: str) -> Row:
    if isinstance(value, dict):
        return value
    raise _NoRecord(f"{where}: expected an object, found {type(value).__name__}")


_READERS: Mapping[str, Callable[[Place, str, FilesSource, Sequence[str]], Iterator[Row]]] = {
    "ndjson": _lines,
    "json": _document,
    "csv": _csv,
    "parquet": _parquet,
    "excel": _excel,
}
"""By the word that a user writes; what is missing here :meth:`FilesSource.unit_refusals` refuses."""
