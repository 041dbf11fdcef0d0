"""Each command that a stopped run or decision names leads on: it is run, and the rows are as it says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from resources.kinds.path.planning import PathPlanning
from resources.loop import verifying
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed, loaded_one_by_one
from tests.support.feed import NAME, Feed, dies_after
from tests.support.followed import follow
from tests.support.moves import restore

pytestmark = pytest.mark.without_jvm


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine) -> Feed:
    """A dataflow that has loaded the rows 1 to 4, each from its own file, and later 5."""
    made = loaded_one_by_one(tmp_path / "project", engine, 2)
    shutil.copytree(made.state, made.folder / "state of 2")
    shutil.copytree(made.table, made.folder / "table of 2")
    made.put("3.ndjson", 3)
    made.put("4.ndjson", 4)
    made.load()
    (made.folder / "export.jsonl").write_text(made.cli("state", "export", NAME).out)
    return made


def put_back(feed: Feed, what: str, to: Path) -> None:
    shutil.rmtree(to)
    shutil.copytree(feed.folder / what, to)


def lose_the_state(feed: Feed) -> None:
    shutil.rmtree(feed.state)


def restore_an_older_state(feed: Feed) -> None:
    put_back(feed, "state of 2", feed.state)


def restore_an_older_table(feed: Feed) -> None:
    put_back(feed, "table of 2", feed.table)


def lose_a_data_file(feed: Feed) -> None:
    next(feed.table.glob("*.parquet")).unlink()


def make_the_table_again(feed: Feed) -> None:
    shutil.rmtree(feed.table)
    for number in range(6):
        write_deltalake(
            str(feed.table),
            pa.table({"id": [1], "_source_file": ["1.ndjson"]}),
            mode="append" if number else "error",
        )


def remove_the_table(feed: Feed) -> None:
    shutil.rmtree(feed.table)


ONCE = [1, 2, 3, 4, 5]
AGAIN = [1, 1, 2, 2, 3, 3, 4, 4, 5]


@pytest.mark.remedy("state_lost", "state adopt", "state import", "state reset", "state reset --replace")
@pytest.mark.remedy("foreign_tag", "state adopt", "state reset --replace")
@pytest.mark.remedy("table_behind", "state adopt", "state reset --replace")
@pytest.mark.remedy("table_missing", "state reset")
@pytest.mark.remedy("table_replaced", "state adopt", "state reset", "state reset --replace")
@pytest.mark.parametrize(
    ("damage", "code", "instead"),
    [
        (lose_the_state, "state_lost", {"state reset": AGAIN}),
        (restore_an_older_state, "foreign_tag", {}),
        (restore_an_older_table, "table_behind", {}),
        (remove_the_table, "table_missing", {}),
        (
            make_the_table_again,
            "table_replaced",
            {"state adopt": [*[1] * 6, 2, 3, 4, 5], "state reset": [*[1] * 7, 2, 3, 4, 5]},
        ),
    ],
)
def test_each_choice_about_a_damaged_state_or_table_leads_on(
    feed: Feed, damage: Callable[[Feed], None], code: str, instead: dict[str, list[int]]
) -> None:
    feed.put("5.ndjson", 5)
    damage(feed)
    error = feed.fail()
    assert error.code == code
    follow(feed, error.choices, ONCE, instead=instead, FILE=str(feed.folder / "export.jsonl"))


def crash(feed: Feed, step: Step) -> None:
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))


@pytest.mark.remedy("unknown_commit", "state adopt", "state reset --replace")
def test_each_choice_about_a_commit_whose_writer_is_unknown_leads_on(feed: Feed) -> None:
    feed.put("5.ndjson", 5)
    crash(feed, Step.WRITTEN)
    table = DeltaTable(str(feed.table))
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    table.create_checkpoint()
    for file in (feed.table / "_delta_log").glob("*.json"):
        if int(file.stem) < table.version():
            file.unlink()
    error = feed.fail()
    assert error.code == "unknown_commit"
    follow(feed, error.choices, ONCE)


@pytest.mark.remedy("skipped_write", "state adopt", "state reset --replace")
def test_each_choice_about_a_write_without_a_commit_leads_on(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.put("5.ndjson", 5)
    with monkeypatch.context() as patch:
        patch.setattr(verifying, "find_commit", lambda *_: None)
        error = feed.fail()
    assert error.code == "skipped_write"
    follow(feed, error.choices, ONCE)


@pytest.mark.remedy("intent_changed", "state accept", "run")
def test_each_choice_about_a_slice_of_an_older_definition_leads_on(feed: Feed) -> None:
    feed.put("5.ndjson", 5)
    crash(feed, Step.INTENT_PUT)
    feed.define(source={"options": {"primitivesAsString": "false"}})
    error = feed.fail()
    assert error.code == "intent_changed"
    accept, run = error.choices
    follow(feed, [accept], ONCE)
    restore(feed.folder.parent / "saved", feed.folder)
    feed.define(source={"options": None})  # the message says so
    follow(feed, [run], ONCE)


@pytest.mark.remedy("corrupt_state", "state adopt", "state reset --replace")
def test_each_choice_about_a_damaged_list_leads_on(feed: Feed) -> None:
    feed.put("5.ndjson", 5)
    for file in (feed.state / "files").iterdir():
        file.write_bytes(b"damaged")
    error = feed.cli("late", NAME).error
    assert error["code"] == "corrupt_state"
    follow(feed, error["choices"], ONCE)


@pytest.mark.remedy("state_object_missing", "state import", "state set", "state reset --replace")
def test_each_choice_about_a_lost_long_watermark_leads_on(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"scope": "partition"})
    for number in range(200):
        feed.put(f"part={number:03}{'x' * 40}/1.ndjson", number)
    feed.load()
    assert feed.newest is not None
    watermark = feed.newest.watermark
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", NAME).out)
    shutil.rmtree(feed.table / "_strandline")
    shutil.rmtree(feed.state)
    error = feed.cli("state", "adopt", NAME, "--reason", "x", "--yes").error
    assert error["code"] == "state_object_missing"
    feed.put(f"part=199{'x' * 40}/2.ndjson", 200)
    follow(feed, error["choices"], [*range(201)], FILE=str(export), JSON=watermark)


@pytest.mark.remedy("would_fall", "state rewind")
def test_a_set_below_the_watermark_names_the_rewind_that_reads_again(feed: Feed) -> None:
    error = feed.cli("state", "set", NAME, '{"path": "2.ndjson"}', "--reason", "x", "--yes").error
    assert error["code"] == "would_fall"
    follow(feed, error["choices"], [1, 2, 3, 3, 4, 4], NUMBER="2")


@pytest.mark.remedy("would_fall", "state show")
def test_a_slice_below_the_watermark_names_the_command_that_shows_it(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.put("5.ndjson", 5)
    with monkeypatch.context() as patch:
        patch.setattr(PathPlanning, "covers", lambda *_: False)
        error = feed.fail()
    assert (error.code, feed.open_intent) == ("would_fall", None)
    assert feed.command("state", "show", NAME, "--full").json["entry"]["watermark"] == {"path": "4.ndjson"}
    assert feed.load().rows == 1


@pytest.mark.remedy("would_rise", "run", "state set")
def test_each_choice_about_a_rewind_to_above_the_watermark_leads_on(feed: Feed) -> None:
    feed.decide("rewind", "--to", "1", "--replace")
    crash(feed, Step.APPENDED)
    error = feed.cli("state", "rewind", NAME, "--to", "4", "--reason", "x", "--yes").error
    assert error["code"] == "would_rise"
    follow(feed, error["choices"], [1, 2, 3, 4], JSON='{"path": "4.ndjson"}')


@pytest.mark.remedy("nothing_to_adopt", "state set", "state reset")
def test_each_choice_where_a_table_tells_no_state_leads_on(feed: Feed) -> None:
    shutil.rmtree(feed.state)
    shutil.rmtree(feed.table)
    write_deltalake(str(feed.table), pa.table({"id": [7]}))
    error = feed.cli("state", "adopt", NAME, "--reason", "x", "--yes").error
    assert error["code"] == "nothing_to_adopt"
    follow(
        feed,
        error["choices"],
        [4, 7],
        instead={"state reset": [1, 2, 3, 4, 7]},
        JSON='{"path": "3.ndjson"}',
    )


@pytest.mark.remedy("definition_changed", "state accept", "state reset", "state reset --replace")
def test_each_choice_about_a_changed_definition_leads_on(feed: Feed) -> None:
    feed.put("5.ndjson", 5)
    feed.define(source={"extensions": [".ndjson", ".jsonl"]})
    error = feed.fail()
    assert error.code == "definition_changed"
    follow(feed, error.choices, ONCE, instead={"state reset": AGAIN})


@pytest.mark.remedy("other_names", "state reset --replace")
def test_rows_under_other_names_are_loaded_again_by_the_reset_that_is_named(feed: Feed) -> None:
    (feed.folder / "moved").mkdir()
    for file in feed.landing.iterdir():
        file.rename(feed.folder / "moved" / f"0{file.name}")
    feed.define(source={"path": "./moved"})
    feed.decide("accept", "--below", "loaded")
    assert feed.load().status == "nothing"
    error = feed.cli("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes").error
    assert error["code"] == "other_names"
    follow(feed, error["choices"], [1, 2, 3, 4])


@pytest.mark.remedy("gone_files", "state rewind --gone delete", "state rewind --gone keep", "replay")
@pytest.mark.parametrize("by", ["rewind", "replay"])
def test_each_choice_about_loaded_files_that_are_gone_leads_on(make_feed: MakeFeed, by: str) -> None:
    feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
    for day in (1, 2, 3):
        feed.put(f"2026-01-0{day}/{day}.ndjson", day)
    feed.load()
    (feed.landing / "2026-01-02" / "2.ndjson").unlink()
    feed.put("2026-01-03/3.ndjson", 4)
    words = {
        "rewind": ("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes"),
        "replay": ("replay", NAME, "--start", "2026-01-01", "--end", "2026-01-04", "--replace"),
    }[by]
    error = feed.cli(*words).error
    assert error["code"] == "gone_files"
    delete, keep = error["choices"]
    follow(feed, [delete], [1, 4])
    restore(feed.folder.parent / "saved", feed.folder)
    follow(feed, [keep], [1, 2, 4])


@pytest.mark.remedy("deleted_rows", "state rewind --deleted load", "replay")
@pytest.mark.parametrize("by", ["rewind", "replay"])
def test_each_choice_about_rows_that_others_deleted_leads_on(make_feed: MakeFeed, by: str) -> None:
    feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
    for day in (1, 2, 3):
        feed.put(f"2026-01-0{day}/{day}.ndjson", day)
    feed.load()
    DeltaTable(str(feed.table)).delete("id = 2")
    words = {
        "rewind": ("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes"),
        "replay": ("replay", NAME, "--start", "2026-01-01", "--end", "2026-01-04", "--replace"),
    }[by]
    error = feed.cli(*words).error
    assert error["code"] == "deleted_rows"
    follow(feed, error["choices"], [1, 2, 3])
