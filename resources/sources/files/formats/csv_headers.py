"""The headers of CSV files: the first record of each, the form that it is read in, and whether it names the columns that it must."""

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
from resources.sources.files.failures import bad_header
from resources.sources.files.lines import beginning

_HEADERS_KEPT = 10_000
_THREADS = 16


class Header(NamedTuple):
    """The first record of a file.

    Attributes:
        text: as it stands there.
        names: of the columns; what has no name there is named by its place, as Spark does.
    """

    text: str
    names: tuple[str, ...]


class CsvHeaders:
    """The headers of the files of a dataflow; those that were read last are kept: schemas, checks and reads ask for them."""

    def __init__(self, place: Place, options: Mapping[str, Option]) -> None:
        """Read none yet.

        Args:
            place: the root of the files.
            options: of the source.
        """
        self._place, self._options = place, options
        self.first_record = lru_cache(_HEADERS_KEPT)(self._read_first_record)
        self._line_breaks: dict[str, str] = {}

    @property
    def are_there(self) -> bool:
        """Whether the first record of a file names its columns."""
        return self.form("").header

    def form(self, path: str) -> CsvForm:
        """Return the form of a file, as its name and the options say."""
        return CsvForm.of(self._options, separator(path))

    def form_with_break(self, path: str) -> CsvForm:
        """Return the form of a file, with its own line break if records are told apart in its whole text only."""
        form = self.form(path)
        if not form.is_whole or form.line_break or not path:
            return form
        if path not in self._line_breaks:
            text = beginning(self._place, path, form.encoding or "utf-8")
            self._line_breaks[path] = form.first_break(text)
        return replace(form, line_break=self._line_breaks[path])

    def of(self, files: Sequence[SourceFile]) -> dict[str, Header]:
        """Return the headers of files that have one."""
        if not self.are_there:
            return {}
        return {file.path: header for file, header in self._first_records(files) if header is not None}

    def made_up(self, files: Sequence[SourceFile]) -> dict[str, Header]:
        """Return the names that Spark gives to the columns of files without a header."""
        return {
            file.path: Header("", tuple(f"_c{place}" for place in range(len(record.names))))
            for file, record in self._first_records(files)
            if record is not None
        }

    def _first_records(self, files: Sequence[SourceFile]) -> list[tuple[SourceFile, Header | None]]:
        """The first record of each file, read side by side."""
        with ThreadPoolExecutor(min(_THREADS, max(1, len(files)))) as pool:
            return list(zip(files, pool.map(self.first_record, files), strict=True))

    def _read_first_record(self, file: SourceFile) -> Header | None:
        """The first record of a file; None if there is none."""
        form = self.form(file.path)
        record = form.first_record(beginning(self._place, file.path, form.encoding or "utf-8"))
        if record is None:
            return None
        text, names = record
        return Header(text, tuple(name or f"_c{place}" for place, name in enumerate(names)))


def separator(path: str) -> str:
    """Return what separates the values of a file, as its ending says."""
    return "\t" if ".tsv" in path.rpartition("/")[2] else ","


def folded(names: Sequence[str]) -> list[str]:
    """Return names as Spark compares them."""
    return [name.lower() for name in names]


def has_name_twice(names: Sequence[str]) -> bool:
    """Return whether a name stands twice, in any case."""
    return len(set(folded(names))) < len(names)


def headers_with_name_twice(headers: Mapping[str, Header]) -> dict[str, BadFile]:
    """Return why files are bad whose header names a column twice, by path."""
    return {
        path: bad_header(path, (), header.names)
        for path, header in headers.items()
        if has_name_twice(header.names)
    }


def other_header(path: str, expected: Sequence[str], header: Header, *, takes: bool) -> BadFile | None:
    """Compare a file's header with the columns that it must have, in any case of letters; return why it is another one, None if it is not.

    Args:
        path: of the file.
        expected: the columns, in their order.
        header: of the file.
        takes: whether the dataflow could take other columns with ``schema_mode: merge``.
    """
    if folded(expected) == folded(header.names):
        return None
    return bad_header(path, expected, header.names, takes=takes)
