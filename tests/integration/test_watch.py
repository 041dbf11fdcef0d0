"""``strandline watch``: a process that stays, loads what arrives, and works for ``strandline run`` (docs/watch.md)."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance, DagsterRunStatus

from platform_assets.cli import resident
from platform_assets.installation import cache_folder
from resources.connect_server import ConnectServer
from resources.spark import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.engine import QUICK
from tests.support.feed import NAME, Feed

PATIENCE = 60.0


@contextmanager
def watching(feed: Feed, *arguments: str, told: list[str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """The process, as long as the block runs; it must end by itself when it is asked to. ``told`` gets the status of each run that it has told."""
    process = feed.start("watch", "--every", "0.3", *arguments)
    try:
        until(lambda: process.poll() is not None or _listens(feed))
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
    with DagsterInstance.from_config(str(feed.folder / ".strandline" / "dagster")) as instance:
        return list(instance.get_runs())


def _listens(feed: Feed) -> bool:
    path = resident.address(feed.folder)
    return path is not None and path.exists()


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
    with watching(short, told=told):
        short.put("2.ndjson", 2)
        until(lambda: [run.status for run in runs(short)] == [DagsterRunStatus.SUCCESS])
        assert short.ids == [1, 2]
        short.put("3.ndjson", 3)
        until(lambda: short.ids == [1, 2, 3])
        time.sleep(1)  # looks that find nothing
    assert [run.status for run in runs(short)] == [DagsterRunStatus.SUCCESS] * 2
    assert told == ["committed"] * 2  # a line of JSON for each, and nothing else on stdout
    with DagsterInstance.from_config(str(short.folder / ".strandline" / "dagster")) as instance:
        event = instance.get_latest_materialization_event(AssetKey(["bronze", NAME]))
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.metadata["rows"].value == 1


def test_asked(short: Feed) -> None:
    """``strandline run`` lets it work, and answers as it does alone."""
    with watching(short, NAME):
        answer = short.cli("run", NAME)
        assert (answer.code, [document["status"] for document in answer.json]) == (0, ["nothing"])
        assert answer.json[0]["run_id"] in [run.run_id for run in runs(short)]
        refused = short.cli("run", "nobody")
        assert (refused.code, refused.error["code"]) == (2, "unknown_dataflow")
        assert "known are" in refused.error["message"]
        (short.folder / "dataflows/other.yaml").write_text(
            (short.folder / f"dataflows/{NAME}.yaml").read_text().replace("layer: bronze", "layer: silver")
        )
        for names in (["other"], [NAME, "other"], ["--all"]):  # which it does not watch: they run alone
            assert short.cli("run", *names).code == 0
        assert len(runs(short)) == 1
        second = short.cli("watch")
        assert (second.code, second.error["code"]) == (3, "held")
    assert not _listens(short)
    assert short.cli("run", NAME).code == 0


def test_failing(short: Feed) -> None:
    """A file that cannot be read is tried once, and again after a pause, as by a sensor; once it is repaired at once."""
    with watching(short):
        short.put_text("2.ndjson", '{"id": "two"}\n')
        until(lambda: bool(runs(short)) and runs(short)[0].status == DagsterRunStatus.FAILURE)
        time.sleep(1.5)
        assert len(runs(short)) == 1
        short.put("2.ndjson", 2)
        until(lambda: short.ids == [1, 2])


def test_changed(short: Feed) -> None:
    """Changed project files are taken; one with errors leaves the others at work."""
    with watching(short):
        other = Feed(short.folder, short.engine, name="other")
        other.put("1.ndjson", 7)
        until(lambda: other.ids == [7])
        (other.folder / "dataflows" / "other.yaml").write_text("source: 7\n")
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


def test_long(short: Feed) -> None:
    """A load that takes long holds up no other dataflow; who asks for it waits for its end, and hears of nothing else."""
    gate, begun = short.folder / "gate", short.folder / "begun"
    (short.folder / "long_step.py").write_text(LONG.format(gate=str(gate), begun=str(begun)))
    long = Feed(short.folder, short.engine, {"transform": "long_step:wait"}, name="a_long_one")
    long.put("1.ndjson", 1)
    with watching(short):
        until(begun.exists)
        asked = long.start("run", "a_long_one")
        for number in (2, 3):
            short.put(f"{number}.ndjson", number)
            until(lambda: short.ids[-1] == number)  # noqa: B023 - called in this round
        assert short.cli("run", NAME).json[0]["status"] == "nothing"
        assert (long.ids, asked.poll()) == ([], None)
        gate.touch()
        out, err = asked.communicate(timeout=PATIENCE)
        assert long.ids == [1]
    assert asked.returncode == 0, err
    assert [(one["dataflow"], one["status"]) for one in json.loads(out)] == [("a_long_one", "nothing")]
    assert "slice" not in err  # of the others' loads


def test_edited(short: Feed) -> None:
    """A run that is asked for right after an edit is of what is written there now."""
    with watching(short, "--every", "60"):
        assert (
            short.cli("run", NAME).json[0]["status"] == "nothing"
        )  # it has looked once, and looks again in a minute
        before = len(runs(short))
        other = Feed(short.folder, short.engine, name="other")
        other.put("1.ndjson", 7)
        assert other.cli("run", "other").json[0]["status"] == "committed"
        assert len(runs(short)) == before + 1  # it was the resident process that made it


def test_killed(short: Feed) -> None:
    """What is left of one that was killed keeps neither the next one nor a run from working."""
    killed = short.start("watch")
    until(lambda: _listens(short))
    killed.kill()
    killed.communicate()
    assert _listens(short)  # its socket is still there
    short.put("2.ndjson", 2)
    assert short.cli("run", NAME).json[0]["status"] == "committed"
    with watching(short):
        short.put("3.ndjson", 3)
        until(lambda: short.ids == [1, 2, 3])


def test_several_at_once(short: Feed) -> None:
    """Of several that start in the same moment one stays."""
    started = [short.start("watch", "--every", "0.3") for _ in range(3)]
    until(lambda: sum(process.poll() is not None for process in started) == 2)
    ended = [process for process in started if process.poll() is not None]
    (left,) = (process for process in started if process not in ended)
    until(lambda: _listens(short))
    short.put("2.ndjson", 2)
    until(lambda: short.ids == [1, 2])
    told = [process.communicate()[1] for process in ended]
    assert [process.returncode for process in ended] == [3, 3], told
    left.send_signal(signal.SIGINT)
    left.communicate(timeout=PATIENCE)
    assert left.returncode == 0


def test_removed(short: Feed) -> None:
    """A dataflow whose file is removed is watched no more; settings with errors leave all as it was."""
    with watching(short):
        other = Feed(short.folder, short.engine, name="other")
        other.put("1.ndjson", 7)
        until(lambda: other.ids == [7])
        (other.folder / "dataflows" / "other.yaml").unlink()
        (short.folder / "platform.yaml").write_text("lake: [\n")
        short.put("2.ndjson", 2)
        until(lambda: short.ids == [1, 2])


def test_home(short: Feed, tmp_path: Path) -> None:
    """Where DAGSTER_HOME is set its runs are there; a run that is asked for elsewhere works alone."""
    home = tmp_path / "home"
    home.mkdir()
    kept = Feed(short.folder, short.engine, short.definition, environment={"DAGSTER_HOME": str(home)})
    with watching(kept):
        kept.put("2.ndjson", 2)
        until(lambda: kept.ids == [1, 2])
        elsewhere = {"DAGSTER_HOME": str(tmp_path / "other")}
        (tmp_path / "other").mkdir()
        alone = Feed(short.folder, short.engine, short.definition, environment=elsewhere).cli("run", NAME)
        assert alone.json[0]["status"] == "nothing"
    with DagsterInstance.from_config(str(home)) as instance:
        assert [run.status for run in instance.get_runs()] == [DagsterRunStatus.SUCCESS]
        assert alone.json[0]["run_id"] not in [run.run_id for run in instance.get_runs()]
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
