"""The sensor of a column watermark requests a run if rows lie above the stored values, and only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import DagsterInstance, build_schedule_context
from deltalake import write_deltalake

from partitions.column.words import describe_watermark
from partitions.last_look import SourceSnapshot
from partitions.plan import Plan
from partitions.sentinels import serialise
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.column.triggers import rows_sensor
from platform_assets.factory.schedules import load_schedule
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.kinds.column.opening import column_look
from resources.notes.looks import note_look
from resources.outcome import Outcome
from tests.support.ticks import Ticker, flow_of, requested_run, ticks

NONE = "no row is above the watermark"
COLUMN: dict[str, Any] = {
    "source": {"type": "table", "table": "bronze/rows"},
    "watermark": {"type": "column", "columns": ["at"], "backward": {"days": 2}},
    "target": {"load": "merge_overwrite", "replace_by_watermark": True},
    "schedule": "0 6 * * *",
}


@pytest.fixture
def make_ticker(tmp_path: Path) -> Iterator[Callable[..., Ticker]]:
    with DagsterInstance.ephemeral() as instance:

        def make(**definition: Any) -> Ticker:
            return Ticker(
                tmp_path,
                instance,
                flow_of(**(COLUMN | definition)),
                lambda flow, platform, names, now: rows_sensor(
                    flow, platform, names, dataflow_job(flow, names), now
                ),
            )

        yield make


@pytest.fixture
def ticker(make_ticker: Callable[..., Ticker]) -> Ticker:
    made = make_ticker()
    put(made)
    return made


def moment(day: int) -> datetime:
    return datetime(2023, 11, day, tzinfo=UTC)


def put(ticker: Ticker, *days: int) -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    rows = pa.Table.from_pylist([{"at": moment(day)} for day in days], schema)
    write_deltalake(str(ticker.landing), rows, mode="append")


def load(ticker: Ticker, day: int) -> None:
    ticker.commit(kind="column", watermark=serialise({"at": moment(day)}))


def test_a_row_above_the_stored_value_asks_for_one_run_with_the_dataflow_s_tag(ticker: Ticker) -> None:
    assert ticker.tick() == NONE
    put(ticker, 1)
    assert requested_run(ticker.tick()).tags[DATAFLOW_TAG] == "arrivals"
    load(ticker, 1)
    assert ticker.tick() == NONE
    put(ticker, 2)
    requested_run(ticker.tick())


def test_rows_that_only_a_look_back_reads_ask_for_nothing(ticker: Ticker) -> None:
    put(ticker, 3)
    load(ticker, 3)
    put(ticker, 2)
    assert ticker.tick() == NONE


def test_rows_whose_time_has_not_come_ask_for_nothing_until_then(ticker: Ticker) -> None:
    put(ticker, 20)
    assert ticker.tick() == NONE
    ticker.now = moment(21).timestamp()
    requested_run(ticker.tick())


def test_a_run_that_did_not_commit_is_asked_for_again_after_a_pause(ticker: Ticker) -> None:
    put(ticker, 1)
    first = requested_run(ticker.tick())
    assert ticker.tick() == "attempt 1 did not commit; the next one is in 60 s"
    ticker.now += 61
    assert requested_run(ticker.tick()).run_key != first.run_key


def test_the_schedule_asks_for_a_run_at_each_of_its_times(ticker: Ticker, tmp_path: Path) -> None:
    schedule = load_schedule(
        ticker.flow, ticker.platform, ticker.names, dataflow_job(ticker.flow, ticker.names)
    )
    times = [moment(day).replace(hour=6) for day in (1, 2)]
    home = tmp_path / "dagster"
    home.mkdir()
    with DagsterInstance.local_temp(str(home)) as instance:
        contexts = [build_schedule_context(instance, scheduled_execution_time=time) for time in times]
        answers = [schedule.evaluate_tick(context).run_requests or [] for context in contexts]
    assert [request.run_key for requests in answers for request in requests] == [
        f"arrivals:{time.isoformat()}" for time in times
    ]


def test_a_watermark_is_told_by_its_columns() -> None:
    stored = {"at": moment(1), "day": moment(2).date(), "__exclusive__": ["day"], "word": "a"}
    words = "at = 2023-11-01 00:00:00+00:00, day < 2023-11-02, word = 'a'"
    assert describe_watermark(stored) == words


def _run_that_finds_nothing(ticker: Ticker) -> None:
    """What a run leaves that has looked at the files and has found no new row."""
    log, name = ticker.platform.log, ticker.flow.name
    look = SourceSnapshot(column_look(ticker.platform, ticker.flow).contents(), 0, 0)
    plan = Plan[Any](name, "column", 0, datetime.fromtimestamp(ticker.now, UTC), "nothing new", snapshot=look)
    entry = log.newest(name)
    note_look(log, Outcome(name, None, {}, entry.number if entry else 0, newest=entry, plan=plan))


def test_files_ask_for_a_run_only_when_they_have_changed(make_ticker: Callable[..., Ticker]) -> None:
    source = {"type": "files", "path": "landing", "format": "ndjson"}
    watermark = {"type": "column", "columns": ["id"]}
    ticker = make_ticker(source=source, watermark=watermark, target={"load": "append"})
    keys = ticks(ticker, 5, lambda: _run_that_finds_nothing(ticker))
    assert len(keys) == 1
    for name in ("a", "b"):
        ticker.put(f"{name}.ndjson")
        assert len(ticks(ticker, 3, lambda: _run_that_finds_nothing(ticker))) == 1
    asked_in_vain = ticks(ticker, 3, lambda: None)
    ticker.put("c.ndjson")
    assert (asked_in_vain, len(ticks(ticker, 3, lambda: None))) == ([], 2)
