"""What a run leaves to a warm engine: the next run's first write finds the table's state there (docs/explanation/adr/0011)."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import SparkConnectClient

from partitions.loads import Append
from resources.connections.places import Place
from resources.loop.rows.transform import Batch, transformed
from resources.spark.background import run_detached
from resources.spark.connect import has_shared_code
from resources.spark.engine import SparkEngine
from resources.spark.settings import SMALL, tune
from resources.tables.contract.commits import Tag
from resources.tables.delta.table import DeltaLakeTable
from tests.integration.conftest import MakeFeed
from tests.integration.test_dagster import run
from tests.support.environment import clean_environment
from tests.support.feed import NAME, Feed

PATIENCE = 60


@pytest.fixture
def preparation(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Set when it began; it lasts until the second one is set."""
    began, may_end = threading.Event(), threading.Event()

    def prepare_next(self: DeltaLakeTable, spark: SparkSession) -> None:
        began.set()
        may_end.wait(PATIENCE)

    monkeypatch.setattr(DeltaLakeTable, "prepare_next", prepare_next)
    yield began, may_end
    may_end.set()


def test_a_run_that_wrote_prepares_the_next_write_and_does_not_wait_for_it(
    feed: Feed, preparation: tuple[threading.Event, threading.Event]
) -> None:
    began, may_end = preparation
    feed.put("1.ndjson", 1)
    assert run(feed).success
    assert not may_end.is_set()
    assert began.wait(PATIENCE)


def test_a_run_with_nothing_to_do_prepares_nothing(
    feed: Feed, preparation: tuple[threading.Event, threading.Event]
) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    before = set(threading.enumerate())
    assert run(feed).success
    assert [one for one in threading.enumerate() if one not in before] == []
    assert not preparation[0].is_set()


def test_what_fails_in_it_is_heard_by_nobody(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    before = set(threading.enumerate())
    run_detached(engine.session(), lambda spark: spark.sql("SELECT nothing FROM nowhere").collect())
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    assert heard == []


def test_it_changes_nothing_whatever_the_table_is_called(engine: SparkEngine, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "a `b` c'd%20"))
    target, spark = DeltaLakeTable(place), engine.session()
    target.write(spark.range(3), Append(), Tag("app", 1, "owner"), "{}", base=None)
    before = sorted(path for path in tmp_path.rglob("*"))
    target.prepare_next(spark)
    assert sorted(path for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("usual", [("true", "FALLBACK"), ("false", "NO_CODEGEN")])
def test_a_small_write_is_not_compiled(engine: SparkEngine, usual: tuple[str, str]) -> None:
    keys = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    session = engine.session()
    for key, value in zip(keys, usual, strict=True):
        session.conf.set(key, value)
    seen = []
    for size in (None, SMALL - 1, None, 0, SMALL):
        tune(session, size)
        seen.append(tuple(session.conf.get(key) for key in keys))
    small = ("false", "NO_CODEGEN")
    assert seen == [usual, small, usual, small, usual]


@pytest.mark.parametrize("step", [None, "SELECT id, id AS ID_again FROM input"])
def test_what_is_compiled_for_a_slice_serves_the_next_one(
    engine: SparkEngine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make_feed: MakeFeed,
    step: str | None,
) -> None:
    """Its moment is data of the query, not code."""
    definition = {"sql": step} if step else {}
    dataflow, session, code = make_feed(**definition).dataflow, engine.session(), []
    for key, value in (
        ("spark.sql.codegen.wholeStage", "true"),
        ("spark.sql.codegen.factoryMode", "FALLBACK"),
    ):
        session.conf.set(key, value)
    source = session.read.schema("id long, text string").json(str(tmp_path))
    for time in ("2026-01-01T00:00:00Z", "2026-01-02T03:04:05.678Z"):
        batch = Batch("orders", 1, None, None, "run", time)
        rows = transformed(session, dataflow, source, batch, tmp_path, compiled=["id", "text"])
        rows.explain("codegen")
        code.append(re.sub(r"#\d+L?", "", capsys.readouterr().out.partition("Generated code:")[2]))
    assert code[0] == code[1] != ""
    one = session.createDataFrame([(1, None), (None, "x")], "id long, text string")
    given = transformed(session, dataflow, one, batch, tmp_path, compiled=["id", "text"])
    plain = transformed(session, dataflow, one, batch, tmp_path)
    assert given.collect() == plain.collect()
    assert given.dtypes == plain.dtypes


ISOLATION = "spark.sql.artifact.isolation.enabled"


def test_a_session_takes_compiled_code_from_others_and_nothing_else(engine: SparkEngine) -> None:
    first, second = engine.session(), engine.session()
    first.conf.set("strandline.known", "mine")
    first.range(1).createOrReplaceTempView("mine")
    assert [has_shared_code(each) for each in (first, second)] == [True, True]
    assert [each.conf.get(ISOLATION) for each in (first, second)] == ["false", "false"]
    assert first.session_id != second.session_id  # type: ignore[attr-defined]  # of Spark Connect
    assert second.conf.get("strandline.known", None) is None
    assert not second.catalog.tableExists("mine")
    assert second.conf.get("spark.sql.session.timeZone") == "UTC"
    assert second.conf.get("spark.sql.ansi.enabled") == "true"


def test_functions_that_run_in_spark_have_a_session_of_their_own(make_feed: MakeFeed) -> None:
    feed = make_feed()
    plain = feed.dataflow
    step = plain.model_copy(update={"transform": "module:function"})
    sessions = [feed.platform.engine(each).session() for each in (plain, step)]
    assert [has_shared_code(each) for each in sessions] == [True, False]
    assert [each.conf.get(ISOLATION) for each in sessions] == ["false", "true"]


def test_a_server_without_clones_serves(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(client: SparkConnectClient, new_session_id: str | None = None) -> None:
        raise RuntimeError("UNIMPLEMENTED")

    monkeypatch.setattr(SparkConnectClient, "clone", refuse)
    session = engine.session()
    assert not has_shared_code(session)
    assert session.range(3).count() == 3


def test_spark_in_the_runs_own_process_is_asked_for_nothing() -> None:
    asked: list[Any] = []
    run_detached(object(), asked.append)  # type: ignore[arg-type]  # any session that is not a Connect server's
    assert asked == []


def test_a_session_that_the_server_closed_is_in_nobodys_way(make_feed: MakeFeed, engine: SparkEngine) -> None:
    feed = make_feed(source={"schema": "id long"})
    feed.put("1.ndjson", 1)

    def load_after_the_first_of_the_thread_was_closed() -> int:
        cast("Any", engine.session()).client.release_session()
        return feed.load().files

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(load_after_the_first_of_the_thread_was_closed).result() == 1


def test_a_run_that_nobody_is_told_of_imports_no_dagster(make_feed: MakeFeed) -> None:
    feed = make_feed()
    feed.put("1.ndjson", 1, 2)
    code = (
        f"import sys, atexit, runpy; sys.argv[1:] = ['run', '{NAME}', '--project', {str(feed.folder)!r}]\n"
        "heavy = ('dagster', 'sqlalchemy')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "runpy.run_module('platform_assets.cli', run_name='__main__')\n"
    )
    environment = clean_environment() | {"STRANDLINE_SPARK_REMOTE": str(feed.engine.remote)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stderr.splitlines()[-1] == "[]"
    assert feed.ids == [1, 2]
