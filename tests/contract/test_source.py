"""What every source promises to the kinds that read it (docs/explanation/architecture.md, Contracts)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError, SourceError, StrandlineError
from partitions.path.listing_positions import FromBeginning
from partitions.window.extent import Extent
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.sources.files.source import FileSource
from resources.sources.registry import open_source
from resources.sources.source import RowSource, at_version
from resources.staging import Staging
from resources.user_functions import UserCode
from scripts import postgres as pg
from tests.contract.capabilities import pytest_generate_tests
from tests.support import functions
from tests.support.api import ITEMS, Api, status
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pytest_generate_tests"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000


def at(day: int) -> datetime:
    """Noon of a day since the epoch."""
    return EPOCH + timedelta(days=day, hours=12)


class Subject(ABC):
    """A source with a row of an id for each of some days, and what can be asked of it.

    Attributes:
        columns: of its rows, sorted; ``id`` and ``at`` are among them.
    """

    spark: SparkSession
    columns: tuple[str, ...] = ("at", "id")

    @property
    @abstractmethod
    def source(self) -> Any:
        """The source, opened anew."""

    @abstractmethod
    def put(self, *days: int) -> None:
        """A row for each day: its number is the id."""

    @abstractmethod
    def remove(self) -> None:
        """The whole source goes away."""

    @abstractmethod
    def pin(self) -> str:
        """The schema as text."""

    @abstractmethod
    def read(self, days: Sequence[int], pinned: str) -> DataFrame:
        """The rows of some days."""

    @abstractmethod
    def check_schema(self, pinned: str) -> None:
        """Compare the source with what was pinned."""

    def change_column(self) -> None:
        """The id becomes a text."""
        raise NotImplementedError

    def ids(self, *days: int) -> list[int]:
        """The ids of the rows of some days."""
        return sorted(row["id"] for row in self.read(days, self.pin()).select("id").collect())


class _Files(Subject):
    """A file a day."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    @property
    def source(self) -> FileSource:
        definition = {"type": "files", "path": "./landing", "format": "ndjson"}
        dataflow = Dataflow.model_validate(
            {"name": "flow", "source": definition, "watermark": {"type": "path"}}
        )
        return cast("FileSource", open_source(dataflow, Place(str(self.folder)), Staging(Place("/nowhere"))))

    def put(self, *days: int) -> None:
        for day in days:
            (self.folder / f"{day:02d}.ndjson").write_text(
                f'{{"id": {day}, "at": "{at(day).isoformat()}"}}\n'
            )

    def remove(self) -> None:
        self.folder.rename(self.folder.with_suffix(".gone"))

    def pin(self) -> str:
        source = self.source
        return source.pin(self.spark, source.list_above(FromBeginning()).listed.files) or ""

    def read(self, days: Sequence[int], pinned: str) -> DataFrame:
        source = self.source
        listed = source.list_above(FromBeginning()).listed.files
        wanted = {f"{day:02d}.ndjson" for day in days}
        return source.read(self.spark, [file for file in listed if file.path in wanted], pinned)

    def check_schema(self, pinned: str) -> None:
        self.source.check_schema(self.spark, pinned)


class _Rows(Subject):
    """A source that is asked for rows."""

    def read(self, days: Sequence[int], pinned: str) -> DataFrame:
        return self.read_version(days, pinned, None)

    def read_version(self, days: Sequence[int], pinned: str, version: Any) -> DataFrame:
        """The rows of some days, of a version."""
        asked = [Extent(day * DAY, (day + 1) * DAY, ({},)) for day in days]
        return at_version(self.source, version).read(self.spark, asked, pinned)  # type: ignore[no-any-return]

    def pin(self) -> str:
        return str(self.source.pin(self.spark))

    def check_schema(self, pinned: str) -> None:
        self.source.check_schema(self.spark, pinned, "flow")

    def _open(self, source: dict[str, Any], given: Any, staging: Staging | None = None) -> RowSource:
        definition = [{"name": "day", "type": "datetime", "range": {"from": "1970-01-01", "to": "-"}}]
        dataflow = Dataflow.model_validate(
            {
                "name": "flow",
                "source": {**source, "window_column": "at"},
                "watermark": {"type": "window", "definition": definition, "window": "daily"},
                "target": {"load": "merge_overwrite", "replace_by_watermark": True},
            }
        )
        return cast("RowSource", open_source(dataflow, given, staging or Staging(Place("/nowhere"))))


class _Jdbc(_Rows):
    """A table of PostgreSQL."""

    def __init__(self, server: pg.Postgres) -> None:
        self.server, self.table = server, f"t_{uuid4().hex[:8]}"
        server.ask("CREATE TABLE {name} (id bigint, at timestamptz)", name=self.table)

    @property
    def source(self) -> RowSource:
        url = f"jdbc:postgresql://127.0.0.1:{self.server.port}/postgres"
        connection = JdbcConnection.parse(url, "postgres", self.server.password)
        return self._open({"type": "jdbc", "connection": "erp", "table": self.table}, connection)

    def put(self, *days: int) -> None:
        for day in days:
            values = f"({day}, '{at(day).isoformat()}')"
            self.server.ask(f"INSERT INTO {{name}} VALUES {values}", name=self.table)

    def remove(self) -> None:
        self.server.ask("DROP TABLE {name}", name=self.table)

    def change_column(self) -> None:
        self.server.ask("ALTER TABLE {name} ALTER COLUMN id TYPE text", name=self.table)


class _Api(_Rows):
    """An API that is told the day."""

    def __init__(self, server: Api, folder: Path) -> None:
        self.server, self.folder = server, folder

    @property
    def source(self) -> RowSource:
        given = {
            "type": "api",
            "connection": "shop",
            "path": "/rows",
            "records": ITEMS,
            "watermark_param_mapping": {"at": "since"},
            "watermark_to_param": "until",
        }
        return self._open(given, self.server.connection(), Staging(Place(str(self.folder))))

    def put(self, *days: int) -> None:
        self.server.rows += [{"id": day, "at": at(day).isoformat()} for day in days]

    def remove(self) -> None:
        self.server.faults.extend([status(404)] * 10)


class _Table(_Rows):
    """A table of the lake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._write(pa.int64(), [], "error")

    @property
    def source(self) -> RowSource:
        return self._open({"type": "table", "table": "bronze/rows"}, Place(str(self.folder)))

    def put(self, *days: int) -> None:
        self._write(pa.int64(), days, "append")

    def remove(self) -> None:
        self.folder.rename(self.folder.with_suffix(".gone"))

    def change_column(self) -> None:
        self._write(pa.string(), [], "overwrite", schema_mode="overwrite")

    def _write(self, kind: pa.DataType, days: Sequence[int], mode: Any, **more: Any) -> None:
        schema = pa.schema([("id", kind), ("at", pa.timestamp("us", "UTC"))])
        rows = pa.Table.from_pylist([{"id": day, "at": at(day)} for day in days], schema=schema)
        write_deltalake(str(self.folder), rows, mode=mode, **more)


class _Iceberg(_Table):
    """A table of the lake in another format."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.table = folder, spark, foreign_table(spark, folder)
        spark.sql(f"CREATE TABLE {self.table} (id BIGINT, at TIMESTAMP) USING iceberg").collect()

    def put(self, *days: int) -> None:
        rows = [(day, at(day)) for day in days]
        self.spark.createDataFrame(rows, "id long, at timestamp").writeTo(self.table).append()

    def change_column(self) -> None:
        for change in ("DROP COLUMN id", "ADD COLUMN id STRING FIRST"):
            self.spark.sql(f"ALTER TABLE {self.table} {change}").collect()
        self.spark.sql(f"INSERT INTO {self.table} VALUES ('2', NULL)").collect()


class _Python(_Rows):
    """A function that ignores what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "rows.pickle"

    @property
    def source(self) -> RowSource:
        source = {
            "type": "python",
            "function": "tests.support.functions:rows",
            "params": {"path": str(self.path)},
        }
        return self._open(source, UserCode(self.folder), Staging(Place(str(self.folder / "staging"))))

    def put(self, *days: int) -> None:
        functions.put(self.path, *({"id": day, "at": at(day)} for day in days))

    def remove(self) -> None:
        self.path.unlink()


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Subject:
    make: dict[str, Callable[[], Subject]] = {
        "files": lambda: _Files(tmp_path / "landing"),
        "jdbc": lambda: _Jdbc(request.getfixturevalue("postgres")),
        "api": lambda: _Api(request.getfixturevalue("server"), tmp_path),
        "python": lambda: _Python(tmp_path),
        "table": lambda: _Table(tmp_path / "rows"),
        "iceberg": lambda: _Iceberg(tmp_path / "rows", spark),
    }
    made = make[request.param]()
    made.spark = spark
    return made


def test_what_is_asked_for_is_read_and_nothing_else(subject: Subject) -> None:
    subject.put(1, 2, 3)
    assert (subject.ids(2), subject.ids(1, 3), subject.ids(4)) == ([2], [1, 3], [])


def test_what_is_asked_for_twice_is_read_once(subject: Subject) -> None:
    subject.put(1, 2)
    assert subject.ids(2, 2, 1) == [1, 2]


def test_nothing_asked_for_is_no_row_of_the_same_columns(subject: Subject) -> None:
    subject.put(1)
    pinned = subject.pin()
    some, none = subject.read([1], pinned), subject.read([], pinned)
    assert (none.dtypes, none.count()) == (some.dtypes, 0)


def test_rows_have_the_pinned_columns_in_their_order(subject: Subject) -> None:
    subject.put(1)
    pinned = subject.pin()
    named = [field["name"] for field in json.loads(pinned)["columns"]["fields"]]
    assert tuple(sorted(named)) == subject.columns
    assert subject.read([1], pinned).columns[: len(named)] == named


def test_rows_that_come_after_the_schema_was_pinned_are_read_with_it(subject: Subject) -> None:
    subject.put(1)
    pinned = subject.pin()
    subject.put(2)
    subject.check_schema(pinned)
    assert [row["id"] for row in subject.read([2], pinned).collect()] == [2]


def test_a_changed_column_is_refused(subject: Subject) -> None:
    subject.put(1)
    pinned = subject.pin()
    subject.change_column()
    with pytest.raises(SchemaError, match="id"):
        subject.check_schema(pinned)


def test_a_version_is_read_again_as_it_was(subject: Subject) -> None:
    assert isinstance(subject, _Rows)
    subject.put(1)
    pinned, version = subject.pin(), subject.source.version()
    subject.put(2)
    rows = subject.read_version([1, 2], pinned, version).collect()
    assert [row["id"] for row in rows] == [1]


def test_a_source_that_is_gone_is_an_error_and_never_no_rows(subject: Subject) -> None:
    subject.put(1)
    pinned = subject.pin()
    subject.remove()
    with pytest.raises(SourceError) as refused:
        subject.read([1], pinned).collect()
    assert isinstance(refused.value, StrandlineError)
