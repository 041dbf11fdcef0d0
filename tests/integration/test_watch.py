"""``strandline watch``: a process that stays, and loads what arrives (docs/how-to/watch.md)."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from dagster import AssetKey, DagsterInstance, DagsterRunStatus
from dagster._core.test_utils import create_run_for_test
from deltalake import DeltaTable

from partitions.errors import DataflowHeld
from platform_assets.cli.context import Context
from platform_assets.cli.watching import Watch
from platform_assets.dagster_home import lock_dagster_home
from platform_assets.installation import cache_folder
from platform_assets.project.project import SPARK_REMOTE
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.spark.connect_server import ConnectServer, free_port
from resources.spark.engine import SparkEngine
from resources.watch.single_process import single_process
from tests.integration.conftest import MakeFeed
from tests.support.engine import QUICK
from tests.support.feed import NAME, Feed

PATIENCE = 60.0


@contextmanager
def watching(feed: Feed, *arguments: str, told: list[str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """The process, as long as the block runs; it must end by itself when it is asked to. ``told`` gets the status of each run that it has told."""
    process = feed.start("watch", "--every", "0.3", *arguments)
    try:
        until(lambda: process.poll() is not None or _is_watched(feed))
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, err
    if told is not None:
        told += [json.loads(line)["status"] for line in out.splitlines()]


def until(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait for something."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(feed: Feed) -> list[Any]:
    """The runs that Dagster keeps for the project, newest first."""
    home = feed.folder / ".strandline" / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    with lock_dagster_home(home):
        instance = DagsterInstance.from_config(str(home))
    with instance:
        return list(instance.get_runs())


def _is_watched(feed: Feed) -> bool:
    try:
        with single_process(feed.folder / ".strandline" / "watch.lock", "watch"):
            return False
    except DataflowHeld:
        return True


@pytest.fixture
def short(make_feed: MakeFeed) -> Feed:
    """A dataflow that has loaded a file."""
    feed = make_feed()
    feed.put("1.ndjson", 1)
    feed.load()
    return feed


def test_arrivals(short: Feed) -> None:
    """What arrives is loaded and shown in Dagster; one run for each arrival, and none for nothing."""
    told: list[str] = []
    port = free_port()
    with watching(short, "--metrics-port", str(port), told=told):
        short.put("2.ndjson", 2)
        until(lambda: [run.status for run in runs(short)] == [DagsterRunStatus.SUCCESS])
        assert short.ids == [1, 2]
        short.put("3.ndjson", 3)
        until(lambda: short.ids == [1, 2, 3])
        time.sleep(1)  # looks that find nothing
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            scraped = answer.read().decode()
        assert 'strandline_loaded_rows_total{dataflow="flow"} 3.0' in scraped
    assert [run.status for run in runs(short)] == [DagsterRunStatus.SUCCESS] * 2
    assert told == ["committed"] * 2  # a line of JSON for each, and nothing else on stdout
    with DagsterInstance.from_config(str(short.folder / ".strandline" / "dagster")) as instance:
        event = instance.get_latest_materialization_event(AssetKey(["bronze", NAME]))
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.metadata["rows"].value == 1


@pytest.mark.full
def test_beside(short: Feed) -> None:
    """``strandline run`` works beside it, as beside a sensor; a second one is refused."""
    with watching(short, NAME):
        answer = short.cli("run", NAME)
        assert (answer.code, [document["status"] for document in answer.json]) == (0, ["nothing"])
        second = short.cli("watch")
        assert (second.code, second.error["code"]) == (3, "held")
    assert runs(short) == []


@pytest.mark.full
def test_failing(short: Feed) -> None:
    """A file that cannot be read is tried once, and again after a pause, as by a sensor; once it is repaired at once."""
    with watching(short):
        short.put_text("2.ndjson", '{"id": "two"}\n')
        until(lambda: bool(runs(short)) and runs(short)[0].status == DagsterRunStatus.FAILURE)
        time.sleep(1.5)
        assert len(runs(short)) == 1
        short.put("2.ndjson", 2)
        until(lambda: short.ids == [1, 2])


@pytest.mark.full
@pytest.mark.each_case
@pytest.mark.parametrize("how", ["broken", "removed beside broken settings"])
def test_changed(short: Feed, how: str) -> None:
    """Changed project files are taken: one that is broken or removed leaves the others at work, and broken settings leave all as it was."""
    with watching(short):
        other = Feed(short.folder, short.engine, name="other")
        other.put("1.ndjson", 7)
        until(lambda: other.ids == [7])
        file = other.folder / "dataflows" / "other.yaml"
        if how == "broken":
            file.write_text("source: 7\n")
        else:
            file.unlink()
            (short.folder / "platform.yaml").write_text("lake: [\n")
        short.put("2.ndjson", 2)
        until(lambda: short.ids == [1, 2])


SLOW = """
from pathlib import Path
from time import monotonic, sleep

GATE = Path({gate!r})


def rows(request):
    yield {{"id": 1}}


def highest(request, column):
    until = monotonic() + 120
    while not GATE.exists() and monotonic() < until:
        sleep(0.05)
    return 1
"""


@pytest.mark.full
def test_slow(short: Feed) -> None:
    """A source that does not answer keeps no other dataflow waiting, and is loaded once it answers."""
    gate = short.folder / "gate"
    (short.folder / "slow_source.py").write_text(SLOW.format(gate=str(gate)))
    slow = Feed(
        short.folder,
        short.engine,
        {
            "source": {"type": "python", "function": "slow_source:rows", "highest": "slow_source:highest", "schema": "id long"},
            "watermark": {"type": "column", "columns": ["id"]},
        },
        name="a_slow_one",
    )  # fmt: skip
    with watching(short):
        for number in (2, 3):
            short.put(f"{number}.ndjson", number)
            until(lambda: short.ids[-1] == number)  # noqa: B023 - called in this round
        assert slow.ids == []
        gate.touch()
        until(lambda: slow.ids == [1])


LONG = """
from pathlib import Path
from time import monotonic, sleep

GATE, BEGUN = Path({gate!r}), Path({begun!r})


def wait(rows, batch):
    BEGUN.touch()
    until = monotonic() + 120
    while not GATE.exists() and monotonic() < until:
        sleep(0.05)
    return rows
"""


@pytest.mark.full
def test_long(short: Feed) -> None:
    """A load that takes long holds up no other dataflow."""
    gate, begun = short.folder / "gate", short.folder / "begun"
    (short.folder / "long_step.py").write_text(LONG.format(gate=str(gate), begun=str(begun)))
    long = Feed(short.folder, short.engine, {"transform": "long_step:wait"}, name="a_long_one")
    long.put("1.ndjson", 1)
    with watching(short):
        until(begun.exists)
        for number in (2, 3):
            short.put(f"{number}.ndjson", number)
            until(lambda: short.ids[-1] == number)  # noqa: B023 - called in this round
        assert long.ids == []
        gate.touch()
        until(lambda: long.ids == [1])


DAILY = """
layer: silver
source: {{type: table, table: bronze/{above}, window_column: at}}
transform: daily_step:step
watermark:
  type: window
  definition: [{{name: day, type: datetime, range: {{from: "2026-05-30", to: "2026-06-01"}}}}]
  window: daily
  grace: P9999D
target: {{load: merge_overwrite, replace_by_watermark: true}}
"""
FAILING = """
from pathlib import Path

FAILED = Path({failed!r})


def step(rows, batch):
    if not FAILED.exists():
        FAILED.touch()
        raise ValueError("the first time")
    return rows
"""


@pytest.fixture
def chain(make_feed: MakeFeed) -> Feed:
    """Files into a table, of which days are to be read again whenever rows come for them."""
    feed = make_feed(source={"schema": "id long, at timestamp"})
    (feed.folder / "dataflows/daily.yaml").write_text(DAILY.format(above=NAME))
    return feed


def put_row(feed: Feed, number: int) -> None:
    feed.put(f"{number}.ndjson", {"id": number, "at": "2026-05-30T12:00:00Z"})


def of_day(feed: Feed) -> list[int]:
    place = str(feed.folder / "lake/silver/daily")
    if not DeltaTable.is_deltatable(place):
        return []
    return sorted(DeltaTable(place).to_pyarrow_table().column("id").to_pylist())


@pytest.mark.full
def test_loads_upstream_meanwhile(chain: Feed) -> None:
    """What an upstream loads while its downstream is being loaded is read by the run after that one."""
    gate, begun = chain.folder / "gate", chain.folder / "begun"
    waits = LONG.format(gate=str(gate), begun=str(begun)).replace("def wait", "def step")
    (chain.folder / "daily_step.py").write_text(waits)
    with watching(chain):
        put_row(chain, 1)
        until(begun.exists)
        put_row(chain, 2)
        until(lambda: chain.ids == [1, 2])
        time.sleep(1)  # it is known to have loaded that
        gate.touch()
        until(lambda: of_day(chain) == [1, 2])


@pytest.mark.full
def test_loaded_by_others(chain: Feed) -> None:
    """What another process has loaded upstream is read by what is downstream of it, too."""
    (chain.folder / "daily_step.py").write_text("def step(rows, batch):\n    return rows\n")
    with watching(chain, "daily"):
        put_row(chain, 1)
        chain.command("run", NAME)
        until(lambda: of_day(chain) == [1])
        put_row(chain, 2)
        assert chain.cli("run", NAME).json[0]["status"] == "committed"
        until(lambda: of_day(chain) == [1, 2])


@contextmanager
def in_this_process(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Watch, DagsterInstance]]:
    """What the command does, but for its process."""
    monkeypatch.setenv(SPARK_REMOTE, str(feed.engine.remote))
    home = feed.folder / "home"
    home.mkdir()
    with DagsterInstance.from_config(str(home)) as instance:
        watch = Watch(Context(feed.folder), (), instance, 4, lambda: None)
        try:
            yield watch, instance
        finally:
            watch.end()


def look_until(watch: Watch, condition: Callable[[], bool]) -> None:
    def looked() -> bool:
        watch.run_new_work()
        return condition()

    until(looked)


@pytest.mark.full
def test_never_started(
    short: Feed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that waits for a daemon that is gone is told of, and waited for until somebody ends it."""
    monkeypatch.setattr("partitions.watch.reminders.LONG", 0.2)
    with in_this_process(short, monkeypatch) as (watch, instance):
        queued = create_run_for_test(instance, status=DagsterRunStatus.NOT_STARTED, tags={DATAFLOW_TAG: NAME})
        short.put("2.ndjson", 2)
        told = f"run {queued.run_id[:8]} is in flight, and new data waits until it ends"
        look_until(watch, lambda: told in "".join(capsys.readouterr()))
        assert short.ids == [1]
        instance.report_run_canceled(queued)
        look_until(watch, lambda: short.ids == [1, 2])


@pytest.mark.full
def test_fresh_chain(chain: Feed) -> None:
    """What reads a table that its dataflow has yet to make waits for it, without a run that fails."""
    (chain.folder / "daily_step.py").write_text("def step(rows, batch):\n    return rows\n")
    with watching(chain):
        time.sleep(2)
        put_row(chain, 1)
        until(lambda: of_day(chain) == [1], 30)  # and no pause
    assert {run.status for run in runs(chain)} == {DagsterRunStatus.SUCCESS}


@pytest.mark.full
def test_failing_downstream(chain: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataflow that fails after its upstream has loaded something is tried again until that is read."""
    monkeypatch.setattr("partitions.pauses.FIRST", 0.5)
    (chain.folder / "daily_step.py").write_text("def step(rows, batch):\n    return rows\n")
    put_row(chain, 1)
    chain.command("run", "--all")
    (chain.folder / "failing_step.py").write_text(FAILING.format(failed=str(chain.folder / "failed")))
    definition = chain.folder / "dataflows/daily.yaml"
    definition.write_text(definition.read_text().replace("daily_step:", "failing_step:"))
    chain.command("state", "accept", "daily", "--yes", "--reason", "another step")
    put_row(chain, 2)
    with in_this_process(chain, monkeypatch) as (watch, _):
        look_until(watch, lambda: of_day(chain) == [1, 2])
    assert (chain.folder / "failed").exists()


def test_killed(short: Feed) -> None:
    """What remains of one that was killed keeps neither the next one nor a run from working."""
    killed = short.start("watch")
    until(lambda: _is_watched(short))
    killed.kill()
    killed.communicate()
    short.put("2.ndjson", 2)
    assert short.cli("run", NAME).json[0]["status"] == "committed"
    with watching(short):
        short.put("3.ndjson", 3)
        until(lambda: short.ids == [1, 2, 3])


@pytest.mark.full
def test_several_at_once(short: Feed) -> None:
    """Of several that start in the same moment one stays."""
    started = [short.start("watch", "--every", "0.3") for _ in range(3)]
    until(lambda: sum(process.poll() is not None for process in started) == 2)
    ended = [process for process in started if process.poll() is not None]
    (left,) = (process for process in started if process not in ended)
    short.put("2.ndjson", 2)
    until(lambda: short.ids == [1, 2])
    told = [process.communicate()[1] for process in ended]
    assert [process.returncode for process in ended] == [3, 3], told
    left.send_signal(signal.SIGINT)
    left.communicate(timeout=PATIENCE)
    assert left.returncode == 0


@pytest.mark.full
def test_home(short: Feed, tmp_path: Path) -> None:
    """Where DAGSTER_HOME is set its runs are there."""
    home = tmp_path / "home"
    home.mkdir()
    kept = Feed(short.folder, short.engine, short.definition, environment={"DAGSTER_HOME": str(home)})
    with watching(kept):
        kept.put("2.ndjson", 2)
        until(lambda: kept.ids == [1, 2])
    with DagsterInstance.from_config(str(home)) as instance:
        assert [run.status for run in instance.get_runs()] == [DagsterRunStatus.SUCCESS]
    assert not (short.folder / ".strandline" / "dagster").exists()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_engine_that_comes_back(short: Feed, tmp_path: Path) -> None:
    """An engine that dies fails the runs of that time; once it is back under its address, what they left is loaded."""
    server = ConnectServer(
        SparkEngine(master="local[2]", conf=QUICK, cache=cache_folder()), tmp_path / "connect.log"
    )
    server.start()
    try:
        feed = Feed(short.folder, SparkEngine(remote=server.url), short.definition)
        with watching(feed):
            feed.put("2.ndjson", 2)
            until(lambda: feed.ids == [1, 2], 180)
            server.stop()
            feed.put("3.ndjson", 3)
            until(lambda: runs(feed)[0].status == DagsterRunStatus.FAILURE, 180)
            server.start()
            feed.put("4.ndjson", 4)  # what is new ends the pause
            until(lambda: feed.ids == [1, 2, 3, 4], 300)
    finally:
        server.stop()
