"""An export that is imported after the state was lost: all is as before, and the next run loads what it would have loaded."""

from __future__ import annotations

import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.kinds import all_decisions as decisions
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks.blobs import Blobs
from resources.watermarks.log import WatermarkLog
from tests.integration.conftest import MakeFeed, loaded_one_by_one
from tests.support.columns import at
from tests.support.columns import on_lake as rows_on_lake
from tests.support.feed import NAME, Answer, Feed, dies_after
from tests.support.window_feed import event, watermark
from tests.support.window_feed import on_lake as windows_on_lake

pytestmark = pytest.mark.without_jvm

NOW = "2026-06-01"
_CHANGED_BY_A_DECISION = {"state_number", "held_by", "last_run"}


def export(feed: Feed) -> str:
    """Write an export; return its path."""
    file = feed.folder / "export.jsonl"
    file.write_text(feed.cli("state", "export", NAME).out)
    return str(file)


def lose_and_import(feed: Feed, file: str | None = None) -> Answer:
    """Export the state, lose it, and import it."""
    file = file or export(feed)
    shutil.rmtree(feed.state)
    return feed.decide("import", file, now=NOW)


class _Dying:
    """Blobs of a process that dies once it has written so many objects."""

    def __init__(self, blobs: Blobs, writes: int) -> None:
        self._blobs, self._left = blobs, writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write, as long as the process lives."""
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return self._blobs.put_if_absent(key, data)


def imports_and_dies(feed: Feed, file: str, writes: int) -> bool:
    """Import in a process that dies after so many writes; return whether it died."""
    platform = feed.platform
    vars(platform)["log"] = WatermarkLog(_Dying(platform.log.blobs, writes))
    try:
        lines = Path(file).read_text().splitlines()
        decisions.decide(platform, feed.dataflow, decisions.import_entries("x", lines), "x")
    except KeyboardInterrupt:
        return True
    return False


def listed(feed: Feed) -> dict[str, Any]:
    """Return what `strandline list` shows, but for what each decision changes."""
    (document,) = feed.cli("list", "--now", NOW).json
    return {key: value for key, value in document.items() if key not in _CHANGED_BY_A_DECISION}


def assert_same_after_import(feed: Feed) -> None:
    """Check that history, list and the next plan are those of before."""

    def planned() -> Any:
        (plan,) = feed.cli("plan", NAME, "--now", NOW).json
        return plan["why"], plan["slices"], plan["skips"]

    before = feed.entries, listed(feed), planned()
    lose_and_import(feed)
    assert (feed.entries[:-1], listed(feed), planned()) == before
    assert (feed.entries[-1].why, feed.entries[-1].number) == ("import", before[0][-1].number + 1)
    assert feed.entries[-1].total_rows == before[0][-1].total_rows


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine) -> Feed:
    """Three entries, of a file each."""
    return loaded_one_by_one(tmp_path / "project", engine, 3)


class TestFiles:
    def test_history_list_and_plan_are_the_same(self, feed: Feed) -> None:
        feed.put("4.ndjson", 4)
        assert_same_after_import(feed)
        feed.load()
        assert (feed.ids, feed.path) == ([1, 2, 3, 4], "4.ndjson")
        feed.decide("rewind", "--to", "2", "--replace")
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_a_file_that_came_late_is_late_still(self, feed: Feed) -> None:
        feed.put("2-late.ndjson", 20)
        lose_and_import(feed)
        assert feed.cli("late", NAME).json["late"] == ["2-late.ndjson"]
        assert feed.ids == [1, 2, 3, 20]

    def test_a_late_file_that_was_loaded_is_not_late_again(self, feed: Feed) -> None:
        feed.put("2-late.ndjson", 20)
        feed.cli("late", NAME)
        lose_and_import(feed)
        assert feed.cli("late", NAME).json["late"] == []
        assert feed.ids == [1, 2, 3, 20]

    def test_quarantined_late_files_wait_for_their_release(self, make_feed: MakeFeed) -> None:
        feed = make_feed(late_files="quarantine")
        feed.put("2.ndjson", 2)
        feed.load()
        feed.put("1.ndjson", 1)
        feed.cli("late", NAME)
        assert_same_after_import(feed)
        assert list(feed.quarantined) == ["1.ndjson"]
        feed.command("files", "release", NAME, "1.ndjson")
        feed.load()
        assert feed.ids == [1, 2]

    def test_a_tracked_set_loads_only_what_it_has_not_loaded(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"tracking": "set"})
        feed.put("b.ndjson", 1)
        feed.load()
        feed.put("a.ndjson", 2)
        assert_same_after_import(feed)
        feed.load()
        assert feed.ids == [1, 2]

    def test_lists_that_were_merged_come_back(self, feed: Feed) -> None:
        for number in range(4, 40):
            feed.put(f"x{number:02}.ndjson", number)
        feed.load()
        assert list((feed.state / "ingested").glob("*.parquet"))
        assert_same_after_import(feed)
        assert feed.cli("late", NAME).json["late"] == []

    @pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN])
    def test_a_slice_that_a_dead_run_left_open_is_there_once(self, feed: Feed, step: Step) -> None:
        feed.put("4.ndjson", 4)
        with pytest.raises(KeyboardInterrupt):
            feed.run(dies_after(step))
        lose_and_import(feed)
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_rows_that_an_older_export_does_not_know_are_there_once(self, feed: Feed) -> None:
        file = export(feed)
        feed.put("4.ndjson", 4)
        feed.put("2-late.ndjson", 20)
        feed.load()
        feed.cli("late", NAME)
        answer = lose_and_import(feed, file)
        assert "each commit deletes the rows of its own files and inserts them again" in answer.err
        assert "taken as ingested, so neither loaded nor late: 1 file of the source" in answer.err
        feed.load()
        feed.cli("late", NAME)
        assert feed.ids == [1, 2, 3, 4, 20]

    def test_an_older_export_takes_a_log_back_that_is_there(self, feed: Feed) -> None:
        file = export(feed)
        feed.put("4.ndjson", 4)
        feed.load()
        feed.decide("import", file)
        assert ([entry.number for entry in feed.entries], feed.path) == ([1, 2, 3, 4, 5], "3.ndjson")
        feed.load()
        assert (feed.ids, feed.path) == ([1, 2, 3, 4], "4.ndjson")

    def test_an_import_that_died_is_finished_by_its_command(self, feed: Feed) -> None:
        file = export(feed)
        shutil.rmtree(feed.state)
        feed.decide("import", file)
        for entry in sorted((feed.state / "entries").glob("*"))[:2]:  # the newest come last
            entry.unlink()
        (feed.state / "intents" / "0000000004.json").unlink()
        feed.load()
        feed.decide("import", file)
        feed.load()
        assert (feed.ids, [entry.number for entry in feed.entries]) == ([1, 2, 3], [1, 2, 3, 4])
        assert feed.entries[-1].why == "import"

    def test_an_import_that_dies_before_its_entry_leaves_the_restored_state(
        self, feed: Feed, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines = feed.cli("state", "export", NAME).out.splitlines()
        shutil.rmtree(feed.state)

        def dies(*arguments: Any, **named: Any) -> Any:
            raise KeyboardInterrupt

        decision = decisions.import_entries("x", lines)
        with monkeypatch.context() as patch:
            patch.setattr(WatermarkLog, "append", dies)
            with pytest.raises(KeyboardInterrupt):
                decisions.decide(feed.platform, feed.dataflow, decision, "x")
        feed.put("4.ndjson", 4)
        feed.load()
        assert (feed.ids, [entry.number for entry in feed.entries][:3]) == ([1, 2, 3, 4], [1, 2, 3])

    def test_an_import_that_dies_at_any_write_loads_nothing_twice_and_is_repeated(
        self, feed: Feed, tmp_path: Path
    ) -> None:
        file = export(feed)
        feed.put("4.ndjson", 4)
        shutil.rmtree(feed.state)
        stops: list[str | None] = []
        dies = True
        while dies:
            copy = feed.copy(tmp_path / f"dies{len(stops)}")
            dies = imports_and_dies(copy, file, writes=len(stops))
            error = copy.run().error
            stops.append(error.code if error else None)
            assert copy.ids == ([1, 2, 3] if error else [1, 2, 3, 4])
            copy.decide("import", file)
            copy.load()
            assert copy.ids == [1, 2, 3, 4]
            assert [entry.why for entry in copy.entries[:3]] == ["run", "run", "run"]
        assert [code for code, _ in groupby(stops)] == ["state_lost", "foreign_tag", None]

    def test_no_import_restores_a_log_that_a_run_works_on(self, feed: Feed) -> None:
        feed.decide("set", '{"path": "3.ndjson"}')
        file = export(feed)
        shutil.rmtree(feed.state)
        feed.decide("import", file)
        for folder in ("entries", "intents"):  # the state before it, of a backup
            for object_ in (feed.state / folder).iterdir():
                if int(object_.stem[-10:]) > 3:
                    object_.unlink()
        feed.put("4.ndjson", 4)
        answers = []

        def imports(step: Step, line: str) -> None:
            if step is Step.INTENT_PUT:
                answers.append(feed.cli("state", "import", NAME, file, "--reason", "x", "--yes").code)

        assert (feed.run(imports).status, answers, feed.ids) == ("committed", [3], [1, 2, 3, 4])

    def test_a_reset_that_has_not_emptied_the_table_still_does(self, feed: Feed) -> None:
        feed.decide("reset", "--replace")
        lose_and_import(feed)
        feed.load()
        assert feed.ids == [1, 2, 3]

    def test_loaded_files_without_a_row_in_the_table_are_named(self, feed: Feed) -> None:
        DeltaTable(str(feed.table)).delete("id = 2")
        told = lose_and_import(feed).err
        assert "count as loaded, although the table holds no row of them: 1 file (2.ndjson)" in told
        feed.load()
        assert (feed.cli("late", NAME).json["late"], feed.ids) == ([], [1, 3])

    def test_entries_alone_are_no_export(self, feed: Feed) -> None:
        file = Path(export(feed))
        file.write_text("\n".join(line for line in file.read_text().splitlines() if '"object"' not in line))
        answer = feed.cli("state", "import", NAME, str(file), "--reason", "x", "--yes")
        assert (answer.code, "with the objects of the log" in answer.error["message"]) == (2, True)


@pytest.mark.needs_spark
class TestRowsAndWindows:
    @pytest.mark.parametrize("format_", ["delta", "iceberg", "parquet"])
    def test_rows_above_a_column_are_loaded_once(
        self, tmp_path: Path, engine: SparkEngine, format_: str
    ) -> None:
        flow, table = rows_on_lake(tmp_path, engine, target={"format": format_})
        table.add({"id": 1, "at": at(1), "value": 1})
        flow.run()
        table.add({"id": 2, "at": at(2), "value": 2})
        assert_same_after_import(flow.feed)
        flow.run()
        assert flow.ids == [1, 2]

    def test_rows_that_an_older_export_does_not_know_are_there_once(
        self, tmp_path: Path, engine: SparkEngine
    ) -> None:
        flow, table = rows_on_lake(tmp_path, engine)
        table.add({"id": 1, "at": at(1), "value": 1})
        flow.run()
        file = export(flow.feed)
        table.add({"id": 2, "at": at(2), "value": 2})
        flow.run()
        answer = lose_and_import(flow.feed, file)
        assert "each commit deletes what it reads of them, and inserts it again" in answer.err
        flow.run()
        assert (flow.ids, flow.watermark) == ([1, 2], {"at": at(2)})

    def test_windows_that_an_older_export_does_not_know_are_there_once(
        self, tmp_path: Path, engine: SparkEngine
    ) -> None:
        windows = windows_on_lake(tmp_path, engine, watermark=watermark(), target={"load": "append"})
        windows.table.put(event(1, "2020-01-01", "a"))
        windows.run("2020-01-02")
        file = export(windows.feed)
        windows.table.put(event(2, "2020-01-02", "a"))
        windows.run("2020-01-03")
        shutil.rmtree(windows.feed.state)
        windows.feed.decide("import", file, now="2020-01-03")
        windows.run("2020-01-03")
        windows.run("2020-01-03")
        assert windows.feed.ids == [1, 2]
