"""Rows with times and units in a database and in the lake, and a filter by extent in Python."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from partitions.window.extent import Extent
from scripts.postgres import Postgres

ZONE = ZoneInfo("Europe/Berlin")
TEXTS = [
    "a",
    "A",
    "a ",
    "x'y",
    "b\\s",
    "\\'",
    "ü€𝄞",
    "",
    "%",
    '"',
    "1",
    "new\nline",
    "{start}",
    "'; drop table t --",
    None,
]
WHOLES = [0, 1, -1, 2**40, None]
NUMBERS = [Decimal("1.50"), Decimal("-2.00"), None]
FLAGS = [True, False, None]

SPRING, AUTUMN = datetime(2024, 3, 30, 12, tzinfo=UTC), datetime(2024, 10, 26, 12, tzinfo=UTC)
"""Half a day before clocks are changed, which they are an hour after midnight in UTC."""
HOURS = [
    int((start + timedelta(hours=hour)).timestamp()) * 1000
    for start in (SPRING, AUTUMN)
    for hour in range(30)
]
"""Where windows start and end, epoch milliseconds."""


@dataclass(frozen=True)
class Row:
    """One row; ``at`` is an instant, ``wall`` a local time, ``day`` a date."""

    id: int
    at: datetime | None
    wall: datetime | None
    day: date | None
    text: str | None
    whole: int | None
    number: Decimal | None
    flag: bool | None
    due: date | None


COLUMNS = [column.name for column in fields(Row)]
UNITS = {"t": "text", "w": "whole", "n": "number", "f": "flag", "d": "due"}
"""Names of units to columns."""

_SQL = "(id int, at timestamptz, wall timestamp, day date, text text, whole bigint, number numeric(10, 2), flag boolean, due date)"
_ARROW = pa.schema(
    [
        ("id", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("day", pa.date32()),
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("number", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("due", pa.date32()),
    ]
)


def some_rows(seed: int, number: int = 400) -> list[Row]:
    """Return rows on every half hour around both changes of the clock, with NULLs and odd texts."""
    pick = random.Random(seed)
    row_ids = count()

    def row() -> Row:
        moment = pick.choice((SPRING, AUTUMN)) + timedelta(minutes=30 * pick.randrange(60))
        # The hour that spring skips is written by programs that do not know better.
        wall = moment.replace(tzinfo=None) + timedelta(minutes=pick.choice((0, 30, 60)))
        return Row(
            next(row_ids),
            pick.choice((moment, moment, moment, None)),
            pick.choice((wall, wall, wall, None)),
            pick.choice((wall.date(), wall.date(), None)),
            pick.choice(TEXTS),
            pick.choice(WHOLES),
            pick.choice(NUMBERS),
            pick.choice(FLAGS),
            pick.choice((SPRING.date(), wall.date(), None)),
        )

    return [row() for _ in range(number)]


def put_in_database(server: Postgres, table: str, rows: Iterable[Row]) -> None:
    """Create a table of them."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} {_SQL}")
        values = ", ".join(["%s"] * len(COLUMNS))
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} VALUES ({values})",
                [[getattr(row, name) for name in COLUMNS] for row in rows],
            )


def put_in_lake(folder: Path, rows: Iterable[Row]) -> None:
    """Create a Delta table of them."""
    write_deltalake(
        str(folder), pa.Table.from_pylist([vars(row) for row in rows], schema=_ARROW), mode="append"
    )


def ids_in_lake(folder: Path) -> list[int]:
    """Return the ids that a Delta table holds, sorted."""
    return sorted(DeltaTable(str(folder)).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


def meant(
    rows: Iterable[Row], extents: Sequence[Extent], column: str | None, units: bool = True
) -> list[int]:
    """Return the ids of the rows in an extent, by a filter in Python."""
    return [row.id for row in rows if any(_in(row, extent, column, units) for extent in extents)]


def _in(row: Row, extent: Extent, column: str | None, units: bool) -> bool:
    timely = column is None or extent.lower is None or _timely(getattr(row, column), extent)
    return timely and (not units or any(_of(row, unit) for unit in extent.units))


def _timely(value: Any, extent: Extent) -> bool:
    assert extent.lower is not None
    assert extent.upper is not None
    if value is None:
        return False
    if isinstance(value, datetime):
        # A local time that is there twice is of the second pass, as fold=1 says.
        aware = value if value.tzinfo else value.replace(tzinfo=ZONE, fold=1)
        return extent.lower <= aware.timestamp() * 1000 < extent.upper
    first, last = (datetime.fromtimestamp(ms / 1000, ZONE).date() for ms in (extent.lower, extent.upper))
    return bool(first <= value < last)


def _of(row: Row, unit: Any) -> bool:
    return all(getattr(row, UNITS[name]) == value for name, value in unit.items())
