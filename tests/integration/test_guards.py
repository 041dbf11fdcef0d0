"""State and table that do not belong together: every command stops, says so, and names one that leads on."""

from __future__ import annotations

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from partitions.errors import Conflict
from resources.kinds import all_decisions as decisions
from resources.loop import lease
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks.entry import next_entry
from resources.watermarks.log import WatermarkLog
from tests.integration.conftest import MakeFeed, loaded_one_by_one
from tests.support.feed import NAME, NOW, Feed

pytestmark = pytest.mark.without_jvm


class _Killed(BaseException):
    """Ends a process' work as SIGKILL does: nothing in the product catches it."""


@pytest.fixture(scope="module")
def loaded_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Four entries, of a file each; a copy of the state as it was after the second, and of the table as it was."""
    made = loaded_one_by_one(tmp_path_factory.mktemp("loaded") / "project", engine, 2)
    shutil.copytree(made.state, made.folder / "state of 2")
    shutil.copytree(made.table, made.folder / "table of 2")
    made.put("3.ndjson", 3)
    made.put("4.ndjson", 4)
    made.load()
    return made


@pytest.fixture
def feed(loaded_once: Feed, tmp_path: Path) -> Feed:
    """A copy of one's own."""
    return loaded_once.copy(tmp_path / "loaded")


def put_back(feed: Feed, what: str, to: Path) -> None:
    shutil.rmtree(to)
    shutil.copytree(feed.folder / what, to)


def stopped(feed: Feed, *arguments: str) -> str:
    """The code with which a command stops for a decision; it has changed nothing."""
    before = (feed.entries, feed.ids)
    answer = feed.cli(*arguments)
    assert answer.code == 4, answer.out + answer.err
    assert (feed.entries, feed.ids) == before
    assert any(choice.split()[2] in ("adopt", "reset") for choice in answer.error["choices"])
    code: str = answer.error["code"]
    return code


class TestDecisionsPassTheGuards:
    def test_a_sweep_that_quarantines_does_not_hide_a_foreign_tag(self, feed: Feed) -> None:
        put_back(feed, "state of 2", feed.state)
        feed.define(late_files="quarantine")
        assert stopped(feed, "run", NAME) == "foreign_tag"
        feed.put("0.ndjson", 9)
        assert stopped(feed, "late", NAME) == "foreign_tag"
        assert stopped(feed, "run", NAME) == "foreign_tag"
        feed.decide("adopt")
        feed.load()
        assert feed.ids == [1, 2, 3, 4]
        assert feed.cli("late", NAME).json["quarantined"] == 1

    @pytest.mark.parametrize(
        "decision",
        [
            ("set", NAME, '{"path": "9.ndjson"}'),
            ("rewind", NAME, "--to", "1"),
            ("rewind", NAME, "--to", "1", "--replace"),
        ],
        ids=" ".join,
    )
    def test_a_decision_on_a_state_stops_at_foreign_tags(self, feed: Feed, decision: tuple[str, ...]) -> None:
        put_back(feed, "state of 2", feed.state)
        assert stopped(feed, "state", *decision, "--reason", "because", "--yes") == "foreign_tag"
        feed.decide("adopt")
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_accept_of_a_changed_definition_stops_at_a_foreign_tag(self, feed: Feed) -> None:
        put_back(feed, "state of 2", feed.state)
        feed.define(source={"extensions": [".ndjson", ".jsonl"]})
        assert stopped(feed, "run", NAME) == "definition_changed"
        assert stopped(feed, "state", "accept", NAME, "--reason", "because", "--yes") == "foreign_tag"
        feed.decide("adopt")
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_set_does_not_agree_to_a_changed_definition(self, feed: Feed) -> None:
        feed.define(source={"extensions": [".ndjson", ".jsonl"]})
        decision = ("set", NAME, '{"path": "9.ndjson"}')
        assert stopped(feed, "state", *decision, "--reason", "because", "--yes") == "definition_changed"

    @pytest.mark.needs_spark
    def test_release_and_unprocess_stop_at_a_table_that_is_gone(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"tracking": "set"}, on_bad_file="quarantine")
        feed.put("a.ndjson", 1)
        feed.put_bytes("b.ndjson.gz", b"not gzip")
        feed.load()
        shutil.rmtree(feed.table)
        for command in (("release", NAME, "b.ndjson.gz"), ("unprocess", NAME, "a.ndjson")):
            assert stopped(feed, "files", *command, "--reason", "because") == "table_missing"
        feed.decide("reset")
        feed.load()
        assert feed.ids == [1]


class TestOpenIntent:
    """A run that died after its intent, and a table that was damaged since."""

    @pytest.fixture
    def begun(self, feed: Feed) -> Feed:
        """Slice 5 was begun, and not written."""
        feed.put("5.ndjson", 5)

        def die(step: Step, line: str) -> None:
            if step is Step.INTENT_PUT:
                raise _Killed

        with pytest.raises(_Killed):
            feed.run(die)
        assert feed.open_intent is not None
        return feed

    def test_nothing_is_written_into_a_fresh_table(self, begun: Feed) -> None:
        shutil.rmtree(begun.table)
        assert stopped(begun, "run", NAME) == "table_missing"
        assert stopped(begun, "plan", NAME) == "table_missing"
        assert not begun.table.exists()

    @pytest.mark.parametrize("replace", [(), ("--replace",)], ids=["reset", "reset --replace"])
    def test_reset_leads_on_where_the_table_is_gone(self, begun: Feed, replace: tuple[str, ...]) -> None:
        shutil.rmtree(begun.table)
        begun.decide("reset", *replace)
        begun.load()
        assert begun.ids == [1, 2, 3, 4, 5]
        assert begun.load().status == "nothing"

    def test_import_leads_on_where_the_table_is_older(self, begun: Feed, tmp_path: Path) -> None:
        then = begun.copy(begun.folder.parent / "then")  # as it was at entry 2
        for folder in ("entries", "intents"):
            for file in (then.state / folder).glob("*"):
                if json.loads(file.read_text())["number"] > 2:
                    file.unlink()
        exported = tmp_path / "export.jsonl"
        exported.write_text(then.cli("state", "export", NAME).out)
        put_back(begun, "table of 2", begun.table)
        begun.decide("import", str(exported))
        begun.load()
        assert begun.ids == [1, 2, 3, 4, 5]

    def test_a_number_that_somebody_else_took_stops_and_each_choice_leads_on(self, begun: Feed) -> None:
        other = begun.copy(begun.folder.parent / "other")
        shutil.rmtree(other.state / "intents")
        shutil.copytree(begun.state / "intents", other.state / "intents")
        (other.state / "intents" / "0000000005.json").unlink()
        other.load()
        shutil.rmtree(begun.table)
        shutil.copytree(other.table, begun.table)
        assert stopped(begun, "run", NAME) == "foreign_tag"
        for verb in (("adopt",), ("reset", "--replace")):
            again = begun.copy(begun.folder.parent / verb[0])
            again.decide(*verb)
            again.load()
            assert again.ids == [1, 2, 3, 4, 5]


class TestLostState:
    @pytest.mark.parametrize("decision", ["adopt", "reset"])
    def test_a_decision_that_dies_before_its_entry_leaves_the_guard_as_it_was(
        self, feed: Feed, monkeypatch: pytest.MonkeyPatch, decision: str
    ) -> None:
        making = {
            "adopt": decisions.adopt("because"),
            "reset": decisions.reset("because", replace=True),
        }[decision]
        shutil.rmtree(feed.state)

        def dies(*arguments: Any, **named: Any) -> Any:
            raise _Killed

        with monkeypatch.context() as patch:
            patch.setattr(WatermarkLog, "append", dies)
            with pytest.raises(_Killed):
                decisions.decide(feed.platform, feed.dataflow, making, "because")
        error = feed.fail()
        assert error.code == "state_lost"
        assert [entry.why for entry in feed.entries] == ["abandon"]
        assert stopped(feed, "run", NAME) == "state_lost"
        decisions.decide(feed.platform, feed.dataflow, making, "because")
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_rows_that_another_writer_put_count(self, feed: Feed) -> None:
        shutil.rmtree(feed.state)
        shutil.rmtree(feed.table)
        write_deltalake(str(feed.table), pa.table({"id": [7]}))
        assert stopped(feed, "run", NAME) == "state_lost"
        assert stopped(feed, "state", "adopt", NAME, "--reason", "because", "--yes") == "nothing_to_adopt"
        feed.decide("set", '{"path": "3.ndjson"}')
        assert feed.newest is not None
        assert feed.newest.total_rows == 1

    def test_adopt_of_a_lost_state_leaves_late_files_to_the_sweep(self, feed: Feed) -> None:
        feed.put("0.ndjson", 0)
        shutil.rmtree(feed.state)
        answer = feed.cli("state", "adopt", NAME, "--reason", "because", "--yes")
        late = "1 file of the source (0.ndjson) at or below the watermark without a row in the table"
        assert late in answer.err
        assert feed.cli("late", NAME).json["ingested"] == 1
        assert feed.ids == [0, 1, 2, 3, 4]

    def test_a_watermark_beside_a_gone_table_is_not_lowered(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"scope": "partition"})
        feed.put("d=1/a.ndjson", 1)
        feed.load()
        for number in range(400):
            feed.put(f"d={'x' * 20}{number}/a.ndjson", 2)
        feed.load()
        (beside,) = (feed.table / "_strandline").iterdir()
        beside.unlink()
        shutil.rmtree(feed.state)
        answer = feed.cli("state", "adopt", NAME, "--reason", "because", "--yes")
        assert (answer.code, answer.error["code"]) == (4, "state_object_missing")
        assert feed.entries == []


class TestTableOfAnotherHistory:
    def test_a_table_made_again_is_noticed_at_any_version(self, feed: Feed) -> None:
        shutil.rmtree(feed.table)
        for _ in range(6):
            write_deltalake(str(feed.table), pa.table({"id": [7]}), mode="append")
        assert stopped(feed, "run", NAME) == "table_replaced"
        feed.decide("reset", "--replace")
        feed.load()
        assert feed.ids == [1, 2, 3, 4]

    def test_a_table_put_back_from_a_backup_and_written_since_is_noticed(self, feed: Feed) -> None:
        put_back(feed, "table of 2", feed.table)
        for _ in range(3):
            write_deltalake(str(feed.table), pa.table({"id": [7]}), mode="append", schema_mode="merge")
        assert stopped(feed, "run", NAME) == "table_replaced"
        feed.decide("adopt")
        feed.load()
        assert feed.ids == [1, 2, 3, 4, 7, 7, 7]

    def test_a_restored_version_stops_the_run_and_adopt_loads_what_it_lacks(self, feed: Feed) -> None:
        feed.put("0.ndjson", 0)
        assert feed.cli("late", NAME).json["ingested"] == 1
        DeltaTable(str(feed.table)).restore(1)
        assert feed.ids == [1, 2]
        assert stopped(feed, "run", NAME) == "table_behind"
        feed.decide("adopt")
        feed.load()
        feed.cli("late", NAME)
        assert feed.ids == [0, 1, 2, 3, 4]
        assert feed.load().status == "nothing"

    def test_rows_that_others_add_delete_and_compact_are_their_business(self, feed: Feed) -> None:
        table = DeltaTable(str(feed.table))
        write_deltalake(table, pa.table({"id": [7]}), mode="append", schema_mode="merge")
        table.delete("id = 1")
        table.optimize.compact()
        feed.put("5.ndjson", 5)
        feed.load()
        assert feed.ids == [2, 3, 4, 5, 7]

    def test_a_removed_table_is_noticed_although_there_is_nothing_to_load(self, feed: Feed) -> None:
        shutil.rmtree(feed.table)
        assert stopped(feed, "run", NAME) == "table_missing"
        assert stopped(feed, "plan", NAME) == "table_missing"
        assert stopped(feed, "late", NAME) == "table_missing"

    @pytest.mark.parametrize("log", ["is there", "was lost"])
    def test_adopt_takes_no_watermark_of_another_kind(self, feed: Feed, log: str) -> None:
        if log == "was lost":
            shutil.rmtree(feed.state)
        feed.define(watermark={"type": "column", "columns": ["id"], "checkpoint": None})
        assert stopped(feed, "state", "adopt", NAME, "--reason", "x", "--yes") == "definition_changed"

    def test_a_renamed_table_is_accepted_with_all_that_it_holds(self, feed: Feed) -> None:
        feed.table.rename(feed.table.with_name("renamed"))
        feed.define(target={"table": "bronze/renamed"})
        feed.decide("accept")
        feed.put("5.ndjson", 5)
        feed.load()
        renamed = DeltaTable(str(feed.table.with_name("renamed")))
        assert sorted(renamed.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3, 4, 5]

    def test_a_table_that_forgets_tags_is_refused_until_it_no_longer_does(self, feed: Feed) -> None:
        table = DeltaTable(str(feed.table))
        name = "delta.setTransactionRetentionDuration"
        table.alter.set_table_properties({name: "interval 1 days"}, raise_if_not_exists=False)
        feed.put("5.ndjson", 5)
        answer = feed.cli("run", NAME)
        assert (answer.code, answer.error["code"]) == (4, "tags_expire")
        assert name in answer.error["choices"][0]
        assert feed.ids == [1, 2, 3, 4]


class TestHolderThatFinishes:
    def test_a_waiter_goes_on_from_the_holders_end(self, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
        feed.put("5.ndjson", 5)

        is_held = lease.is_held

        def finishes_now(*_: Any) -> bool:
            """As a holder that is found to be gone a moment after it has finished."""
            monkeypatch.setattr(lease, "is_held", is_held)
            feed.load()
            return False

        def died(step: Step, line: str) -> None:
            if step is Step.INTENT_PUT:
                raise _Killed

        with pytest.raises(_Killed):
            feed.run(died)
        loop = feed.platform.loop(feed.dataflow, NOW, hold_wait=timedelta(minutes=1))
        monkeypatch.setattr(lease, "is_held", finishes_now)
        outcome = loop.run()
        assert (outcome.status, outcome.files, outcome.rows) == ("nothing", 0, 0)
        assert outcome.before == {"path": "5.ndjson"}
        assert feed.ids == [1, 2, 3, 4, 5]


def test_count_rows_of_files_without_statistics_reads_them(make_feed: MakeFeed) -> None:
    feed = make_feed()
    write_deltalake(
        str(feed.table),
        pa.table({"id": [1, 2, 3]}),
        configuration={"delta.dataSkippingNumIndexedCols": "0"},
    )
    for log in (feed.table / "_delta_log").glob("*.json"):
        log.write_text(re.sub(r'"stats":"(?:[^"\\]|\\.)*"', '"stats":null', log.read_text()))
    target = feed.platform.table(feed.dataflow)
    assert (target.contents.count_rows(), target.contents.has_data()) == (3, True)


def test_an_entry_after_one_that_is_not_the_newest_is_a_conflict(feed: Feed) -> None:
    entries, log = feed.entries, feed.platform.log
    for expected, number in ((2, 7), (0, 7), (6, 7)):
        base = entries[expected - 1] if 0 < expected <= 4 else None
        entry = next_entry(base or entries[-1], why="run", number=number, previous=expected)
        with pytest.raises(Conflict):
            log.append(NAME, entry, expected=expected)
        assert feed.entries == entries
