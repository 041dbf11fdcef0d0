"""Read the headers of CSV files, and compare them with the expected columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.csv_form import CsvForm
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.failures import bad_header_error
from resources.sources.files.lines import read_beginning

_HEADERS_KEPT = 10_000
_THREADS = 16


class CsvHeader(NamedTuple):
    """The first record of a file.

    Attributes:
        text: as written.
        names: the columns' names; a column without a name is called by its position, as in Spark.
    """

    text: str
    names: tuple[str, ...]


class CsvHeaders:
    """A cache of the headers of a dataflow's files, for schemas, checks and reads."""

    def __init__(self, place: Place, options: Mapping[str, Option]) -> None:
        """Start with an empty cache.

        Args:
            place: the root of the files.
            options: the source's options.
        """
        self._place, self._options = place, options
        self.first_record = lru_cache(_HEADERS_KEPT)(self._read_first_record)
        self._line_breaks: dict[str, str] = {}

    @property
    def has_headers(self) -> bool:
        """Whether the first record of a file names its columns."""
        return self.form("").header

    def form(self, path: str) -> CsvForm:
        """Return the form of a file, from its name and the options."""
        return CsvForm.of(self._options, separator_of_path(path))

    def form_with_break(self, path: str) -> CsvForm:
        """Return the form of a file; with its own line break if records can only be split in the whole text."""
        form = self.form(path)
        if not form.needs_whole_text or form.line_break or not path:
            return form
        if path not in self._line_breaks:
            text = read_beginning(self._place, path, form.encoding or "utf-8")
            self._line_breaks[path] = form.first_break(text)
        return replace(form, line_break=self._line_breaks[path])

    def by_path(self, files: Sequence[SourceFile]) -> dict[str, CsvHeader]:
        """Return the headers of the files that have one, by path."""
        if not self.has_headers:
            return {}
        return {file.path: header for file, header in self._first_records(files) if header is not None}

    def numbered_names(self, files: Sequence[SourceFile]) -> dict[str, CsvHeader]:
        """Return the column names that Spark gives to files without a header, by path."""
        return {
            file.path: CsvHeader("", tuple(f"_c{place}" for place in range(len(record.names))))
            for file, record in self._first_records(files)
            if record is not None
        }

    def _first_records(self, files: Sequence[SourceFile]) -> list[tuple[SourceFile, CsvHeader | None]]:
        """Return the first record of each file, read in parallel."""
        with ThreadPoolExecutor(min(_THREADS, max(1, len(files)))) as pool:
            return list(zip(files, pool.map(self.first_record, files), strict=True))

    def _read_first_record(self, file: SourceFile) -> CsvHeader | None:
        """Return the first record of a file; None if there is none."""
        form = self.form(file.path)
        record = form.first_record(read_beginning(self._place, file.path, form.encoding or "utf-8"))
        if record is None:
            return None
        text, names = record
        return CsvHeader(text, tuple(name or f"_c{place}" for place, name in enumerate(names)))


def separator_of_path(path: str) -> str:
    """Return the separator of a file's values, by its ending."""
    return "\t" if ".tsv" in path.rpartition("/")[2] else ","


def fold_names(names: Sequence[str]) -> list[str]:
    """Return names in lower case, as Spark compares them."""
    return [name.lower() for name in names]


def has_name_twice(names: Sequence[str]) -> bool:
    """Return whether a name occurs twice, in any case."""
    return len(set(fold_names(names))) < len(names)


def doubled_header_errors(headers: Mapping[str, CsvHeader]) -> dict[str, BadFile]:
    """Return the error for each file whose header names a column twice, by path."""
    return {
        path: bad_header_error(path, (), header.names)
        for path, header in headers.items()
        if has_name_twice(header.names)
    }


def header_error(path: str, expected: Sequence[str], header: CsvHeader, *, may_merge: bool) -> BadFile | None:
    """Return the error for a header that differs from the expected columns, in any case; else None.

    Args:
        path: the file's path.
        expected: the columns, in their order.
        header: the file's header.
        may_merge: whether the dataflow could accept other columns with ``schema_mode: merge``.
    """
    if fold_names(expected) == fold_names(header.names):
        return None
    return bad_header_error(path, expected, header.names, may_merge=may_merge)
