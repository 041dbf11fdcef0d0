"""Where staged records came from: the page and the place in it, so that an error about a line names what the API has sent."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from partitions.api.document import JsonRecord
from resources.staging import StagedLines

_LINE = re.compile(r"(?:^|(?<=; ))line (\d+): ")


class Sent(NamedTuple):
    """A record with its position.

    Attributes:
        where: the request and the page, for errors.
        page: its number, from 1.
        number: of the record in the page, from 1.
        record: itself.
    """

    where: str
    page: int
    number: int
    record: JsonRecord


class _Run(NamedTuple):
    """Records of one page that follow each other in a staged file, from one line on."""

    line: int
    where: str
    page: int
    number: int


Positions = Mapping[str, Sequence[_Run]]
"""By the path of a staged file: its runs, in order."""


class StagedRecords:
    """Writes records as staged lines, and keeps where they came from."""

    def __init__(self, lines: StagedLines) -> None:
        """Write into files that are open as long as the records come."""
        self._lines = lines
        self._runs: list[list[_Run]] = []
        self._line = 0
        self._last: tuple[str, int] = ("", 0)

    def write(self, sent: Sent) -> None:
        """Write a record.

        Raises:
            SourceError: the lake cannot be written.
        """
        if len(self._runs) == len(self._lines.files):
            self._runs.append([])
            self._line, self._last = 0, ("", 0)
        self._line += 1
        if self._last != (sent.where, sent.number - 1):
            self._runs[-1].append(_Run(self._line, sent.where, sent.page, sent.number))
        self._last = (sent.where, sent.number)
        self._lines.write(sent.record.text.encode())

    @property
    def positions(self) -> Positions:
        """Where the records of the files came from, once these are closed."""
        return {file.path: runs for file, runs in zip(self._lines.files, self._runs, strict=True)}


def with_positions(why: str, request: str, runs: Sequence[_Run]) -> str:
    """Return what is wrong with a staged file as what is wrong with answers: the first line that is told tells the page, each its record.

    Args:
        why: what is wrong; ``line N: …`` is about a record.
        request: what is named if no line is told.
        runs: of the file.
    """
    first = _LINE.match(why)
    where = _run_of(runs, int(first[1])).where if first and runs else request

    def record(line: re.Match[str]) -> str:
        if not runs:
            return f"record {line[1]}: "
        run = _run_of(runs, int(line[1]))
        page = "" if run.where == where else f"page {run.page}, "
        return f"{page}record {run.number + int(line[1]) - run.line}: "

    return f"{where}: {_LINE.sub(record, why)}"


def _run_of(runs: Sequence[_Run], line: int) -> _Run:
    return runs[bisect_right(runs, line, key=lambda run: run.line) - 1]
