"""A late or released file that is bad holds back nothing but itself: what is new is loaded, and the run fails naming the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.kinds.path.late import find_late, late_step
from resources.outcome import Outcome, Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed

pytestmark = pytest.mark.without_jvm

TORN = b"not gzip"


class Died(BaseException):
    """The process was killed."""


@pytest.fixture(scope="module")
def swept_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Two days are loaded; of the first, a good late file before and after a torn one were found; another day is new."""
    feed = Feed(tmp_path_factory.mktemp("bad") / "project", engine)
    feed.put("d=1/z.ndjson", 1)
    feed.put("d=2/b.ndjson", 2)
    feed.load()
    feed.put("d=1/a.ndjson", 10)
    feed.put_bytes("d=1/b.ndjson.gz", TORN)
    feed.put("d=1/c.ndjson", 11)
    find_late(feed.platform, feed.dataflow, NOW)
    feed.put("d=3/a.ndjson", 3)
    return feed


@pytest.fixture
def swept(swept_once: Feed, tmp_path: Path) -> Feed:
    """A copy of one's own."""
    return swept_once.copy(tmp_path / "swept")


def fails_naming(outcome: Outcome, *paths: str) -> str:
    """What a run says that has loaded all but these."""
    assert outcome.error is not None
    assert (outcome.status, outcome.error.exit_code, outcome.error.transient) == ("failed", 1, False)
    assert all(path in outcome.error.message for path in paths)
    assert "stays below" not in outcome.error.message
    return outcome.error.message


@pytest.mark.needs_spark
def test_new_files_and_the_good_late_ones_before_and_after_it_are_loaded(swept: Feed) -> None:
    outcome = swept.run()
    assert "late file d=1/b.ndjson.gz: cannot be read" in fails_naming(outcome, "d=1/b.ndjson.gz")
    assert (swept.ids, swept.path, swept.open_intent) == ([1, 2, 3, 10, 11], "d=3/a.ndjson", None)
    assert [entry.why for entry in swept.entries] == ["run", "run", "late"], "what is new goes first"
    again = swept.run()
    fails_naming(again, "d=1/b.ndjson.gz")
    assert (again.rows, swept.ids) == (0, [1, 2, 3, 10, 11])
    swept.put("d=1/b.ndjson.gz", 12)
    assert swept.load().late == 1
    assert (swept.ids, swept.path) == ([1, 2, 3, 10, 11, 12], "d=3/a.ndjson")
    assert swept.load().status == "nothing"


@pytest.mark.needs_spark
def test_several_of_them_are_all_named(swept: Feed) -> None:
    swept.put_bytes("d=1/d.ndjson.gz", TORN)
    swept.put_text("d=1/e.ndjson", '{"id": "none"}\n')
    swept.put_text("d=1/f.ndjson", '{"id": "none"}\n')
    find_late(swept.platform, swept.dataflow, NOW)
    told = fails_naming(swept.run(), "b.ndjson.gz", "d.ndjson.gz", "e.ndjson", "f.ndjson")
    assert "line 1: field id: expected bigint, found text" in told
    assert swept.ids == [1, 2, 3, 10, 11]


@pytest.mark.needs_spark
def test_a_released_one_holds_back_nothing_either(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put_bytes("1.ndjson.gz", TORN)
    feed.put("2.ndjson", 2)
    feed.load()
    feed.define(on_bad_file="stop")
    feed.command("files", "release", NAME, "1.ndjson.gz")
    feed.put("3.ndjson", 3)
    assert "released file 1.ndjson.gz" in fails_naming(feed.run(), "1.ndjson.gz")
    assert (feed.ids, feed.path) == ([2, 3], "3.ndjson")
    feed.put("1.ndjson.gz", 1)
    feed.load()
    assert feed.ids == [1, 2, 3]
    assert feed.load().status == "nothing"


@pytest.mark.needs_spark
def test_the_sweep_says_of_late_files_how_many_were_loaded_and_how_many_passed_over(swept: Feed) -> None:
    swept.define(on_bad_file="quarantine")
    found = swept.cli("late", NAME).json
    assert (found["ingested"], found["quarantined"], found["waiting"]["count"]) == (2, 1, 0)
    assert swept.ids == [1, 2, 10, 11]


@pytest.mark.needs_spark
def test_a_bad_new_file_stops_the_run_and_the_late_one_is_a_warning(swept: Feed) -> None:
    swept.put_bytes("d=3/b.ndjson.gz", TORN)
    outcome = swept.run()
    assert "d=3/b.ndjson.gz" in str(outcome.error)
    assert any("left out: late file d=1/b.ndjson.gz" in warning for warning in outcome.warnings)
    assert (swept.ids, swept.path) == ([1, 2, 3], "d=3/a.ndjson")


@pytest.mark.needs_spark
def test_the_run_after_one_that_died_before_a_bad_late_slice_loads_what_is_new(swept: Feed) -> None:
    def observer(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            raise Died

    with pytest.raises(Died):
        swept.run(observer)
    assert swept.open_intent is not None
    fails_naming(swept.run(), "d=1/b.ndjson.gz")
    fails_naming(swept.run(), "d=1/b.ndjson.gz")
    assert (swept.ids, swept.path) == ([1, 2, 3, 10, 11], "d=3/a.ndjson")


def test_one_that_changes_is_left_for_the_next_run(swept: Feed) -> None:
    swept.put("d=1/b.ndjson.gz", 12)
    touched: list[str] = []

    def observer(step: Step, line: str) -> None:
        if step is Step.PLANNED and not touched:
            touched.append(swept.put("d=1/b.ndjson.gz", 13, 14))

    outcome = swept.run(observer)
    assert "changed since it was listed" in fails_naming(outcome, "d=1/b.ndjson.gz")
    assert swept.ids == [1, 2, 3, 10, 11]
    swept.load()
    assert swept.ids == [1, 2, 3, 10, 11, 13, 14]


def test_a_late_file_that_changes_meanwhile_is_there_once_and_named(swept: Feed) -> None:
    swept.put("d=1/b.ndjson.gz", 12)
    touched: list[str] = []

    def observer(step: Step, line: str) -> None:
        if step is Step.WRITTEN and not touched:
            touched.append(swept.put("d=1/b.ndjson.gz", 13))

    outcome = swept.run(observer)
    assert outcome.error is not None
    assert (outcome.error.code, "each run tries" in outcome.error.message) == (
        "file_changed_while_read",
        False,
    )
    assert (swept.ids, swept.path) == ([1, 2, 3, 10, 11, 12], "d=3/a.ndjson")


@pytest.mark.needs_spark
def test_one_in_a_folder_of_a_new_column_holds_back_nothing(swept: Feed) -> None:
    (swept.landing / "d=1/b.ndjson.gz").unlink()
    swept.put("d=1/hour=1/a.ndjson", 99)
    find_late(swept.platform, swept.dataflow, NOW)
    told = fails_naming(swept.run(), "d=1/hour=1/a.ndjson")
    assert "hour" in told
    assert (swept.ids, swept.path) == ([1, 2, 3, 10, 11], "d=3/a.ndjson")


@pytest.mark.needs_spark
def test_the_command_loads_the_good_ones_and_fails_naming_the_bad_one(swept: Feed) -> None:
    answer = swept.cli("late", NAME)
    assert (answer.code, swept.ids) == (1, [1, 2, 10, 11])
    assert "late file d=1/b.ndjson.gz" in answer.out + answer.err
    assert "stays below" not in answer.out + answer.err


@pytest.mark.needs_spark
def test_rows_of_late_files_carry_the_id_of_a_run(swept: Feed) -> None:
    (swept.landing / "d=1/b.ndjson.gz").unlink()
    step = late_step(swept.platform, swept.dataflow, NOW)
    assert step.ingested is not None
    run_id = step.as_json()["run_id"]
    assert run_id
    assert [row for row in swept.rows("id", "_run_id") if row[0] >= 10] == [(10, run_id), (11, run_id)]
