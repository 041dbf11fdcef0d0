"""Rows above a column watermark, whatever their source: what holds for all of them, in dataflows that run (docs/reference/columns.md, What a run reads)."""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from partitions.errors import StrandlineError
from platform_assets.kinds.column.profile import ColumnProfile
from resources.outcome import Outcome, Step
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support import functions
from tests.support.api import BY_TIME as API_TIMES
from tests.support.api import ApiFeed, api
from tests.support.columns import BY_TIME, Columns, PostgresRows, at, on_lake, on_postgres
from tests.support.databases import OnMariaDB
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table
from tests.support.mariadb import MariaDB

pytestmark = pytest.mark.postgres

SCHEMA = "id long, at timestamp, value long"
UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}

Row = tuple[int, datetime | None, int]


class Subject(ABC):
    """A source with the columns id, at and value, whose rows come and change by their id."""

    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        self.folder, self.engine = folder, engine
        self.rows: dict[int, Row] = {}

    @abstractmethod
    def flow(self, **definition: Any) -> Columns:
        """A dataflow above ``at``."""

    @abstractmethod
    def write(self, *changed: Row) -> None:
        """Make the source hold ``rows``, some of which have changed."""

    def put(self, *rows: Row) -> None:
        """Rows come, or change."""
        self.rows |= {row[0]: row for row in rows}
        self.write(*rows)

    @abstractmethod
    def lose_time(self) -> None:
        """The source has no column ``at`` any more."""

    @property
    def named(self) -> list[dict[str, Any]]:
        """All rows, with the names of their columns."""
        return [dict(zip(("id", "at", "value"), row, strict=True)) for row in self.rows.values()]


class _PostgreSQL(Subject):
    def __init__(self, folder: Path, engine: SparkEngine, server: Postgres) -> None:
        super().__init__(folder, engine)
        self.table = PostgresRows(server)

    def flow(self, **definition: Any) -> Columns:
        return on_postgres(self.folder, self.engine, self.table, **definition)

    def write(self, *changed: Row) -> None:
        for row in changed:
            self.table.ask("DELETE FROM {s}.rows WHERE id = %s", row[0])
            self.table.put(row)

    def lose_time(self) -> None:
        self.table.ask("ALTER TABLE {s}.rows DROP COLUMN at")


class _MariaDB(Subject):
    def __init__(self, folder: Path, engine: SparkEngine, server: MariaDB) -> None:
        super().__init__(folder, engine)
        self.table = OnMariaDB(server=server)
        self.table.ask(f"ALTER TABLE {self.table.name} CHANGE filler value bigint")

    def flow(self, **definition: Any) -> Columns:
        return self.table.flow(self.folder, self.engine, **definition)

    def write(self, *changed: Row) -> None:
        for number, time, value in changed:
            text = "NULL" if time is None else f"'{time.replace(tzinfo=None)}'"
            self.table.ask(f"REPLACE INTO {self.table.name} VALUES ({number}, {text}, {value})")

    def lose_time(self) -> None:
        self.table.ask(f"ALTER TABLE {self.table.name} DROP COLUMN at")


class _Delta(Subject):
    def flow(self, **definition: Any) -> Columns:
        flow, self.table = on_lake(self.folder, self.engine, **definition)
        return flow

    def write(self, *changed: Row) -> None:
        self.table.put(*self.named)

    def lose_time(self) -> None:
        rows = pa.table({"id": [1], "value": [1]})
        write_deltalake(str(self.table.path), rows, mode="overwrite", schema_mode="overwrite")

    def _spark(self) -> Any:
        return self.engine.session()


class _Iceberg(_Delta):
    def write(self, *changed: Row) -> None:
        spark = self._spark()
        rows = spark.createDataFrame(list(self.rows.values()), SCHEMA)
        rows.writeTo(foreign_table(spark, self.table.path)).using("iceberg").createOrReplace()

    def lose_time(self) -> None:
        spark = self._spark()
        name = foreign_table(spark, self.table.path)
        spark.createDataFrame([(1, 1)], "id long, value long").writeTo(name).using(
            "iceberg"
        ).createOrReplace()


class _Files(Subject):
    def flow(self, **definition: Any) -> Columns:
        self.feed = Feed(
            self.folder, self.engine, {"watermark": BY_TIME, "source": {"schema": SCHEMA}} | definition
        )
        return Columns(self.feed)

    def write(self, *changed: Row) -> None:
        for number in {row[0] for row in changed}:
            row = self.rows[number]
            time = None if row[1] is None else row[1].isoformat()
            self.feed.put(f"{number}.ndjson", {"id": row[0], "at": time, "value": row[2]})

    def lose_time(self) -> None:
        raise AssertionError


class _Function(Subject):
    def flow(self, **definition: Any) -> Columns:
        self.path = self.folder / "rows.pickle"
        functions.put(self.path)
        source = {
            "type": "python",
            "function": "tests.support.functions:rows",
            "params": {"path": str(self.path)},
            "schema": SCHEMA,
        }
        return Columns(
            Feed(self.folder, self.engine, {"watermark": BY_TIME} | definition | {"source": source})
        )

    def write(self, *changed: Row) -> None:
        self.path.unlink()
        functions.put(self.path, *self.named)

    def lose_time(self) -> None:
        self.path.unlink()
        functions.put(self.path, {"id": 1, "value": 1})


class _Api(Subject):
    def __init__(self, folder: Path, engine: SparkEngine, running: ExitStack) -> None:
        super().__init__(folder, engine)
        self.server = running.enter_context(api())

    def flow(self, **definition: Any) -> Columns:
        source = API_TIMES | {"schema": SCHEMA}
        return ApiFeed(
            self.folder, self.engine, self.server, source, {"watermark": BY_TIME} | definition
        ).flow()

    def write(self, *changed: Row) -> None:
        self.server.rows = [row | {"at": row["at"] and row["at"].isoformat()} for row in self.named]

    def lose_time(self) -> None:
        self.server.rows = [{"id": 1, "value": 1}]


_ALWAYS = ("postgresql", "delta", "files", "function", "api")


@pytest.fixture(
    params=[*_ALWAYS, *(pytest.param(name, marks=pytest.mark.full) for name in ("mariadb", "iceberg"))]
)
def subject(request: pytest.FixtureRequest, tmp_path: Path, engine: SparkEngine) -> Iterator[Subject]:
    with ExitStack() as running:
        make: dict[str, Callable[[], Subject]] = {
            "postgresql": lambda: _PostgreSQL(tmp_path, engine, request.getfixturevalue("postgres")),
            "mariadb": lambda: _MariaDB(tmp_path, engine, request.getfixturevalue("mariadb")),
            "delta": lambda: _Delta(tmp_path, engine),
            "iceberg": lambda: _Iceberg(tmp_path, engine),
            "files": lambda: _Files(tmp_path, engine),
            "function": lambda: _Function(tmp_path, engine),
            "api": lambda: _Api(tmp_path, engine, running),
        }
        yield make[request.param]()


def run(flow: Columns, **options: Any) -> Outcome:
    """Run by the clock of the machine, which is the databases' own."""
    return flow.run(datetime.now(UTC).isoformat(), **options)


def test_rows_late_within_settle_and_of_one_microsecond_are_there_once(subject: Subject) -> None:
    flow = subject.flow(watermark=BY_TIME | {"settle": "PT1H"})
    young = datetime.now(UTC) - timedelta(minutes=30)
    subject.put((1, at(1), 1), (2, young, 2), (3, young, 3))
    run(flow)
    assert flow.ids == [1]
    subject.put(
        (4, young - timedelta(microseconds=1), 4), (5, young, 5), (6, young + timedelta(microseconds=1), 6)
    )
    flow.feed.define(watermark={"settle": "PT1M"})
    run(flow)
    assert flow.ids == [1, 2, 3, 4, 5, 6]
    assert run(flow).status == "nothing"


def test_reconcile_tells_the_rows_that_differ_from_the_source(subject: Subject) -> None:
    flow = subject.flow(target=UPSERT)
    subject.put(*[(number, at(number), number) for number in range(1, 10)])
    run(flow)
    is_read_whole = isinstance(subject, _Files | _Function | _Api)
    if is_read_whole:
        refused = flow.feed.cli("reconcile", "flow")
        assert (refused.code, refused.json["error"]["code"]) == (2, "full_read")
    options = ["--rows", *(["--full-read"] if is_read_whole else [])]
    equal = flow.feed.command("reconcile", "flow", *options).json["dataflows"][0]
    assert (equal["equal"], equal["not_compared"], equal["ranges"][0]["source"]) == (True, [], 9)
    DeltaTable(str(flow.feed.table)).delete("id = 2")
    DeltaTable(str(flow.feed.table)).update(updates={"value": "70"}, predicate="id = 7")
    subject.put((4, at(4), 40), (20, at(3, 5), 20), (30, datetime.now(UTC), 30))
    document = flow.feed.cli("reconcile", "flow", *options).json["dataflows"][0]
    ids = {sort: sorted(key["id"] for key in document[sort]) for sort in ("missing", "extra", "different")}
    assert ids == {"missing": [2, 20], "extra": [], "different": [4, 7]}


@pytest.mark.full
def test_rows_that_come_late_within_a_look_back_are_there_once(subject: Subject) -> None:
    flow = subject.flow(watermark=BY_TIME | {"backward": {"days": 2}}, target=UPSERT)
    days = [datetime.now(UTC) - timedelta(days=number) for number in range(6)]
    subject.put((1, days[5], 1), (5, days[1], 5))
    run(flow)
    subject.put((2, days[4], 2), (4, days[2] + timedelta(hours=1), 4), (5, days[1], 0))
    run(flow)
    assert flow.feed.rows("id", "value") == [(1, 1), (4, 4), (5, 0)]


def test_rows_that_come_later_are_read_behind_a_step(subject: Subject) -> None:
    """The highest value that was read is saved, though the step has dropped its row."""
    if isinstance(subject, _Api):
        pytest.skip("the bound that an API was asked for is saved")
    flow = subject.flow(sql="SELECT * FROM input WHERE value > 0")
    subject.put((1, at(1), 1), (2, at(2), 0))
    run(flow)
    assert (flow.ids, flow.watermark) == ([1], {"at": at(2)})
    subject.put((3, at(3), 1))
    run(flow)
    assert (flow.ids, flow.watermark) == ([1, 3], {"at": at(3)})
    assert run(flow).status == "nothing"


def test_adopt_of_a_lost_state_finds_the_saved_watermark(subject: Subject) -> None:
    flow = subject.flow()
    subject.put((1, at(1), 1), (2, at(2), 2))
    run(flow)
    saved = flow.watermark
    shutil.rmtree(flow.feed.state)
    flow.feed.decide("adopt")
    assert flow.watermark == saved
    subject.put((3, datetime.now(UTC) - timedelta(microseconds=1), 3))
    run(flow)
    assert flow.ids == [1, 2, 3]


def test_a_row_that_changes_under_a_run_is_read_as_it_was_or_by_the_next(subject: Subject) -> None:
    flow = subject.flow(target=UPSERT)
    subject.put((1, at(1), 1), (2, at(2), 2))
    changed: list[Step] = []

    def changes(step: Step, line: str) -> None:
        if step is Step.PLANNED and not changed:
            changed.append(step)
            subject.put((1, datetime.now(UTC), 3))

    run(flow, observer=changes)
    assert changed
    assert flow.feed.rows("id", "value") in ([(2, 2)], [(1, 1), (2, 2)])
    run(flow)
    assert flow.feed.rows("id", "value") == [(1, 3), (2, 2)]
    assert run(flow).status == "nothing"


def test_rows_without_a_value_are_refused_left_out_or_counted_as_defined(subject: Subject) -> None:
    if isinstance(subject, _Api):
        pytest.skip("an API cannot be asked for rows without a value: validate refuses it")
    flow = subject.flow(watermark=BY_TIME | {"nulls": "fail"}, target=UPSERT)
    subject.put((1, at(1), 1), (2, None, 2))
    with pytest.raises(StrandlineError, match=r"expected a value in at of each row \(nulls: fail\)"):
        run(flow)
    assert (flow.feed.newest, flow.feed.open_intent) == (None, None)
    flow.feed.define(watermark={"nulls": "skip"})
    run(flow)
    assert flow.ids == [1]
    flow.feed.define(watermark={"nulls": "read"})
    assert counted(run(flow)) == 1
    assert flow.ids == [1, 2]


def counted(outcome: Outcome) -> int:
    """The rows without a value, as `run` shows them."""
    count: int = ColumnProfile().amounts(outcome)["rows_without_value"]
    return count


def test_a_column_that_vanishes_stops_the_run_before_anything_is_begun(subject: Subject) -> None:
    if isinstance(subject, _Files):
        pytest.skip("a field that no record has is NULL")
    flow = subject.flow()
    subject.put((1, at(1), 1))
    run(flow)
    subject.lose_time()
    with pytest.raises(StrandlineError, match="at") as stopped:
        run(flow)
    if isinstance(subject, _Function | _Api):
        assert stopped.value.code == "missing_column"
        assert re.search(
            r"expected a (column|field) at.*, found none in 1 (row|record)", stopped.value.message
        )
    assert flow.feed.newest is not None
    assert (flow.feed.newest.number, flow.feed.open_intent) == (1, None)
