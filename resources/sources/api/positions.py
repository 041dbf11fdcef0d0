"""The origin of staged records, so that an error about a line names the API's page and record."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from partitions.api.document import JsonRecord
from resources.staging import StagedLines

_LINE = re.compile(r"(?:^|(?<=; ))line (\d+): ")


class LocatedRecord(NamedTuple):
    """A record with its position.

    Attributes:
        where: the request and the page, for errors.
        page: the number of the page, from 1.
        number: the number of the record in the page, from 1.
        record: the record.
    """

    where: str
    page: int
    number: int
    record: JsonRecord


class _RecordSpan(NamedTuple):
    """Consecutive records of one page in a staged file, starting at a line."""

    line: int
    where: str
    page: int
    number: int


Positions = Mapping[str, Sequence[_RecordSpan]]
"""By the path of a staged file: its spans, in order."""


class StagedRecords:
    """Writes records as staged lines, and stores their origin."""

    def __init__(self, lines: StagedLines) -> None:
        """Write into files that stay open while records arrive."""
        self._lines = lines
        self._spans: list[list[_RecordSpan]] = []
        self._line = 0
        self._last_record: tuple[str, int] = ("", 0)

    def write(self, located: LocatedRecord) -> None:
        """Write a record.

        Raises:
            SourceError: the lake cannot be written.
        """
        if len(self._spans) == len(self._lines.files):
            self._spans.append([])
            self._line, self._last_record = 0, ("", 0)
        self._line += 1
        if self._last_record != (located.where, located.number - 1):
            self._spans[-1].append(_RecordSpan(self._line, located.where, located.page, located.number))
        self._last_record = (located.where, located.number)
        self._lines.write(located.record.text.encode())

    @property
    def positions(self) -> Positions:
        """The origin of the records of each file; complete once the files are closed."""
        return {file.path: spans for file, spans in zip(self._lines.files, self._spans, strict=True)}


def with_positions(why: str, request: str, spans: Sequence[_RecordSpan]) -> str:
    """Return a fault of a staged file as a fault of answers: lines become pages and records.

    Args:
        why: the fault; ``line N: …`` refers to a record.
        request: named if the fault refers to no line.
        spans: the file's spans.
    """
    first = _LINE.match(why)
    where = _find_span(spans, int(first[1])).where if first and spans else request

    def record(line: re.Match[str]) -> str:
        if not spans:
            return f"record {line[1]}: "
        span = _find_span(spans, int(line[1]))
        page = "" if span.where == where else f"page {span.page}, "
        return f"{page}record {span.number + int(line[1]) - span.line}: "

    return f"{where}: {_LINE.sub(record, why)}"


def _find_span(spans: Sequence[_RecordSpan], line: int) -> _RecordSpan:
    return spans[bisect_right(spans, line, key=lambda span: span.line) - 1]
