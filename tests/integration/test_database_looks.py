"""What a plan, a sensor and ``list`` ask a database: over one connection, as of one moment, within a time limit. No Spark."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from partitions.column.predicates import ColumnRange, rows_in_ranges
from partitions.errors import SourceError, SourceInterrupted, SourceUnreachable
from partitions.predicate import EVERYTHING
from resources.kinds.column import look as column
from resources.kinds.column.opening import column_look
from resources.sources.jdbc.source import JdbcRows
from resources.sources.source import ReadsAbove
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import Columns
from tests.support.databases import DatabaseRows, at, rows_of
from tests.support.mariadb import MariaDB
from tests.support.tcp import proxied

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Postgres | MariaDB:
    return cast("Postgres | MariaDB", request.getfixturevalue(request.param))


@pytest.fixture
def rows(server: Postgres | MariaDB) -> DatabaseRows:
    return rows_of(server)


def source(rows: DatabaseRows, folder: Path) -> JdbcRows:
    flow = rows.flow(folder, SparkEngine())
    return cast("JdbcRows", flow.feed.platform.source(flow.feed.dataflow))


def look_for_rows(flow: Columns) -> bool:
    return column_look(flow.feed.platform, flow.feed.dataflow).has_new_rows(None, NOW)


@pytest.mark.parametrize("columns", [["at"], ["id", "at"]])
def test_a_plan_closes_its_one_connection(rows: DatabaseRows, tmp_path: Path, columns: list[str]) -> None:
    rows.fill(40)
    with proxied(rows.own_port) as proxy:
        rows.port = proxy.port
        watermark = {
            "type": "column",
            "columns": columns,
            "nulls": "fail",
            "checkpoint": {"interval_rows": 8},
        }
        target = {"load": "merge_overwrite", "replace_by_watermark": True}
        flow = rows.flow(
            tmp_path, SparkEngine(), watermark=watermark | {"backward": {"days": 1}}, target=target
        )
        made = flow.feed.platform.plan(flow.feed.dataflow, NOW)
        assert len(made.slices) == (5 if columns == ["at"] else 1)
        assert (proxy.breakage.connections, proxy.left_open) == (1, 0)


def test_the_answers_of_a_look_are_of_one_moment(rows: DatabaseRows, tmp_path: Path) -> None:
    rows.fill(3)
    asked = rows_in_ranges([ColumnRange("id", 3, None)])

    def answers(look: ReadsAbove) -> list[object]:
        before = [look.holds_any(asked), look.highest("id", EVERYTHING)]
        rows.fill(2, first=4)
        seen = look.observe(["at"], NOW)
        return [*before, look.holds_any(asked), look.highest("id", EVERYTHING), seen.maxima["at"]]

    assert source(rows, tmp_path).in_one_look(answers) == [False, 3, False, 3, at(3)]
    assert source(rows, tmp_path).holds_any(asked)


def test_a_look_cannot_write(rows: DatabaseRows, tmp_path: Path) -> None:
    def writes(look: ReadsAbove) -> None:
        opened = cast("JdbcRows", look)._look_connection
        assert opened is not None
        opened.ask(f"INSERT INTO {rows.name} (id) VALUES (1)")

    with pytest.raises(SourceError, match=r"(?i)read.only transaction"):
        source(rows, tmp_path).in_one_look(writes)
    assert rows.ask(f"SELECT count(*) FROM {rows.name}") == [(0,)]


def test_failing_looks_close_their_connections(rows: DatabaseRows, tmp_path: Path) -> None:
    with proxied(rows.own_port) as proxy:
        rows.port = proxy.port
        with pytest.raises(SourceError, match="nope"):
            source(rows, tmp_path).observe(["nope"], NOW)
        assert (proxy.breakage.connections, proxy.left_open) == (2, 0)


@pytest.mark.usefixtures("at_once")
def test_a_run_whose_look_is_cut_asks_again(
    rows: DatabaseRows, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    with proxied(rows.own_port) as proxy:
        rows.port = proxy.port
        proxy.break_off(1, cuts=True)
        flow = rows.flow(tmp_path, SparkEngine())
        assert flow.run().status == "nothing"
        assert (proxy.breakage.connections, proxy.left_open) == (2, 0)
    assert "trying again in" in said.text


@pytest.mark.usefixtures("at_once")
def test_a_database_that_stays_away_fails_the_run_in_its_words_and_nothing_is_begun(
    rows: DatabaseRows, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    with proxied(rows.own_port) as proxy:
        rows.port = proxy.port
    flow = rows.flow(tmp_path, SparkEngine())
    error = flow.fail()
    assert isinstance(error, SourceInterrupted)
    assert "refused" in error.message
    assert (error.exit_code, error.transient, flow.feed.newest, flow.feed.open_intent) == (
        1,
        True,
        None,
        None,
    )
    assert said.text.count("trying again in") == 6


def test_a_command_that_only_looks_does_not_wait_for_a_database_that_is_away(
    rows: DatabaseRows, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    with proxied(rows.own_port) as proxy:
        rows.port = proxy.port
    flow = rows.flow(tmp_path, SparkEngine())
    with pytest.raises(SourceUnreachable, match="refused"):
        flow.feed.platform.plan(flow.feed.dataflow, NOW)
    with pytest.raises(SourceUnreachable, match="refused"):
        look_for_rows(flow)
    assert "trying again in" not in said.text


def test_a_look_for_new_rows_that_scans_for_long_is_ended_and_says_what_to_do(
    rows: DatabaseRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column, "_LOOK_SECONDS", 0.2)
    rows.fill(1)
    sleep = "pg_sleep" if rows.scheme == "postgresql" else "sleep"
    query = f"SELECT id, at FROM {rows.name} WHERE {sleep}(30 + id) IS NOT NULL"
    flow = rows.flow(tmp_path, SparkEngine(), source={"query": query})
    with pytest.raises(SourceUnreachable, match=r"hit its time limit of 0 s, because .*Create an index"):
        look_for_rows(flow)
    answer = flow.feed.cli("list")
    waiting = answer.json[0]["waiting"]
    assert (answer.code, waiting["new_rows"]) == (0, None)
    assert "its time limit" in waiting["why"]


@pytest.mark.parametrize(
    ("wrong", "said_by"),
    [
        ("password", {"postgresql": "password authentication failed for user", "mariadb": "Access denied for user"}),
        ("permission", {"postgresql": "permission denied for table", "mariadb": "SELECT command denied to user"}),
        ("table", {"postgresql": 'relation "public.timeouts" does not exist', "mariadb": "Table 'shop.timeouts' doesn't exist"}),
        ("column", dict.fromkeys(("postgresql", "mariadb"), r"watermark\.columns: expected columns of .*, found timeout; the names are id, .*at")),
        ("case", {"postgresql": r"found AT \(did you mean at\?\); the names are id, ", "mariadb": r"found AT \(did you mean at\?\); the names are at\."}),
        ("syntax", {"postgresql": 'syntax error at or near "1"', "mariadb": "You have an error in your SQL syntax; .* near '1 deadlock"}),
        ("database", {"postgresql": 'database "deadlock" does not exist', "mariadb": "(Unknown database|Access denied.*) 'deadlock'"}),
    ],
)  # fmt: skip
def test_what_stays_wrong_fails_at_once_and_is_named(
    rows: DatabaseRows, tmp_path: Path, said: pytest.LogCaptureFixture, wrong: str, said_by: dict[str, str]
) -> None:
    definition: dict[str, Any] = {}
    match wrong:
        case "password":
            rows.user = (rows.administrator[0], "another-one")
        case "permission":
            rows.user = rows.stranger()
        case "table":
            definition["source"] = {
                "table": "public.timeouts" if rows.scheme == "postgresql" else "shop.timeouts"
            }
        case "column":
            definition["watermark"] = {"type": "column", "columns": ["timeout"]}
        case "case":  # MariaDB finds a column whatever the case, and Spark calls it by its own name
            definition["watermark"] = {"type": "column", "columns": ["AT"]}
        case "syntax":
            definition["source"] = {"query": f"SELECT * FROM {rows.name} WHERE id = 1 1 deadlock"}
        case "database":
            rows.database = "deadlock"
    flow = rows.flow(tmp_path, SparkEngine(), **definition)
    error = flow.fail()
    assert isinstance(error, SourceError)
    assert (error.exit_code, error.transient) == (1, False)
    assert re.search(said_by[rows.scheme], error.message), error.message
    assert "trying again in" not in said.text
    assert (flow.feed.newest, flow.feed.open_intent) == (None, None)
