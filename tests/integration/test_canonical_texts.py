"""Canonical texts: a database and Spark write the same one for each value that a run loads."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from partitions.predicate import EVERYTHING
from partitions.reconcile.families import family_of, read_canonical, type_in_table
from partitions.sources.database_types import ColumnType
from resources.reconcile.canonical.spark import SPARK_TEXTS
from resources.reconcile.database_side import TEXTS
from resources.sources.jdbc.source import JdbcRows
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.database_types import CASES, OWN_TYPES
from tests.support.databases import DatabaseRows, rows_of
from tests.support.mariadb import MariaDB

pytestmark = [pytest.mark.postgres, pytest.mark.each_case]

ROWS = 60
Draw = Callable[[random.Random], Any]


def text_of(draw: random.Random, longest: int = 12) -> str:
    """Any text that both databases hold: commas, blanks at both ends, marks of canonical texts, all planes."""
    odd = [
        "",
        ",",
        ",,",
        "~",
        "=",
        ";",
        "[",
        "]",
        " ",
        "\n",
        "\t",
        "\\",
        "'",
        '"',
        "\x01",
        "\x7f",
        "é",
        "e\u0301",
        "\U0001f600",
        "\uffff",
        "0",
        "1.50",
    ]
    return "".join(
        draw.choice(odd) if draw.random() < 0.6 else chr(draw.randrange(1, 0xD800)) for _ in range(draw.randrange(longest))
    )  # fmt: skip


def double_of(draw: random.Random) -> float:
    """Any finite double: all exponents, powers of two, and zeros of both signs."""
    if draw.random() < 0.3:
        return draw.choice([0.0, -0.0, 1.0, -(2.0 ** draw.randrange(-1074, 1023)), 5e-324, 0.1, 1e22])
    while True:
        (value,) = struct.unpack(">d", draw.randbytes(8))
        if value == value and abs(value) != float("inf"):
            return float(value)


def decimal_of(digits: int, scale: int) -> Draw:
    """Any decimal of these digits, many of them short."""
    return lambda draw: Decimal(draw.randrange(-(10 ** draw.randrange(1, digits)), 10 ** draw.randrange(1, digits))).scaleb(-scale)  # fmt: skip


def moment_of(draw: random.Random) -> datetime:
    """Any time that a database's instant holds, most with zeros at the end of the fraction."""
    micros = draw.choice([0, 1, 500_000, 120_000, draw.randrange(10**6)])
    return datetime(1970, 1, 2, tzinfo=UTC) + timedelta(seconds=draw.randrange(2**31 - 10**6), microseconds=micros)  # fmt: skip


def local_of(draw: random.Random) -> datetime:
    """Any time of the years 1 to 9999."""
    micros = draw.choice([0, 100_000, draw.randrange(10**6)])
    return datetime(1, 1, 1) + timedelta(days=draw.randrange(3_650_000), seconds=draw.randrange(86_400), microseconds=micros)  # noqa: DTZ001  # fmt: skip


def day_of(draw: random.Random) -> date:
    """Any day of the years 1 to 9999."""
    return local_of(draw).date()


def list_of(draw_one: Draw) -> Draw:
    """Any list, with NULLs."""
    return lambda draw: [None if draw.random() < 0.2 else draw_one(draw) for _ in range(draw.randrange(4))]


def whole_of(bits: int) -> Draw:
    """Any whole number with a sign."""
    return lambda draw: draw.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) >> draw.randrange(bits)


def json_of(draw: random.Random) -> str:
    """Any small object."""
    return json.dumps({text_of(draw, 3).replace("\x00", ""): [draw.random(), None, text_of(draw, 4)]})


POSTGRESQL: Mapping[str, Draw] = {
    "smallint": whole_of(16),
    "bigint": whole_of(64),
    "boolean": lambda draw: draw.random() < 0.5,
    "real": lambda draw: struct.unpack(">f", struct.pack(">f", draw.uniform(-1e6, 1e6)))[0],
    "double precision": double_of,
    "numeric(12,2)": decimal_of(12, 2),
    "numeric(38,10)": decimal_of(38, 10),
    "numeric": decimal_of(20, 6),
    "text": text_of,
    "char(5)": lambda draw: text_of(draw)[:5],
    "bytea": lambda draw: draw.randbytes(draw.randrange(6)),
    "date": day_of,
    "timestamp": local_of,
    "timestamptz": moment_of,
    "time": lambda draw: local_of(draw).time(),
    "uuid": lambda draw: UUID(bytes=draw.randbytes(16)),
    "json": json_of,
    "jsonb": json_of,
    "bigint[]": list_of(whole_of(64)),
    "text[]": list_of(text_of),
    "double precision[]": list_of(double_of),
    "numeric(12,2)[]": list_of(decimal_of(12, 2)),
    "boolean[]": list_of(lambda draw: draw.random() < 0.5),
    "timestamptz[]": list_of(moment_of),
    "bytea[]": list_of(lambda draw: draw.randbytes(3)),
    "int[][]": lambda draw: [[1, None], [draw.randrange(9), 2]] if draw.random() < 0.5 else [[1], [2]],
}
MARIADB: Mapping[str, Draw] = {
    "smallint": whole_of(16),
    "bigint": whole_of(64),
    "bigint unsigned": lambda draw: draw.randrange(2**64),
    "tinyint(1)": whole_of(8),
    "bit(12)": lambda draw: draw.randrange(2**12),
    "float": lambda draw: struct.unpack(">f", struct.pack(">f", draw.uniform(-1e6, 1e6)))[0],
    "double": double_of,
    "decimal(12,2)": decimal_of(12, 2),
    "decimal(38,10)": decimal_of(38, 10),
    "text CHARACTER SET utf8mb4": text_of,
    "varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": lambda draw: text_of(draw)[:20],
    "varchar(20) CHARACTER SET latin1": lambda draw: draw.choice(["ä,", " é ", "", "~"]),
    "varbinary(9)": lambda draw: draw.randbytes(draw.randrange(6)),
    "date": day_of,
    "datetime(6)": local_of,
    "datetime(3)": lambda draw: local_of(draw).replace(microsecond=draw.choice([0, 500_000, 120_000])),
    "timestamp(6) NULL": lambda draw: moment_of(draw).replace(tzinfo=None),
    "time(6)": lambda draw: timedelta(
        seconds=draw.randrange(-3_000_000, 3_000_000), microseconds=draw.choice([0, 5])
    ),
    "json": json_of,
    "uuid": lambda draw: str(UUID(bytes=draw.randbytes(16))),
}
DRAWN = {"postgresql": POSTGRESQL, "mariadb": MARIADB}


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest) -> DatabaseRows:
    """A table of each database."""
    rows = rows_of(cast("Postgres | MariaDB", request.getfixturevalue(request.param)))
    if rows.scheme == "postgresql" and not rows.ask("SELECT 1 FROM pg_type WHERE typname = 'pair'"):
        for statement in OWN_TYPES:
            if " mood " not in statement or not rows.ask("SELECT 1 FROM pg_type WHERE typname = 'mood'"):
                rows.ask(statement)
    return rows


def put(rows: DatabaseRows, table: str, *statements: tuple[str, list[Any]]) -> None:
    """Insert rows in a session that takes what a strict one refuses."""
    server = cast("Any", rows).server
    with server.session() as session, session.cursor() as cursor:
        if rows.scheme == "mariadb":
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for names_and_values, values in statements:
            cursor.execute(f"INSERT INTO {table} {names_and_values}", values or None)
        session.commit()


def texts_of_both(
    rows: DatabaseRows, table: str, folder: Path, engine: SparkEngine
) -> tuple[Mapping[str, ColumnType], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the types, and the canonical texts of all rows by id: of the database, and of Spark over a run's rows."""
    by_id = {"type": "column", "columns": ["id"]}
    flow = rows.flow(folder, engine, source={"table": table}, watermark=by_id)
    source = flow.feed.platform.source(flow.feed.dataflow)
    assert isinstance(source, JdbcRows)
    spark = flow.feed.platform.engine(flow.feed.dataflow).session()
    with source.sql_snapshot() as snapshot:
        dialect = snapshot.database.dialect
        texts = [
            TEXTS[dialect].value_text(dialect.name(name), type_) for name, type_ in snapshot.types.items()
        ]
        of_database = list(snapshot.database.ask(f"SELECT {', '.join(texts)} FROM {snapshot.relation}"))
    frame = source.read_rows(spark, [EVERYTHING], source.pin(spark))
    in_table = {
        field["name"]: type_in_table(field["type"]) for field in json.loads(frame.schema.json())["fields"]
    }
    written = []
    for name, type_ in snapshot.types.items():
        table_type = in_table[name]
        assert table_type is not None
        is_time = type_.is_time_of_day
        written.append(SPARK_TEXTS.value_text(f"`{name}`", ColumnType(table_type.data_type, dimensions=table_type.dimensions, is_time_of_day=is_time)))  # fmt: skip
    of_spark = [tuple(row) for row in frame.selectExpr(*written).collect()]
    return snapshot.types, sorted(of_database, key=_id), sorted(of_spark, key=_id)


def _id(row: tuple[Any, ...]) -> int:
    return int(row[0])


def assert_alike(
    types: Mapping[str, ColumnType], of_database: list[tuple[Any, ...]], of_spark: list[tuple[Any, ...]]
) -> None:
    """Compare column by column, so that a failure names its column and value."""
    assert len(of_database) == len(of_spark) > 0
    for place, (name, type_) in enumerate(types.items()):
        texts = [row[place] for row in of_database]
        assert (name, type_, texts) == (name, type_, [row[place] for row in of_spark])


def test_each_type_of_the_docs_has_one_text(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    cases = {f"c{number}": case for number, case in enumerate(CASES[rows.scheme])}
    table, count = f"types_{uuid4().hex[:8]}", max(len(case.values) for case in cases.values())
    columns = ", ".join(f"{name} {case.declared}" for name, case in cases.items())
    rows.ask(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
    statements: list[tuple[str, list[Any]]] = []
    for number in range(count + 1):  # the last row is NULL in all columns
        values = {name: case.values[number][0] for name, case in cases.items() if number < len(case.values)}
        statements.append((f"({', '.join(['id', *values])}) VALUES ({', '.join([str(number), *values.values()])})", []))  # fmt: skip
    put(rows, table, *statements)
    types, of_database, of_spark = texts_of_both(rows, table, tmp_path, engine)
    assert all(family_of(type_) for type_ in types.values())
    assert_alike(types, of_database, of_spark)
    for place, (name, case) in enumerate(cases.items(), 1):
        distinct = {row[place] for row in of_database[: len(case.values)]}
        assert (name, len(distinct)) == (name, len({repr(value) for _, value in case.values}))


def test_random_values_have_one_text_each(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    drawn = {
        f"c{number}": (declared, draw) for number, (declared, draw) in enumerate(DRAWN[rows.scheme].items())
    }
    table, draw = f"types_{uuid4().hex[:8]}", random.Random(20)
    columns = ", ".join(f"{name} {declared}" for name, (declared, _) in drawn.items())
    rows.ask(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
    values = [
        [number, *(None if draw.random() < 0.05 else value_of(draw) for _, value_of in drawn.values())]
        for number in range(ROWS)
    ]
    places = ", ".join(["%s"] * (len(drawn) + 1))
    put(rows, table, *[(f"VALUES ({places})", row) for row in values])
    types, of_database, of_spark = texts_of_both(rows, table, tmp_path, engine)
    assert_alike(types, of_database, of_spark)
    for name in ("c1", "c13"):  # what a key reads back is the value
        place = list(types).index(name)
        family = family_of(types[name])
        assert family is not None
        written = [row[place] for row in of_database]
        assert [text == "~" for text in written] == [row[place] is None for row in values]
        assert len({read_canonical(text, family) for text in written}) == len(set(written))
