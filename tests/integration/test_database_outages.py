"""A database that breaks off in the middle of a read: the run reads again, nothing is half committed, each row is there once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from partitions.errors import SourceInterrupted
from resources.connections import jdbc
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts import postgres as pg
from tests.support import mariadb as maria
from tests.support.columns import Columns
from tests.support.crash_runner import crash
from tests.support.databases import DatabaseRows, at, rows_of
from tests.support.tcp import TcpProxy, proxied
from tests.support.window_feed import watermark

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("at_once")]

ROWS = 30_000
"""So many that a read goes on when its first bytes have come."""
MIDDLE = 1 << 20
"""Bytes of an answer: no look is that long."""


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, pg.Postgres | maria.MariaDB]]:
    """Servers that may be stopped."""
    with ExitStack() as running:
        found: dict[str, pg.Postgres | maria.MariaDB] = {}
        if pg.available():
            found["postgres"] = running.enter_context(pg.running())
        if maria.available():
            found["mariadb"] = running.enter_context(maria.running())
        yield found


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest, servers: dict[str, pg.Postgres | maria.MariaDB]) -> DatabaseRows:
    if request.param not in servers:
        pytest.skip(f"needs {request.param}")
    return rows_of(servers[request.param])


@pytest.fixture
def proxy(rows: DatabaseRows) -> Iterator[TcpProxy]:
    """Between the dataflow and the database."""
    with proxied(rows.own_port) as server:
        rows.port = server.port
        yield server


class FirstRetry(logging.Handler):
    """Does something when a run says that it tries again."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__()
        self._act: Callable[[], Any] | None = act

    def emit(self, record: logging.LogRecord) -> None:
        """Once."""
        act, self._act = self._act, None
        if act is not None:
            act()


@pytest.fixture
def on_first_retry() -> Iterator[Callable[[Callable[[], Any]], None]]:
    log, made = logging.getLogger("resources.retries"), list[logging.Handler]()

    def add(act: Callable[[], Any]) -> None:
        made.append(FirstRetry(act))
        log.addHandler(made[-1])

    yield add
    for handler in made:
        log.removeHandler(handler)


def assert_each_row_once(flow: Columns, count: int = ROWS) -> None:
    assert flow.ids == list(range(1, count + 1))
    assert flow.watermark == {"at": at(count)}
    assert flow.feed.open_intent is None
    assert flow.run().status == "nothing"


@pytest.mark.parametrize(
    "how", ["restart", *(pytest.param(how, marks=pytest.mark.full) for how in ("end_clients", "reset"))]
)
def test_a_read_that_breaks_off_is_read_again_in_the_same_run(
    rows: DatabaseRows,
    proxy: TcpProxy,
    tmp_path: Path,
    engine: SparkEngine,
    said: pytest.LogCaptureFixture,
    how: str,
) -> None:
    rows.fill(ROWS)
    happens = {"restart": rows.restart, "end_clients": rows.end_clients, "reset": None}[how]
    proxy.break_off(MIDDLE, happens, cuts=how == "reset")
    flow = rows.flow(tmp_path, engine)
    outcome = flow.run()
    assert proxy.breakage.happened
    assert said.text.count("trying again in") == 1, said.text
    assert [(entry.why, entry.rows) for entry in flow.feed.entries] == [("run", ROWS)]
    assert (outcome.status, outcome.rows, len(flow.feed.commits)) == ("committed", ROWS, 1)
    assert_each_row_once(flow)


def test_a_read_from_a_silent_server_is_given_up_and_tried_again(
    rows: DatabaseRows,
    proxy: TcpProxy,
    tmp_path: Path,
    engine: SparkEngine,
    said: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = rows.connection.system
    usual = jdbc._PARAMETERS[system]["socketTimeout"]
    monkeypatch.setitem(jdbc._PARAMETERS[system], "socketTimeout", usual.replace("3600", "2"))
    rows.fill(ROWS)
    spoken = Event()
    proxy.break_off(MIDDLE, spoken.wait)
    try:
        flow = rows.flow(tmp_path, engine)
        assert flow.run().rows == ROWS
    finally:
        spoken.set()
    assert (proxy.breakage.happened, said.text.count("trying again in")) == (True, 1), said.text
    assert_each_row_once(flow)


def test_of_several_slices_those_before_a_break_stay_and_the_others_are_read_once(
    rows: DatabaseRows, proxy: TcpProxy, tmp_path: Path, engine: SparkEngine, said: pytest.LogCaptureFixture
) -> None:
    rows.fill(ROWS)
    flow = rows.flow(
        tmp_path,
        engine,
        watermark={"type": "column", "columns": ["at"], "checkpoint": {"interval_rows": 10_000}},
    )

    def second_slice(step: Step, line: str) -> None:
        if step is Step.APPENDED and not proxy.breakage.happened:
            proxy.break_off(1 << 18, cuts=True)

    outcome = flow.run(observer=second_slice)
    assert proxy.breakage.happened
    assert "trying again in" in said.text
    assert [committed.rows for committed in outcome.committed] == [10_000] * 3
    assert_each_row_once(flow)


def test_windows_that_break_off_are_read_again_and_none_is_passed_over(
    rows: DatabaseRows, proxy: TcpProxy, tmp_path: Path, engine: SparkEngine, said: pytest.LogCaptureFixture
) -> None:
    rows.fill(ROWS)
    proxy.break_off(MIDDLE, cuts=True)
    source = {"table": rows.name, "window_column": "at"}
    days = watermark(start="2026-01-01", to="2026-01-03", units=None)
    flow = rows.flow(tmp_path, engine, source=source, watermark=days)
    outcome = flow.run()
    assert (proxy.breakage.happened, said.text.count("trying again in")) == (True, 1)
    assert (outcome.status, outcome.work_units, outcome.failed_units) == ("committed", 2, 0)
    assert flow.ids == list(range(1, ROWS + 1))
    assert [entry.why for entry in flow.feed.entries] == ["run"]


def test_a_database_that_stays_away_leaves_the_slice_to_the_next_run(
    rows: DatabaseRows, proxy: TcpProxy, tmp_path: Path, engine: SparkEngine
) -> None:
    rows.fill(ROWS)
    proxy.break_off(MIDDLE, proxy.stop_listening, cuts=True)
    flow = rows.flow(tmp_path, engine)
    error = flow.fail()
    assert isinstance(error, SourceInterrupted)
    assert (error.exit_code, error.transient, flow.ids, flow.feed.commits) == (1, True, [], [])
    assert flow.feed.open_intent is not None
    proxy.listen_again()
    assert flow.run().status == "recovered"
    assert_each_row_once(flow)


@pytest.mark.full
def test_a_read_goes_on_at_the_next_of_several_servers(
    rows: DatabaseRows, proxy: TcpProxy, tmp_path: Path, engine: SparkEngine
) -> None:
    rows.fill(ROWS)
    with proxied(rows.own_port) as second:
        rows.hosts = f"127.0.0.1:{proxy.port},127.0.0.1:{second.port}"
        proxy.break_off(MIDDLE, proxy.stop_listening, cuts=True)
        flow = rows.flow(tmp_path, engine)
        flow.run()
        assert (proxy.breakage.happened, second.breakage.connections > 0) == (True, True)
        assert_each_row_once(flow)


@pytest.mark.full
def test_a_statement_that_waits_too_long_for_a_lock_is_asked_again(
    rows: DatabaseRows,
    tmp_path: Path,
    engine: SparkEngine,
    on_first_retry: Callable[[Callable[[], Any]], None],
    said: pytest.LogCaptureFixture,
) -> None:
    rows.fill(100)
    rows.parameters = rows.impatient
    flow, locked = rows.flow(tmp_path, engine), rows.locked()
    on_first_retry(locked.release)
    try:
        flow.run(observer=lambda step, line: locked.take() if step is Step.INTENT_PUT else None)
    finally:
        locked.release()
    assert "timeout" in said.text
    assert "trying again in" in said.text
    assert_each_row_once(flow, 100)


@pytest.mark.full
def test_a_database_that_is_full_is_asked_again(
    rows: DatabaseRows,
    tmp_path: Path,
    engine: SparkEngine,
    on_first_retry: Callable[[Callable[[], Any]], None],
    said: pytest.LogCaptureFixture,
) -> None:
    rows.fill(100)
    rows.user = rows.reader()
    flow = rows.flow(tmp_path, engine)
    user = rows.user[0]
    rows.limit_connections(user, closed=True)
    on_first_retry(lambda: rows.limit_connections(user, closed=False))
    flow.run()
    assert "trying again in" in said.text
    assert_each_row_once(flow, 100)


@pytest.mark.parametrize(
    "step",
    [
        Step.WRITTEN,
        *(
            pytest.param(step, marks=pytest.mark.full)
            for step in (Step.PLANNED, Step.LIST_KEPT, Step.INTENT_PUT, Step.VERIFIED, Step.APPENDED)
        ),
    ],
)
def test_a_client_killed_after_any_step_leaves_each_row_once_whatever_the_database(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine, step: Step
) -> None:
    """Rows that come between the crash and the next run wait for the slice after: the bounds of the first are fixed."""
    rows.fill(40)
    by_time = {"type": "column", "columns": ["at"], "checkpoint": {"interval_rows": 16}}
    flow = rows.flow(tmp_path, engine, watermark=by_time)
    crash(flow.feed, step)
    rows.fill(5, first=41)
    flow.run()
    assert_each_row_once(flow, 45)


def test_what_the_database_refuses_while_rows_are_read_fails_at_once_in_its_words(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine, said: pytest.LogCaptureFixture
) -> None:
    rows.fill(100)
    bad = {"postgresql": "1 / (id - 50)", "mariadb": "(SELECT seq FROM seq_1_to_2 WHERE id >= 50)"}[
        rows.scheme
    ]
    flow = rows.flow(tmp_path, engine, source={"query": f"SELECT id, at, {bad} AS x FROM {rows.name}"})
    error = flow.fail()
    words = {"postgresql": "division by zero", "mariadb": "Subquery returns more than 1 row"}[rows.scheme]
    assert words in error.message
    assert (error.exit_code, error.transient, flow.ids) == (1, False, [])
    assert "trying again in" not in said.text
