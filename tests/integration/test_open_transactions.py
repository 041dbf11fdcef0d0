"""Rows that are committed late: a run reads no further than an open transaction can still write (docs/reference/columns.md, Rows that are committed late)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from partitions.errors import PlanError
from partitions.plan import Plan
from resources.kinds.column import open_transactions
from resources.spark.engine import SparkEngine
from scripts import postgres as pg
from tests.support.columns import Columns, PostgresRows, on_postgres, read_as_other_user
from tests.support.databases import OnMariaDB
from tests.support.mariadb import MariaDB

pytestmark = pytest.mark.postgres

BY_ID = {"type": "column", "columns": ["id"]}
BY_TIME = {"type": "column", "columns": ["at"]}
COLUMNS = "id bigserial PRIMARY KEY, at timestamptz DEFAULT now(), value bigint"

Open = Callable[..., psycopg.Connection]


@pytest.fixture
def opened(postgres: pg.Postgres) -> Iterator[Open]:
    """Sessions, each with a transaction that it begins with its first statement."""
    with ExitStack() as stack:

        def session() -> psycopg.Connection:
            return stack.enter_context(psycopg.connect(postgres.url()))

        yield session


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "_PATIENCE", 0.1)


@pytest.fixture
def table(postgres: pg.Postgres) -> PostgresRows:
    return PostgresRows(postgres, columns=COLUMNS, indexed="at")


@pytest.fixture
def flow(tmp_path: Path, engine: SparkEngine, table: PostgresRows) -> Columns:
    return on_postgres(tmp_path, engine, table, watermark=BY_ID)


def insert(session: psycopg.Connection, table: PostgresRows, value: int = 0) -> None:
    session.execute(f"INSERT INTO {table.name} (value) VALUES ({value})".encode())


def put(table: PostgresRows, value: int = 0) -> None:
    """A row that is committed at once."""
    table.ask("INSERT INTO {s}.rows (value) VALUES (%s)", value)


def planned(flow: Columns) -> Plan[Any]:
    return flow.feed.platform.plan(flow.feed.dataflow, datetime.now(UTC))


def ranges(flow: Columns) -> list[str]:
    """What a run would read now."""
    return [slice_.words for slice_ in planned(flow).slices]


@pytest.mark.each_case
@pytest.mark.parametrize("end", ["commit", "rollback", "prepare"])
def test_a_row_that_is_committed_after_higher_ones_were_is_read_once(
    opened: Open, table: PostgresRows, flow: Columns, end: str
) -> None:
    put(table)
    late = opened()
    insert(late, table)
    put(table)
    flow.run()
    assert flow.ids == []
    assert "process" in " ".join(skip.why for skip in planned(flow).skips)
    if end == "prepare":
        late.execute(f"PREPARE TRANSACTION '{table.schema}'".encode())
        late.commit()
        flow.run()
        assert flow.ids == []
        assert f"prepared transaction {table.schema}" in planned(flow).skips[0].why
        table.server.ask(f"COMMIT PREPARED '{table.schema}'")
    else:
        late.commit() if end == "commit" else late.rollback()
    flow.run()
    assert flow.ids == ([1, 3] if end == "rollback" else [1, 2, 3])
    assert flow.run().status == "nothing"


def test_rows_before_an_open_transaction_are_read(opened: Open, table: PostgresRows, flow: Columns) -> None:
    put(table)
    assert ranges(flow) == ["(id <= 1) or (id is NULL)"]
    other = opened()
    other.execute("SELECT 1")
    assert ranges(flow) == ["(id <= 1) or (id is NULL)"]


def test_a_transaction_with_a_number_is_waited_for(opened: Open, table: PostgresRows, flow: Columns) -> None:
    late = opened()
    late.execute(f"SELECT nextval('{table.schema}.rows_id_seq')".encode())
    put(table)
    assert ranges(flow) == []
    late.rollback()
    assert ranges(flow) == ["(id <= 2) or (id is NULL)"]


def test_a_writer_of_another_table_is_not_waited_for(
    opened: Open, postgres: pg.Postgres, table: PostgresRows, flow: Columns
) -> None:
    insert(opened(), PostgresRows(postgres, columns=COLUMNS))
    put(table)
    assert ranges(flow) == ["(id <= 1) or (id is NULL)"]


def test_overlapping_transactions_hold_rows_briefly(opened: Open, table: PostgresRows, flow: Columns) -> None:
    first, second = opened(), opened()
    insert(first, table)
    put(table)
    flow.run()
    insert(second, table)
    first.commit()
    put(table)
    flow.run()
    assert flow.ids == [1, 2]
    third = opened()
    insert(third, table)
    second.commit()
    flow.run()
    assert flow.ids == [1, 2, 3, 4]
    third.commit()
    flow.run()
    assert flow.ids == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("first", ["INSERT", "SELECT"])
def test_times_are_read_up_to_the_beginning_of_the_oldest_open_transaction(
    opened: Open, table: PostgresRows, flow: Columns, first: str
) -> None:
    flow.feed.define(watermark={"columns": ["at"]})
    put(table)
    late = opened()
    if first == "INSERT":
        insert(late, table)
    else:
        late.execute("SELECT 1")
    put(table)
    flow.run()
    assert flow.ids == [1]
    if first == "SELECT":
        insert(late, table)
    late.commit()
    flow.run()
    assert flow.ids == [1, 2, 3]


def test_a_user_who_may_not_see_when_others_began_waits_for_them(
    opened: Open, table: PostgresRows, tmp_path: Path, engine: SparkEngine
) -> None:
    flow = on_postgres(tmp_path, engine, table, watermark=BY_TIME)
    read_as_other_user(flow, table)
    late = opened()
    late.execute("SELECT 1")
    put(table)
    assert ranges(flow) == []
    insert(late, table)
    late.commit()
    assert len(ranges(flow)) == 1


@pytest.mark.parametrize("source", ["view", "query", "partition"])
def test_the_tables_behind_a_source_are_known(
    opened: Open, postgres: pg.Postgres, tmp_path: Path, engine: SparkEngine, source: str
) -> None:
    table = PostgresRows(postgres, columns="id bigint, day int", indexed=None)
    table.ask("DROP TABLE {s}.rows")
    table.ask("CREATE TABLE {s}.rows (id bigserial, day int) PARTITION BY LIST (day)")
    table.ask("CREATE TABLE {s}.one PARTITION OF {s}.rows FOR VALUES IN (1)")
    table.ask("CREATE VIEW {s}.seen AS SELECT * FROM {s}.rows")
    reads = {
        "view": {"table": f"{table.schema}.seen"},
        "query": {"query": f"SELECT id, 'x' AS word FROM {table.schema}.seen WHERE day > 0"},
        "partition": {"table": table.name},
    }
    flow = on_postgres(tmp_path, engine, table, source=reads[source], watermark=BY_ID)
    late = opened()
    late.execute(f"INSERT INTO {table.schema}.one VALUES (nextval('{table.schema}.rows_id_seq'), 1)".encode())
    table.ask("INSERT INTO {s}.rows (day) VALUES (1)")
    assert ranges(flow) == []
    late.commit()
    assert ranges(flow) == ["(id <= 2) or (id is NULL)"]


def test_cached_sequence_numbers_are_refused_where_told_apart(table: PostgresRows, flow: Columns) -> None:
    table.ask("ALTER SEQUENCE {s}.rows_id_seq CACHE 10")
    put(table)
    (warning,) = planned(flow).warnings
    assert "each session takes 10 numbers of the sequence" in warning
    flow.feed.define(watermark={"settle": "transactions"})
    with pytest.raises(PlanError, match=r"CACHE.*backward: \{by: 1000\}"):
        planned(flow)


def test_a_standby_says_that_it_does_not_tell(
    tmp_path: Path, engine: SparkEngine, table: PostgresRows, flow: Columns
) -> None:
    put(table)
    with table.server.standby():
        (warning,) = planned(flow).warnings
    assert "standby" in warning


def test_a_duration_beside_numbers_is_refused(table: PostgresRows, flow: Columns) -> None:
    flow.feed.define(watermark={"settle": "PT5M"})
    with pytest.raises(PlanError, match="expected no duration beside numbers in id"):
        planned(flow)


def test_mariadb_does_not_tell(tmp_path: Path, engine: SparkEngine, mariadb: MariaDB) -> None:
    table = OnMariaDB(server=mariadb)
    flow = table.flow(tmp_path, engine, watermark=BY_ID | {"settle": "transactions"})
    with pytest.raises(PlanError, match="MariaDB and MySQL do not show"):
        planned(flow)
    flow.feed.define(watermark={"settle": "PT0S"})
    assert not planned(flow).warnings


def test_silent_databases_are_read_again(tmp_path: Path, engine: SparkEngine, mariadb: MariaDB) -> None:
    table = OnMariaDB(server=mariadb)
    keys = {"load": "merge_upsert", "merge_keys": ["id"]}
    flow = table.flow(tmp_path, engine, watermark=BY_ID | {"backward": {"by": 10}}, target=keys)
    for number in (20, 15, 9):  # 15 comes late by less than 10, and 9 by more
        table.ask(f"INSERT INTO {table.name} (id) VALUES ({number})")
        flow.run()
    assert (flow.ids, flow.watermark) == ([15, 20], {"id": 20})


def test_a_time_to_settle_is_by_the_clock_alone(opened: Open, table: PostgresRows, flow: Columns) -> None:
    flow.feed.define(watermark={"columns": ["at"], "settle": "PT0S"})
    opened().execute("SELECT 1")
    put(table)
    (slice_,) = planned(flow).slices
    assert datetime.now(UTC) - slice_.upper["at"] < timedelta(minutes=1)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("by", ["id", "at"])
def test_100_000_rows_of_50_writers_who_commit_when_they_like_are_all_read_once(
    tmp_path: Path, engine: SparkEngine, table: PostgresRows, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "_PATIENCE", 2.0)
    flow = on_postgres(tmp_path, engine, table, watermark=BY_ID | {"columns": [by]})
    random = Random(by)
    writers = [Writer(table, Random(random.random()), number) for number in range(50)]
    during = 0
    with ThreadPoolExecutor(len(writers)) as pool:
        work = [pool.submit(writer.write, 2_000) for writer in writers]
        while not all(each.done() for each in work):
            during += flow.run(now=datetime.now(UTC).isoformat()).rows
        for each in work:
            each.result()
    flow.run(now=datetime.now(UTC).isoformat())
    assert flow.ids == sorted(id_ for (id_,) in table.ask("SELECT id FROM {s}.rows"))
    assert len(flow.ids) == 100_000
    assert during > 20_000


class Writer:
    """Commits rows, some transactions at once and some after a while, and lets others roll back."""

    def __init__(self, table: PostgresRows, random: Random, number: int) -> None:
        self.table, self.random, self.number = table, random, number

    def write(self, rows: int) -> None:
        """Commit so many rows."""
        left = rows
        with psycopg.connect(self.table.server.url()) as session:
            while left:
                count = min(left, self.random.randint(1, 60))
                for _ in range(self.random.randint(1, 3)):  # some time passes between a number and its row
                    session.execute("SELECT 1")
                    self.delay(0.01)
                insert = f"INSERT INTO {self.table.name} (value) SELECT {self.number} FROM generate_series(1, {count})"
                session.execute(insert.encode())
                self.delay(0.3)
                left -= self.end(session) * count

    def end(self, session: psycopg.Connection) -> bool:
        """Return whether the rows are there."""
        choice = self.random.random()
        if choice < 0.1:
            session.rollback()
        elif choice < 0.3:
            name = f"{self.table.schema}_{self.number}"
            session.execute(f"PREPARE TRANSACTION '{name}'".encode())
            session.commit()
            self.delay(0.3)
            session.autocommit = True
            session.execute(f"COMMIT PREPARED '{name}'".encode())
            session.autocommit = False
        else:
            session.commit()
        return choice >= 0.1

    def delay(self, most: float) -> None:
        """Pass some time: what the writers do, and no way to wait for anything."""
        time.sleep(self.random.random() * most)
