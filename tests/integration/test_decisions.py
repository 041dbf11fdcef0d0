"""Decisions by hand: each shows what follows, appends one entry with its reason, and the next run does what was shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed, loaded_one_by_one
from tests.support.crash_runner import crash
from tests.support.feed import NAME, Answer, Feed, dies_after

pytestmark = pytest.mark.without_jvm


def lose_all_but_rows(feed: Feed) -> None:
    """Lose the state, and what the table's commits say of it."""
    for commit in sorted((feed.table / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for line in lines:
            line.get("commitInfo", {}).pop("userMetadata", None)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shutil.rmtree(feed.state)


@pytest.fixture(scope="module")
def loaded_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Three entries, of a file each."""
    return loaded_one_by_one(tmp_path_factory.mktemp("loaded") / "project", engine, 3)


@pytest.fixture
def feed(loaded_once: Feed, tmp_path: Path) -> Feed:
    """A copy of one's own."""
    return loaded_once.copy(tmp_path / "loaded")


class TestRewind:
    def test_what_lies_above_the_older_entry_is_read_again_and_append_doubles_it(self, feed: Feed) -> None:
        answer = feed.decide("rewind", "--to", "1")
        assert (
            "2 of these files were ingested before; load: append adds their rows a second time" in answer.err
        )
        assert (answer.json["number"], answer.json["entry"]["watermark"]) == (4, {"path": "1.ndjson"})
        assert (answer.json["entry"]["why"], answer.json["entry"]["reason"]) == ("rewind", "because")
        feed.load()
        assert feed.ids == [1, 2, 2, 3, 3]

    def test_with_replace_the_rows_of_each_file_make_room_in_the_same_commit(self, feed: Feed) -> None:
        feed.put("2.ndjson", 22, 23)
        answer = feed.decide("rewind", "--to", "1", "--replace")
        assert "deletes the rows of its own files and inserts them again" in answer.err
        feed.put("4.ndjson", 4)
        outcome = feed.load()
        assert (feed.ids, feed.path) == ([1, 3, 4, 22, 23], "4.ndjson")
        assert outcome.rows == 4
        newest = feed.entries[-1]
        assert (newest.total_rows, newest.total_files, newest.replace_until) == (5, 4, None)
        assert feed.load().status == "nothing"

    def test_a_second_rewind_with_replace_does_not_forget_the_first(self, feed: Feed) -> None:
        feed.decide("rewind", "--to", "2", "--replace")
        feed.decide("rewind", "--to", "1", "--replace")
        feed.load()
        assert feed.ids == [1, 2, 3]

    def test_the_preview_tells_that_a_dead_runs_rows_are_added_twice(self, feed: Feed) -> None:
        feed.put("4.ndjson", 4)
        with pytest.raises(KeyboardInterrupt):
            feed.run(dies_after(Step.WRITTEN))
        answer = feed.decide("rewind", "--to", "3")
        assert (
            "1 of these files was ingested before; load: append adds their rows a second time" in answer.err
        )
        feed.load()
        assert feed.ids == [1, 2, 3, 4, 4]

    def test_rewinding_before_an_adopt_needs_replace_and_says_so(self, feed: Feed) -> None:
        DeltaTable(str(feed.table)).restore(1)
        feed.decide("adopt")
        feed.load()
        answer = feed.decide("rewind", "--to", "1")
        assert ("adds their rows a second time" in answer.err, "inserts them again" in answer.err) == (
            True,
            False,
        )
        feed.load()
        assert feed.ids == [1, 2, 2, 3, 3]

    def test_with_replace_rows_that_an_earlier_rewind_has_doubled_make_room_too(self, feed: Feed) -> None:
        feed.decide("rewind", "--to", "1")
        feed.decide("rewind", "--to", "1", "--replace")
        feed.load()
        assert feed.ids == [1, 2, 3]
        feed.decide("rewind", "--to", "0")
        feed.load()
        assert feed.ids == [1, 1, 2, 2, 3, 3]
        feed.decide("rewind", "--to", "0", "--replace")
        feed.load()
        assert (feed.ids, feed.entries[-1].total_rows) == ([1, 2, 3], 3)

    @pytest.mark.needs_spark
    def test_with_replace_an_unreadable_file_goes_to_quarantine(self, make_feed: MakeFeed) -> None:
        feed = make_feed(on_bad_file="quarantine", watermark={"checkpoint": {"interval_files": 1}})
        feed.put("1.ndjson", 1)
        feed.put("2.ndjson", 2)
        feed.load()
        feed.put_text("2.ndjson", '{"id": "no number"}\n')
        feed.decide("rewind", "--to", "0", "--replace")
        assert feed.load().quarantined == 1
        assert (feed.ids, feed.path, feed.entries[-1].total_rows) == ([1], "2.ndjson", 1)
        feed.put("2.ndjson", 22)
        feed.command("files", "release", NAME, "2.ndjson")
        feed.load()
        assert feed.ids == [1, 22]

    def test_with_replace_and_partitions_all_open_rows_make_room(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"scope": "partition"})
        feed.put("a/1.ndjson", 1)
        feed.put("b/1.ndjson", 2)
        feed.load()
        feed.decide("rewind", "--to", "0")
        feed.put("c/1.ndjson", 3)
        feed.decide("rewind", "--to", "0", "--replace")
        feed.load()
        assert (feed.ids, feed.newest and feed.newest.replace_until) == ([1, 2, 3], None)

    def test_where_a_set_is_tracked_there_is_no_order_to_go_back_in(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"tracking": "set"})
        feed.put("1.ndjson", 1)
        feed.load()
        answer = feed.cli("state", "rewind", NAME, "--to", "0", "--reason", "x", "--yes")
        assert (answer.code, len(feed.entries)) == (2, 1)
        assert answer.error["choices"][0] == f"strandline files unprocess {NAME} PATH…"

    def test_to_0_is_the_beginning(self, feed: Feed) -> None:
        feed.decide("rewind", "--to", "0", "--replace")
        feed.load()
        assert feed.ids == [1, 2, 3]

    def test_what_was_ingested_late_below_the_point_stays_ingested(self, feed: Feed) -> None:
        feed.put("0.ndjson", 10)
        feed.put("2-late.ndjson", 20)
        assert feed.cli("late", NAME).json["ingested"] == 2
        feed.decide("rewind", "--to", "1", "--replace")
        feed.load()
        assert feed.ids == [1, 2, 3, 10, 20]
        assert feed.cli("late", NAME).json["late"] == []

    @pytest.mark.needs_spark
    def test_with_replace_rows_must_tell_their_file(self, make_feed: MakeFeed) -> None:
        feed = make_feed(target={"origin_columns": False})
        feed.put("1.ndjson", 1)
        feed.load()
        answer = feed.cli("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes")
        assert (answer.code, len(feed.entries)) == (2, 1)
        assert "_source_file" in answer.error["message"]

    def test_an_unknown_entry_is_refused(self, feed: Feed) -> None:
        answer = feed.cli("state", "rewind", NAME, "--to", "9", "--reason", "x", "--yes")
        assert (answer.code, answer.error["choices"]) == (2, [f"strandline state history {NAME}"])


class TestGoneFiles:
    """A rewind that replaces comes upon loaded files that are gone at the source."""

    def rename(self, feed: Feed, old: str, new: str) -> None:
        """Replace a file under another name."""
        (feed.landing / old).rename(feed.landing / new)

    def rewind(self, feed: Feed, gone: str, to: int = 1) -> Answer:
        return feed.decide("rewind", "--to", str(to), "--replace", "--gone", gone)

    def test_an_operator_is_asked_and_nothing_is_appended(self, feed: Feed) -> None:
        self.rename(feed, "2.ndjson", "2b.ndjson")
        answer = feed.cli("state", "rewind", NAME, "--to", "1", "--replace", "--reason", "x", "--yes")
        assert (answer.code, answer.error["code"], len(feed.entries)) == (4, "gone_files", 3)
        assert "1 file (2.ndjson) with 1 row in the table" in answer.error["message"]
        assert answer.error["choices"] == [
            f"strandline state rewind {NAME} --to 1 --replace --gone {word} --reason TEXT"
            for word in ("delete", "keep")
        ]

    def test_rows_of_a_file_with_another_name_now_are_there_once(self, feed: Feed) -> None:
        self.rename(feed, "2.ndjson", "2b.ndjson")
        answer = self.rewind(feed, "delete")
        assert "their rows are deleted: 1 file (2.ndjson) with 1 row" in answer.err
        assert feed.load().rows == 2
        assert feed.rows("id", "_source_file") == [(1, "1.ndjson"), (2, "2b.ndjson"), (3, "3.ndjson")]
        assert feed.entries[-1].total_rows == 3
        assert feed.load().status == "nothing"

    def test_old_and_new_rows_change_in_one_commit(self, feed: Feed) -> None:
        self.rename(feed, "3.ndjson", "3b.ndjson")
        self.rewind(feed, "delete", to=2)
        feed.load()
        assert (feed.ids, len(feed.entries)) == ([1, 2, 3], 5)

    def test_kept_rows_stay_and_the_preview_names_them(self, feed: Feed) -> None:
        self.rename(feed, "2.ndjson", "2b.ndjson")
        answer = self.rewind(feed, "keep")
        assert "so their rows stay: 1 file (2.ndjson) with 1 row" in answer.err
        feed.load()
        assert feed.ids == [1, 2, 2, 3]

    def test_rows_go_though_no_file_is_left_to_load(self, feed: Feed) -> None:
        (feed.landing / "3.ndjson").unlink()
        assert "rows of 1 missing file to delete" in self.rewind(feed, "delete", to=2).err
        outcome = feed.load()
        assert (outcome.rows, feed.ids, feed.path) == (0, [1, 2], "2.ndjson")
        assert feed.load().status == "nothing"

    @pytest.mark.parametrize("name", ["2.ndjson", "3.ndjson"])
    def test_a_file_that_comes_back_is_loaded_once(self, feed: Feed, name: str) -> None:
        text = (feed.landing / name).read_text()
        (feed.landing / name).unlink()
        self.rewind(feed, "delete")
        feed.load()
        feed.put_text(name, text)
        feed.load()
        feed.cli("late", NAME)
        assert feed.ids == [1, 2, 3]

    @pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN])
    def test_a_dead_run_deletes_and_loads_once(self, feed: Feed, step: Step) -> None:
        self.rename(feed, "2.ndjson", "2b.ndjson")
        self.rewind(feed, "delete")
        with pytest.raises(KeyboardInterrupt):
            feed.run(dies_after(step))
        feed.load()
        assert feed.ids == [1, 2, 3]

    def test_an_answer_without_a_question_is_refused(self, feed: Feed) -> None:
        answer = feed.cli("state", "rewind", NAME, "--to", "1", "--gone", "keep", "--reason", "x", "--yes")
        assert (answer.code, "expected --replace beside --gone" in answer.error["message"]) == (2, True)


class TestDeletedRows:
    """Rows that others deleted from the table come back only if an operator says so."""

    def delete(self, feed: Feed, *ids: int) -> None:
        """Delete rows as another writer."""
        DeltaTable(str(feed.table)).delete(f"id IN ({', '.join(map(str, ids))})")

    def ask(self, feed: Feed, *words: str) -> Answer:
        """Make a decision that asks; return the answer."""
        answer = feed.cli("state", words[0], NAME, *words[1:], "--reason", "x", "--yes")
        assert (answer.code, answer.error["code"]) == (4, "deleted_rows")
        return answer

    def test_the_question_says_what_load_means_and_how_to_keep_rows_away(self, feed: Feed) -> None:
        self.delete(feed, 1)
        message = self.ask(feed, "rewind", "--to", "0", "--replace").error["message"]
        assert (
            "Choose what happens to these rows: --deleted load loads them again when they are read. "
            in message
        )
        assert f"To keep some away, name them first: strandline delete {NAME} --where SQL" in message
        assert "skip" not in message

    @pytest.mark.parametrize("is_known", [True, False])
    def test_an_older_state_asks_about_up_to_three_files_with_each_answer(
        self, feed: Feed, is_known: bool
    ) -> None:
        shutil.copytree(feed.state, feed.folder / "older")
        for number in range(5, 10):
            feed.put(f"{number}.ndjson", number)
            feed.load()
        self.delete(feed, 5, 6, 7, 8)
        if not is_known:  # the table's log no longer reaches back to its first commit
            DeltaTable(str(feed.table)).create_checkpoint()
            (feed.table / "_delta_log" / f"{0:020}.json").unlink()
        shutil.rmtree(feed.state)
        (feed.folder / "older").rename(feed.state)
        message = self.ask(feed, "adopt").error["message"]
        of_files = "of 5.ndjson, 6.ndjson, 7.ndjson and 1 more from the table"
        counted = (
            "others have deleted 4 rows" if is_known else "nothing tells whether others have deleted rows"
        )
        assert f"{counted} {of_files}" in message
        assert "--deleted load loads them again when they are read" in message
        assert "--deleted skip counts their files as loaded, so the rows stay away" in message

    def test_a_rewind_counts_them_by_file_and_asks(self, feed: Feed) -> None:
        feed.put("4.ndjson", 4, 5)
        feed.load()
        self.delete(feed, 1, 3, 5)
        answer = self.ask(feed, "rewind", "--to", "1", "--replace")
        assert "others have deleted 2 rows of 3.ndjson, 4.ndjson from the table" in answer.error["message"]
        (command,) = answer.error["choices"]
        assert command == f"strandline state rewind {NAME} --to 1 --replace --deleted load --reason TEXT"
        told = feed.decide("rewind", "--to", "1", "--replace", "--deleted", "load").err
        assert "others have deleted 2 rows of 3.ndjson, 4.ndjson" in told
        feed.load()
        assert feed.ids == [2, 3, 4, 5]

    def test_a_rewind_above_them_is_not_asked_about(self, feed: Feed) -> None:
        self.delete(feed, 1)
        DeltaTable(str(feed.table)).optimize.compact()
        feed.decide("rewind", "--to", "1", "--replace")
        feed.load()
        assert feed.ids == [2, 3]

    @pytest.mark.remedy("deleted_rows", "state adopt --deleted load", "state adopt --deleted skip")
    def test_an_adopt_of_a_lost_log_asks_and_loads_or_skips_them(self, feed: Feed, tmp_path: Path) -> None:
        self.delete(feed, 2)
        shutil.rmtree(feed.state)
        answer = self.ask(feed, "adopt")
        assert "others have deleted 1 row of 2.ndjson from the table" in answer.error["message"]
        assert [choice.split()[-3] for choice in answer.error["choices"]] == ["load", "skip"]
        skipped = feed.copy(tmp_path / "skipped")
        skipped.decide("adopt", "--deleted", "skip")
        assert skipped.cli("late", NAME).json["late"] == []
        assert skipped.ids == [1, 3]
        feed.decide("adopt", "--deleted", "load")
        assert feed.cli("late", NAME).json["late"] == ["2.ndjson"]
        assert feed.ids == [1, 2, 3]

    def test_an_adopt_of_a_lost_log_asks_though_no_row_is_left(self, feed: Feed) -> None:
        self.delete(feed, 1, 2, 3)
        shutil.rmtree(feed.state)
        answer = self.ask(feed, "adopt")
        assert "3 rows of 1.ndjson, 2.ndjson, 3.ndjson" in answer.error["message"]
        feed.decide("adopt", "--deleted", "skip")
        feed.put("4.ndjson", 4)
        feed.load()
        assert (feed.cli("late", NAME).json["late"], feed.ids) == ([], [4])

    def test_a_late_file_and_no_deleted_row_asks_nothing(self, feed: Feed) -> None:
        feed.put("2-late.ndjson", 20)
        shutil.rmtree(feed.state)
        feed.decide("adopt")
        assert feed.cli("late", NAME).json["late"] == ["2-late.ndjson"]

    def test_a_log_of_the_table_that_was_cleaned_cannot_tell_and_asks(self, feed: Feed) -> None:
        feed.put("2-late.ndjson", 20)
        table = DeltaTable(str(feed.table))
        table.create_checkpoint()
        for file in sorted((feed.table / "_delta_log").glob("*.json"))[:-1]:
            file.unlink()
        shutil.rmtree(feed.state)
        answer = self.ask(feed, "adopt")
        assert "nothing tells whether others have deleted rows" in answer.error["message"]


class TestReset:
    def test_with_replace_the_first_commit_empties_the_table(self, feed: Feed) -> None:
        feed.put("1.ndjson", 11)
        answer = feed.decide("reset", "--replace")
        assert "the first commit empties the table" in answer.err
        feed.load()
        assert feed.ids == [2, 3, 11]
        assert feed.entries[-1].total_rows == 3
        assert not feed.entries[-1].replace_table

    def test_of_a_table_that_is_gone_the_preview_says_nothing_of_rows(self, feed: Feed) -> None:
        shutil.rmtree(feed.table)
        assert "a second time" not in feed.decide("reset").err
        feed.load()
        assert feed.ids == [1, 2, 3]


class TestSet:
    def test_files_that_it_passes_over_are_neither_loaded_nor_late(self, feed: Feed) -> None:
        for number in (4, 5, 6):
            feed.put(f"{number}.ndjson", number)
        answer = feed.decide("set", '{"path": "5.ndjson"}')
        assert "passed over, so neither loaded nor late: 2 files of the source" in answer.err
        feed.put("4-late.ndjson", 44)
        assert feed.load().rows == 1
        assert feed.ids == [1, 2, 3, 6]
        assert feed.cli("late", NAME).json["late"] == ["4-late.ndjson"]
        assert feed.ids == [1, 2, 3, 6, 44]

    def test_it_never_lowers_a_value(self, feed: Feed) -> None:
        answer = feed.cli("state", "set", NAME, '{"path": "2.ndjson"}', "--reason", "x", "--yes")
        assert (answer.code, answer.error["code"], len(feed.entries)) == (4, "would_fall", 3)
        assert "state rewind" in answer.error["choices"][0]

    @pytest.mark.parametrize(
        "text", ["{", "[]", "{}", '{"path": null}', '{"paths": {}}', '{"updated_at": 1}']
    )
    def test_what_is_no_watermark_is_refused(self, feed: Feed, text: str) -> None:
        answer = feed.cli("state", "set", NAME, text, "--reason", "x", "--yes")
        assert (answer.code, len(feed.entries)) == (2, 3)
        assert '{"path": text}' in answer.error["message"]

    def test_it_may_be_the_first_entry(self, make_feed: MakeFeed) -> None:
        feed = make_feed()
        for number in (1, 2):
            feed.put(f"{number}.ndjson", number)
        feed.decide("set", '{"path": "1.ndjson"}')
        feed.load()
        assert feed.ids == [2]
        assert feed.cli("late", NAME).json["late"] == []


class TestLostState:
    def test_adopt_takes_the_newest_commits_watermark_and_doubles_nothing(self, feed: Feed) -> None:
        shutil.rmtree(feed.state)
        refused = feed.cli("run", NAME)
        assert (refused.code, refused.error["code"]) == (4, "state_lost")
        assert [choice.split()[2] for choice in refused.error["choices"]] == [
            "adopt",
            "import",
            "reset",
            "reset",
        ]
        answer = feed.decide("adopt")
        assert "taken as ingested, so neither loaded nor late: 3 files of the source" in answer.err
        assert (answer.json["number"], answer.json["entry"]["watermark"]) == (4, {"path": "3.ndjson"})
        feed.put("4.ndjson", 4)
        feed.load()
        assert (feed.ids, feed.entries[-1].number, feed.entries[-1].total_rows) == ([1, 2, 3, 4], 5, 4)
        assert feed.cli("late", NAME).json["late"] == []

    def test_where_no_commit_tells_adopt_takes_the_largest_origin_path(self, feed: Feed) -> None:
        lose_all_but_rows(feed)
        answer = feed.decide("adopt")
        assert answer.json["entry"]["watermark"] == {"path": "3.ndjson"}
        feed.put("4.ndjson", 4)
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_adopt_takes_the_largest_path_of_each_partition(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"scope": "partition"})
        for number, path in enumerate(("b", "p=1/b", "p=2/a", "p=2/b")):
            feed.put(f"{path}.ndjson", number)
        feed.load()
        lose_all_but_rows(feed)
        names = {"": "b.ndjson", "p=1": "b.ndjson", "p=2": "b.ndjson"}
        answer = feed.decide("adopt")
        assert answer.json["entry"]["watermark"] == {"paths": names, "closed_before": None}
        for number, path in enumerate(("c", "p=0/a", "p=1/c")):
            feed.put(f"{path}.ndjson", 10 + number)
        feed.load()
        assert feed.ids == [0, 1, 2, 3, 10, 11, 12]

    def test_adopt_of_a_tracked_set_takes_the_files_of_its_rows(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"tracking": "set"})
        feed.put("m.ndjson", 1)
        feed.load()
        feed.put("a.ndjson", 2)
        shutil.rmtree(feed.state)
        assert (
            "taken as ingested, so neither loaded nor late: 1 file of the source" in feed.decide("adopt").err
        )
        feed.load()
        assert feed.ids == [1, 2]

    def test_where_nothing_tells_adopt_says_so(self, make_feed: MakeFeed) -> None:
        feed = make_feed()
        feed.put("1.ndjson", 1)
        answer = feed.cli("state", "adopt", NAME, "--reason", "x", "--yes")
        assert (answer.code, answer.error["code"]) == (4, "nothing_to_adopt")
        assert [choice.split()[2] for choice in answer.error["choices"]] == ["set", "reset"]

    def test_set_leads_on_where_the_watermark_beside_the_table_is_gone(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"scope": "partition"})
        for number in range(200):
            feed.put(f"part={number:03}{'x' * 40}/1.ndjson", number)
        feed.load()
        assert feed.newest is not None
        watermark = feed.newest.watermark
        shutil.rmtree(feed.table / "_strandline")
        shutil.rmtree(feed.state)
        stopped = feed.cli("state", "adopt", NAME, "--reason", "x", "--yes").error
        assert stopped["code"] == "state_object_missing"
        assert [choice.split()[2] for choice in stopped["choices"]] == ["import", "set", "reset"]
        feed.decide("set", watermark)
        assert (feed.load().status, feed.ids) == ("nothing", [*range(200)])

    def test_a_state_behind_the_table_adopts_above_both(self, feed: Feed, tmp_path: Path) -> None:
        shutil.copytree(feed.state, tmp_path / "backup")
        feed.put("4.ndjson", 4)
        feed.load()
        shutil.rmtree(feed.state)
        shutil.copytree(tmp_path / "backup", feed.state)
        refused = feed.cli("run", NAME)
        assert refused.code == 4, refused.out
        assert feed.decide("adopt").json["number"] == 5
        feed.put("5.ndjson", 5)
        feed.load()
        assert (feed.ids, feed.path) == ([1, 2, 3, 4, 5], "5.ndjson")

    def test_a_table_behind_the_state_is_loaded_again(self, feed: Feed, tmp_path: Path) -> None:
        shutil.copytree(feed.table, tmp_path / "backup")
        feed.put("4.ndjson", 4)
        feed.load()
        shutil.rmtree(feed.table)
        shutil.copytree(tmp_path / "backup", feed.table)
        feed.put("5.ndjson", 5)
        refused = feed.cli("run", NAME)
        assert (refused.code, refused.error["code"]) == (4, "table_behind")
        assert feed.decide("adopt").json["entry"]["watermark"] == {"path": "3.ndjson"}
        feed.load()
        assert feed.ids == [1, 2, 3, 4, 5]


class TestUnknownCommit:
    """A run dies once its slice is written, and its commit is cleaned from the table's log before anybody looks."""

    @pytest.fixture
    def unknown(self, feed: Feed) -> Feed:
        feed.put("4.ndjson", 4)
        crash(feed, Step.WRITTEN)
        table = DeltaTable(str(feed.table))
        written = table.version()
        table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
        table.create_checkpoint()
        for version in range(written + 1):
            (feed.table / "_delta_log" / f"{version:020d}.json").unlink()
        refused = feed.cli("run", NAME)
        assert (refused.code, refused.error["code"]) == (4, "unknown_commit")
        assert [choice.split()[2] for choice in refused.error["choices"]] == ["adopt", "reset"]
        assert feed.ids == [1, 2, 3, 4]
        return feed

    @pytest.mark.needs_spark
    def test_adopt_goes_on_from_the_rows_and_loads_nothing_twice(self, unknown: Feed) -> None:
        answer = unknown.decide("adopt")
        assert answer.json["entry"]["watermark"] == {"path": "4.ndjson"}
        unknown.put("5.ndjson", 5)
        unknown.load()
        assert (unknown.ids, unknown.entries[-1].total_rows) == ([1, 2, 3, 4, 5], 5)
        assert unknown.load().status == "nothing"

    @pytest.mark.full
    @pytest.mark.needs_spark
    def test_a_reset_with_replace_loads_everything_once_more_in_place(self, unknown: Feed) -> None:
        unknown.decide("reset", "--replace")
        unknown.load()
        assert (unknown.ids, unknown.path, unknown.open_intent) == ([1, 2, 3, 4], "4.ndjson", None)


class TestExport:
    @pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"number": 1}'])
    def test_what_is_no_export_is_refused(self, feed: Feed, tmp_path: Path, text: str) -> None:
        (tmp_path / "export.jsonl").write_text(text)
        answer = feed.cli("state", "import", NAME, str(tmp_path / "export.jsonl"), "--reason", "x", "--yes")
        assert (answer.code, len(feed.entries)) == (2, 3)


class TestChangedDefinition:
    """Only a decision about the definition agrees to another one; nothing else may be built on it meanwhile."""

    @pytest.mark.parametrize(
        "arguments",
        [
            ("state", "rewind", NAME, "--to", "1", "--reason", "x", "--yes"),
            ("files", "release", NAME, "1.ndjson"),
            ("late", NAME),
        ],
        ids=lambda arguments: arguments[1] if arguments[0] != "late" else "late",
    )
    def test_it_must_be_agreed_to_before(self, feed: Feed, arguments: tuple[str, ...]) -> None:
        feed.define(source={"extensions": [".ndjson", ".txt"]}, late_files="quarantine")
        feed.put("0.txt", 9)
        answer = feed.cli(*arguments)
        assert (answer.code, answer.error["code"], len(feed.entries)) == (4, "definition_changed", 3)
        assert answer.error["choices"][0] == f"strandline state accept {NAME} --reason TEXT"
        assert feed.cli("run", NAME).error["code"] == "definition_changed"


class TestShowing:
    def test_without_yes_it_asks_and_appends_nothing_where_nobody_agrees(self, feed: Feed) -> None:
        answer = feed.cli("state", "rewind", NAME, "--to", "1", "--reason", "x")
        assert answer.code != 0
        assert "next run: 2 files above 1.ndjson" in answer.err
        assert len(feed.entries) == 3

    def test_a_source_that_cannot_be_looked_at_holds_no_decision_back(self, feed: Feed) -> None:
        aside = feed.landing.rename(feed.folder / "aside")
        answer = feed.decide("rewind", "--to", "1", "--replace")
        assert "next run: fails, as things are: " in answer.err
        aside.rename(feed.landing)
        assert feed.load().committed
        assert feed.ids == [1, 2, 3]

    def test_a_decision_needs_a_reason(self, feed: Feed) -> None:
        assert feed.cli("state", "rewind", NAME, "--to", "1", "--yes").code == 2

    def test_diff_shows_what_changed_between_two_entries(self, feed: Feed) -> None:
        changed = feed.cli("state", "diff", NAME, "--from", "1", "--to", "3").json
        assert (changed["from"], changed["to"]) == (1, 3)
        assert changed["changed"]["watermark.path"] == {"before": "1.ndjson", "after": "3.ndjson"}
        newest = feed.cli("state", "diff", NAME).json
        assert (newest["from"], newest["to"]) == (2, 3)

    def test_history_shows_intents_where_asked(self, feed: Feed) -> None:
        entries = feed.cli("state", "history", NAME, "--intents").json
        assert [entry["intent"]["number"] for entry in entries] == [3, 2, 1]


class TestTableEffects:
    """A plan and the preview of a decision say which tables stay as they are."""

    def read_by_another(self, feed: Feed) -> None:
        """Add a dataflow that reads the table."""
        reader = {
            "source": {"type": "table", "table": f"bronze/{NAME}"},
            "watermark": {"type": "column", "columns": ["id"]},
            "target": {"load": "append"},
        }
        (feed.folder / "dataflows" / "reader.yaml").write_text(yaml.safe_dump(reader))

    def warnings(self, feed: Feed) -> str:
        """Return the warnings of the plan, as one text."""
        return "\n".join(feed.cli("plan", NAME).json[0]["warnings"])

    def test_rows_in_the_old_table_and_its_readers_are_named(self, feed: Feed) -> None:
        self.read_by_another(feed)
        feed.define(target={"table": "bronze/other"})
        told = feed.decide("accept").err
        stays = "3 rows stay in bronze/flow, which no run loads any more: bronze/other gets only what is loaded from now on"
        reads = "reader read bronze/flow, and keep what they have loaded of it although it gets no more rows"
        assert (stays in told, reads in told) == (True, True)
        planned = self.warnings(feed)
        assert (stays in planned, reads in planned) == (True, True)
        feed.put("4.ndjson", 4)
        feed.load()
        assert (feed.ids, self.warnings(feed)) == ([4], "")

    def test_partition_by_that_a_table_ignores_is_said(self, feed: Feed) -> None:
        feed.define(target={"partition_by": ["id"]})
        assert (
            "partition_by: id is ignored: table bronze/flow keeps the partitions that it was created with (none)"
            in self.warnings(feed)
        )
        feed.decide("reset", "--replace")
        assert "partition_by" not in self.warnings(feed)

    def test_readers_of_a_table_whose_rows_are_replaced_are_named(self, feed: Feed) -> None:
        self.read_by_another(feed)
        assert self.warnings(feed) == ""
        told = feed.decide("rewind", "--to", "1", "--replace").err
        assert (
            "reader read bronze/flow, and keep what they have loaded of it although its rows are replaced"
            in told
        )
        assert "reader read bronze/flow" in self.warnings(feed)
        feed.load()
        assert self.warnings(feed) == ""
