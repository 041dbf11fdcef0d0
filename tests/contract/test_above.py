"""What every source promises that is read above a column watermark (docs/reference/columns.md)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.column.predicates import ColumnRange, rows_in_ranges
from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.predicate import AllOf, Among, AnyOf, Between, Predicate
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.sources.files.rows import FileRows
from resources.sources.registry import open_source
from resources.sources.source import ReadsAbove, RowSource, TellsCuts
from resources.staging import Staging
from resources.user_functions import UserCode
from scripts import postgres as pg
from tests.contract.capabilities import pytest_generate_tests
from tests.support import functions
from tests.support.api import ITEMS, Api, status
from tests.support.iceberg import foreign_table
from tests.support.mariadb import MariaDB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from resources.sources.files.source import FileSource

__all__ = ["pytest_generate_tests"]

NOW = datetime(2026, 6, 1, tzinfo=UTC)
COLUMNS = ("id", "instant", "local", "day", "amount", "word", "other")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def row(number: int, **values: Any) -> dict[str, Any]:
    """A row whose columns grow with its number."""
    made = {
        "id": number,
        "instant": NOON + timedelta(microseconds=number),
        "local": datetime.fromisoformat("2026-03-29T02:30:00")
        + timedelta(microseconds=number),  # a hole in Berlin
        "day": date(2026, 1, 1) + timedelta(days=number),
        "amount": Decimal(number) / 100,
        "word": f"w{number:02d}",
        "other": number,
    }
    return made | values


class Subject(ABC):
    """A table with the columns ``COLUMNS``; all but ``word`` and ``other`` can be looked up in an index, if the source has some."""

    spark: SparkSession

    @property
    @abstractmethod
    def source(self) -> ReadsAbove:
        """The source, opened anew."""

    @abstractmethod
    def put(self, *rows: dict[str, Any]) -> None:
        """Add rows."""

    @abstractmethod
    def remove(self) -> None:
        """The table goes away."""

    def ids(self, *parts: Predicate) -> list[int]:
        """The ids of the rows of some parts."""
        source = self.source
        pinned = pinned_by(source, self.spark)
        return sorted(found["id"] for found in source.read_rows(self.spark, parts, pinned).collect())

    def _open(self, source: dict[str, Any], given: Any, staging: Staging | None = None) -> ReadsAbove:
        dataflow = Dataflow.model_validate(
            {"name": "flow", "source": source, "watermark": {"type": "column", "columns": ["id"]}}
        )
        return cast("ReadsAbove", open_source(dataflow, given, staging or Staging(Place("/nowhere"))))


def pinned_by(source: ReadsAbove, spark: SparkSession) -> str:
    """The schema of a source."""
    pinned = cast("RowSource", source).pin(spark)
    assert pinned is not None
    return pinned


class _PostgreSQL(Subject):
    def __init__(self, server: pg.Postgres) -> None:
        self.server, self.table = server, f"t_{uuid4().hex[:8]}"
        server.ask(
            "CREATE TABLE {name} (id bigint, instant timestamptz, local timestamp, day date, amount numeric(20, 2), word text, other int)",
            name=self.table,
        )
        for column in COLUMNS[:5]:
            server.ask("CREATE INDEX ON {name} ({column})", name=self.table, column=column)

    @property
    def source(self) -> ReadsAbove:
        url = f"jdbc:postgresql://127.0.0.1:{self.server.port}/postgres"
        connection = JdbcConnection.parse(url, "postgres", self.server.password)
        return self._open({"type": "jdbc", "connection": "erp", "table": self.table}, connection)

    def put(self, *rows: dict[str, Any]) -> None:
        for each in rows:
            self.server.ask(
                "INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, %s, %s)", *each.values(), name=self.table
            )

    def remove(self) -> None:
        self.server.ask("DROP TABLE {name}", name=self.table)


class _MariaDB(Subject):
    def __init__(self, server: MariaDB) -> None:
        self.server, self.table = server, f"t_{uuid4().hex[:8]}"
        server.ask(
            f"CREATE TABLE {self.table} (id bigint, instant timestamp(6) NULL, local datetime(6), day date, amount decimal(20, 2),"
            " word varchar(50) CHARACTER SET utf8mb4, other int, KEY (id), KEY (instant), KEY (local), KEY (day), KEY (amount))"
        )

    @property
    def source(self) -> ReadsAbove:
        return self._open({"type": "jdbc", "connection": "erp", "table": self.table}, self.server.connection)

    def put(self, *rows: dict[str, Any]) -> None:
        for each in rows:
            values = [
                value.replace(tzinfo=None) if isinstance(value, datetime) else value
                for value in each.values()
            ]
            self.server.ask(f"INSERT INTO {self.table} VALUES ({', '.join(['%s'] * len(values))})", *values)

    def remove(self) -> None:
        self.server.ask(f"DROP TABLE {self.table}")


class _Table(Subject):
    _SCHEMA = pa.schema(
        [
            ("id", pa.int64()),
            ("instant", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("day", pa.date32()),
            ("amount", pa.decimal128(20, 2)),
            ("word", pa.string()),
            ("other", pa.int32()),
        ]
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_deltalake(str(folder), self._SCHEMA.empty_table())

    @property
    def source(self) -> ReadsAbove:
        return self._open({"type": "table", "table": "bronze/rows"}, Place(str(self.folder)))

    def put(self, *rows: dict[str, Any]) -> None:
        for each in rows:
            write_deltalake(str(self.folder), pa.Table.from_pylist([each], self._SCHEMA), mode="append")

    def remove(self) -> None:
        self.folder.rename(self.folder.with_suffix(".gone"))


class _Iceberg(_Table):
    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.table = folder, foreign_table(spark, folder)
        self.spark = spark
        spark.createDataFrame([], _Python.DDL).writeTo(self.table).using("iceberg").create()

    def put(self, *rows: dict[str, Any]) -> None:
        for each in rows:
            found = self.spark.createDataFrame([tuple(each[name] for name in COLUMNS)], _Python.DDL)
            found.writeTo(self.table).append()


class _Python(Subject):
    """A function that tells the highest value, and ignores what it is asked for."""

    DDL = "id long, instant timestamp, local timestamp_ntz, day date, amount decimal(20, 2), word string, other int"

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "rows.pickle"
        functions.put(self.path)

    @property
    def source(self) -> ReadsAbove:
        source = {
            "type": "python",
            "function": "tests.support.functions:rows",
            "highest": "tests.support.functions:highest",
            "params": {"path": str(self.path)},
            "schema": self.DDL,
        }
        return self._open(source, UserCode(self.folder), Staging(Place(str(self.folder / "staging"))))

    def put(self, *rows: dict[str, Any]) -> None:
        functions.put(self.path, *rows)

    def remove(self) -> None:
        self.path.unlink()


class _Api(Subject):
    DDL = "id long, instant timestamp, local timestamp_ntz, day date, amount decimal(20, 2), word string, other int"

    def __init__(self, server: Api, folder: Path) -> None:
        self.server, self.folder = server, folder

    @property
    def source(self) -> ReadsAbove:
        given = {
            "type": "api",
            "connection": "shop",
            "path": "/rows",
            "records": ITEMS,
            "paging": {"type": "offset", "param": "offset"},
            "schema": self.DDL,
        }
        return self._open(given, self.server.connection(), Staging(Place(str(self.folder))))

    def put(self, *rows: dict[str, Any]) -> None:
        for each in rows:
            texts = {name: value.isoformat() for name, value in each.items() if isinstance(value, date)}
            numbers = {name: float(value) for name, value in each.items() if isinstance(value, Decimal)}
            self.server.rows.append(each | texts | numbers)

    def remove(self) -> None:
        self.server.faults.extend([status(404)] * 10)


class _Files(Subject):
    """NDJSON, a file for each row."""

    DDL = "id long, instant timestamp, local timestamp_ntz, day date, amount decimal(20, 2), word string, other int"

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        folder.mkdir()

    @property
    def source(self) -> ReadsAbove:
        dataflow = Dataflow.model_validate(
            {
                "name": "flow",
                "source": {"type": "files", "path": "./rows", "format": "ndjson", "schema": self.DDL},
                "watermark": {"type": "column", "columns": ["id"]},
            }
        )
        staging = Staging(Place(str(self.folder.parent / "staging")))
        files = cast("FileSource", open_source(dataflow, Place(str(self.folder)), staging))
        return FileRows(dataflow, files, lambda: self.spark, lambda: None, lambda: None)

    def put(self, *rows: dict[str, Any]) -> None:
        for each in rows:
            self.count += 1
            text = json.dumps({name: value if value is None else str(value) for name, value in each.items()})
            for name in ("id", "amount", "other"):
                text = text.replace(f'"{name}": "{each[name]}"', f'"{name}": {each[name]}')
            (self.folder / f"{self.count}.ndjson").write_text(text)

    def remove(self) -> None:
        self.folder.rename(self.folder.with_suffix(".gone"))


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Subject:
    make: dict[str, Callable[[], Subject]] = {
        "postgresql": lambda: _PostgreSQL(request.getfixturevalue("postgres")),
        "mariadb": lambda: _MariaDB(request.getfixturevalue("mariadb")),
        "api": lambda: _Api(request.getfixturevalue("server"), tmp_path),
        "python": lambda: _Python(tmp_path),
        "table": lambda: _Table(tmp_path / "rows"),
        "iceberg": lambda: _Iceberg(tmp_path / "rows", spark),
        "files": lambda: _Files(tmp_path / "rows"),
    }
    made = make[request.param]()
    made.spark = spark
    return made


def test_rows_between_bounds_are_read_to_the_microsecond_and_the_last_digit(subject: Subject) -> None:
    subject.put(*map(row, range(1, 5)))
    low, high = row(1), row(3)
    for column in COLUMNS[:6]:
        found = [
            subject.ids(
                rows_in_ranges(
                    [
                        ColumnRange(
                            column, low[column], high[column], lower_inclusive=lower, upper_inclusive=upper
                        )
                    ]
                )
            )
            for lower, upper in ((False, True), (True, False))
        ]
        assert (column, found) == (column, [[2, 3], [1, 2]])


@pytest.mark.full
def test_a_bound_that_the_column_cannot_hold_is_compared_exactly(subject: Subject) -> None:
    subject.put(*map(row, range(1, 4)))
    for bound, above in ((Decimal("0.015"), [2, 3]), (0, [1, 2, 3]), (1, []), (Decimal("1E+30"), [])):
        rows = Between("amount", bound, None, lower_inclusive=False)
        assert (bound, subject.source.holds_any(rows), subject.ids(rows)) == (bound, bool(above), above)
        assert subject.source.highest("id", rows) == (3 if above else None)
        below = Between("amount", None, bound, upper_inclusive=True)
        assert (bound, subject.ids(below)) == (bound, [number for number in (1, 2, 3) if number not in above])


def test_text_is_compared_by_bytes(subject: Subject) -> None:
    words = ["Z", "a", "b", "ä", "𝄞", "'; DROP TABLE x; --", "\\"]
    subject.put(*[row(number, word=word) for number, word in enumerate(words)])
    for bound in words:
        expected = [number for number, word in enumerate(words) if word.encode() > bound.encode()]
        assert (bound, subject.ids(Between("word", bound, None, lower_inclusive=False))) == (bound, expected)


def test_columns_are_joined_by_or_and_rows_without_a_value_match_by_the_others(subject: Subject) -> None:
    subject.put(row(1), row(2, id=2, other=None), row(3, day=None), row(4, day=None, other=None))
    asked = [ColumnRange("day", date(2026, 1, 2), None), ColumnRange("other", 2, None)]
    assert subject.ids(rows_in_ranges(asked)) == [2, 3]
    both = AllOf((Among("day", (None,)), Among("other", (None,))))
    assert subject.ids(AnyOf((rows_in_ranges(asked), both))) == [2, 3, 4]


def test_parts_are_read_together_each_row_once(subject: Subject) -> None:
    subject.put(*map(row, range(1, 7)))
    parts = [rows_in_ranges([ColumnRange("id", low, high)]) for low, high in ((None, 2), (2, 4), (4, None))]
    assert subject.ids(*parts) == [1, 2, 3, 4, 5, 6]


def test_no_part_is_no_row_of_the_same_columns(subject: Subject) -> None:
    subject.put(row(1))
    source = subject.source
    pinned = pinned_by(source, subject.spark)
    none = source.read_rows(subject.spark, [], pinned)
    some = source.read_rows(subject.spark, [rows_in_ranges([ColumnRange("id", 0, None)])], pinned)
    assert (none.dtypes, none.count()) == (some.dtypes, 0)


def test_it_knows_whether_there_is_any_row(subject: Subject) -> None:
    subject.put(row(1), row(2, other=None))
    source = subject.source
    asked: Sequence[Predicate] = (
        Between("id", 1, None, lower_inclusive=False),
        Between("id", 2, None, lower_inclusive=False),
        Among("other", (None,)),
    )
    assert [source.holds_any(rows) for rows in asked] == [True, False, True]


def test_it_looks_up_the_highest_value_of_some_rows(subject: Subject) -> None:
    subject.put(row(1, word="Z"), row(2, word="a"), row(3, word="ä"), row(4, word=None, other=None))
    source = subject.source
    below = Between("id", None, 2, upper_inclusive=True)
    found = [source.highest(column, below) for column in (*COLUMNS[1:5], "word", "other")]
    assert found == [row(2)[column] for column in COLUMNS[1:5]] + ["a", 2]
    above = Between("id", 3, None)
    assert [source.highest(column, above) for column in ("word", "other")] == ["ä", 3]
    assert source.highest("word", Between("id", 4, None)) is None


def test_it_tells_its_clock_and_what_its_columns_hold(subject: Subject) -> None:
    seen = subject.source.observe(COLUMNS, NOW)
    assert seen.now.tzinfo is not None
    assert seen.now == NOW or abs(seen.now - datetime.now(UTC)) < timedelta(minutes=5)
    kinds = ("whole", "instant", "local", "day", "number", "text", "whole")
    assert dict(seen.kinds) == dict(zip(COLUMNS, kinds, strict=True))


def test_the_highest_value_of_an_indexed_column_is_known(subject: Subject) -> None:
    indexed = COLUMNS[:5]
    assert subject.source.observe(COLUMNS, NOW).maxima == dict.fromkeys(indexed)
    subject.put(row(1), row(3), row(2))
    seen = subject.source.observe(COLUMNS, NOW)
    assert seen.maxima == {column: row(3)[column] for column in indexed}


@pytest.mark.full
def test_a_range_is_cut_into_parts_of_about_as_many_rows(subject: Subject) -> None:
    subject.put(*map(row, range(1, 9)))
    first, last = row(1)["day"], row(8)["day"]
    source = subject.source
    assert isinstance(source, TellsCuts)
    cuts = source.cuts(ColumnRange("day", first, last), 2, 10)
    assert list(cuts) == sorted(set(cuts))
    counts = [
        len(subject.ids(rows_in_ranges([ColumnRange("day", low, high)])))
        for low, high in pairwise([first, *cuts, last])
    ]
    assert (sum(counts), max(counts) <= 3) == (7, True)
    assert len(source.cuts(ColumnRange("day", None, last), 1, 3)) == 3


def test_a_column_without_an_index_is_neither_scanned_nor_cut(subject: Subject) -> None:
    subject.put(*map(row, range(1, 9)))
    source = subject.source
    assert "other" not in source.observe(["other"], NOW).maxima
    assert not isinstance(source, TellsCuts) or list(source.cuts(ColumnRange("other", None, 8), 2, 10)) == []


def test_a_source_that_is_gone_is_an_error_and_never_no_rows(subject: Subject) -> None:
    subject.remove()
    source = subject.source
    with pytest.raises(SourceError):
        source.holds_any(Between("id", 1, None))


def test_a_source_that_is_gone_is_an_error_when_it_is_observed(subject: Subject) -> None:
    subject.remove()
    with pytest.raises(SourceError):
        subject.source.observe(["id"], NOW)
