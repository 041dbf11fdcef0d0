"""A definition that is changed, or mended, between runs: never a dead end, and never a change without a word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.errors import RowsRefused
from resources.kinds.path.late import late_step
from resources.outcome import Step
from resources.tables.delta.table import DeltaLakeTable
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed

pytestmark = pytest.mark.without_jvm


def whys(feed: Feed) -> list[str]:
    return [entry.why for entry in feed.entries]


class TestMistakes:
    @pytest.mark.parametrize(
        "wrong", [{"sql": "select idd from input"}, {"transform": "tests.support.steps:no_such"}]
    )
    @pytest.mark.needs_spark
    def test_a_bad_query_begins_nothing_while_bad(self, make_feed: MakeFeed, wrong: dict[str, Any]) -> None:
        feed = make_feed(**wrong)
        feed.put("a.ndjson", 1)
        outcome = feed.run()
        assert outcome.status == "failed"
        assert (feed.open_intent, feed.newest, feed.table.exists()) == (None, None, False)
        feed.define(sql="select id from input", transform=None)
        assert (feed.load().status, feed.ids) == ("committed", [1])

    def test_a_query_that_no_slice_was_loaded_with_is_looked_at_before_its_first(self, feed: Feed) -> None:
        for number in (1, 2):
            feed.put(f"{number}.ndjson", number)
            feed.load()
        feed.define(sql="select idd from input")
        feed.put("3.ndjson", 3)
        assert feed.run().status == "failed"
        assert (feed.open_intent, whys(feed), len(feed.commits)) == (None, ["run", "run"], 2)

    @pytest.mark.needs_spark
    def test_a_query_that_fails_on_a_row_gives_up_and_mended_goes_on(self, make_feed: MakeFeed) -> None:
        feed = make_feed(sql="select id, 1 / (id - 2) as x from input")
        feed.put("a.ndjson", 1, 2)
        error = feed.fail()
        assert (error.code, feed.open_intent) == ("query", None)
        feed.define(sql="select id from input")
        assert feed.load().rows == 2
        assert (feed.ids, whys(feed)) == ([1, 2], ["abandon", "run"])

    def test_a_watermark_of_another_form_is_not_offered_to_be_accepted(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(watermark={"scope": "partition"})
        error = feed.cli("plan", NAME).error
        assert error["code"] == "definition_changed"
        assert "state accept" not in json.dumps(error)
        assert error["message"].endswith("or `state reset --replace`, which empties it first")

    @pytest.mark.needs_spark
    def test_another_format_needs_another_table_and_no_decision(self, make_feed: MakeFeed) -> None:
        feed = make_feed(target={"format": "parquet"})
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(target={"format": "delta"})
        error = feed.cli("plan", NAME).error
        assert error["code"] == "definition_changed"
        assert (
            "target.format was parquet, is delta (a table keeps its format: another format needs another table)"
            in error["message"]
        )
        assert error["message"].endswith(
            "or set another target.table, or move this table's folder away, and load again with `state reset`"
        )
        assert error["choices"] == [f"strandline state reset {NAME} --reason TEXT"]
        for decision in (("reset", "--replace"), ("reset",), ("accept",)):
            verb, *options = decision
            refused = feed.cli("state", verb, NAME, *options, "--reason", "another format", "--yes")
            assert (refused.code, refused.json["error"]["code"], whys(feed)) == (2, "other_format", ["run"])
        feed.table.rename(feed.table.with_name("old"))
        feed.decide("reset")
        assert (feed.load().rows, feed.ids) == (1, [1])

    def test_another_table_after_a_reset_gets_all_that_there_is(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.decide("reset")
        feed.define(target={"table": "bronze/other"})
        message = feed.cli("plan", NAME).error["message"]
        assert "(nothing counts as loaded, so the new table gets all rows)" in message
        assert "above the watermark" not in message

    def test_a_number_that_was_given_up_cannot_be_taken_by_the_writer_that_had_it(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.put("b.ndjson", 2)
        with pytest.raises(KeyboardInterrupt):
            feed.run(dying_at(Step.INTENT_PUT))
        intent = feed.open_intent
        assert intent is not None
        feed.decide("accept")
        assert feed.commits[-1].tags == {intent.app_id: intent.number}, "the number is taken, by no rows"
        assert feed.load().rows == 1
        assert (feed.ids, whys(feed)) == ([1, 2], ["run", "abandon", "accept", "run"])


class TestDecisions:
    @pytest.mark.parametrize("verb", ["accept", "reset"])
    @pytest.mark.needs_spark
    def test_a_written_slice_is_appended_before_a_decision(self, make_feed: MakeFeed, verb: str) -> None:
        feed = make_feed(sql="select id from input")
        feed.put("a.ndjson", 1)
        with pytest.raises(KeyboardInterrupt):
            feed.run(dying_at(Step.WRITTEN))
        feed.define(sql="select id, 1 as more from input")
        assert "slice 1, which a run left unfinished, is appended: it was written" in feed.decide(verb).err
        assert (whys(feed), feed.ids) == (["run", verb], [1])
        assert (feed.entries[0].rows, feed.path) == (1, "a.ndjson" if verb == "accept" else None)

    def test_a_changed_path_and_an_unfinished_slice_are_settled_by_one_decision(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.put("b.ndjson", 2)
        with pytest.raises(KeyboardInterrupt):
            feed.run(dying_at(Step.INTENT_PUT))
        feed.define(source={"extensions": [".ndjson"]})
        assert feed.cli("run", NAME).code == 4
        feed.decide("accept")
        feed.load()
        assert feed.ids == [1, 2]


class TestAnotherRoot:
    @pytest.mark.parametrize(
        ("before", "now"),
        [
            ("./landing", "./landing/x"),
            ("./landing/x", "landing"),
            ("./landing/x", "{folder}/landing"),
            ("{folder}/landing", "./landing/x/y"),
        ],
    )
    @pytest.mark.parametrize("decisions", [[], [("rewind", "--to", "0")]])
    def test_a_root_inside_or_around_the_old_one_is_taken_by_no_decision(
        self, make_feed: MakeFeed, before: str, now: str, decisions: list[tuple[str, ...]]
    ) -> None:
        feed = make_feed()
        folder = feed.landing.parent
        feed.define(source={"path": before.format(folder=folder)})
        feed.put("x/y/1.ndjson", 1)
        feed.load()
        for decision in decisions:
            feed.decide(*decision)
        export = exported(feed)
        feed.define(source={"path": now.format(folder=folder)})
        for verb in (["accept"], ["adopt"], ["import", str(export)]):
            answer = feed.cli("state", verb[0], NAME, *verb[1:], "--reason", "because", "--yes")
            assert (verb, answer.code, answer.error["code"]) == (verb, 4, "definition_changed")
            assert "one folder lies in the other" in answer.error["message"]
            assert answer.error["choices"] == [
                f"strandline state reset {NAME} --reason TEXT",
                f"strandline state reset {NAME} --replace --reason TEXT",
            ]
        feed.put("x/y/2.ndjson", 2)
        feed.decide("reset", "--replace")
        feed.load()
        assert feed.ids == [1, 2]

    def test_the_same_root_written_otherwise_is_accepted(self, make_feed: MakeFeed) -> None:
        feed = make_feed()
        feed.put("1.ndjson", 1)
        feed.load()
        feed.define(source={"path": str(feed.landing)})
        feed.decide("accept")
        feed.put("2.ndjson", 2)
        feed.load()
        assert feed.ids == [1, 2]

    @pytest.mark.needs_spark
    @pytest.mark.parametrize("load", ["append", "merge_upsert"])
    def test_files_taken_as_loaded_under_other_names_are_never_doubled(
        self, make_feed: MakeFeed, load: str
    ) -> None:
        keys = {"merge_keys": ["id"]} if load == "merge_upsert" else {}
        feed = make_feed(
            source={"path": "./landing/a"}, target={"load": load, "origin_columns": True, **keys}
        )
        feed.put("a/9.ndjson", 1)
        feed.load()
        export = exported(feed)
        feed.put("b/2.ndjson", 1)
        feed.define(source={"path": "./landing/b"})
        feed.decide("accept", "--below", "loaded")
        appends = load == "append"
        for verb in (
            ["replay", NAME, "--by", "arrival", "--start", "2000-01-01", "--end", "2100-01-01", "--replace"],
            ["state", "rewind", NAME, "--to", "0", "--replace", "--reason", "because", "--yes"],
        ):
            answer = feed.cli(*verb, "--gone", "keep")
            expected = (2, "other_names") if appends else (0, None)
            assert (answer.code, answer.error["code"] if answer.code else None) == expected, answer.err
        for verb in (["adopt"], ["import", str(export)]):
            feed.decide(*verb)
            late_step(feed.platform, feed.dataflow, NOW)
            feed.load()
            assert feed.ids == [1], verb

    def test_a_file_that_a_moved_folder_got_below_the_watermark_is_late(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"path": "./landing/a"})
        feed.put("a/2.ndjson", 2)
        feed.load()
        (feed.landing / "a").rename(feed.landing / "b")
        feed.put("b/1.ndjson", 1)
        feed.define(source={"path": "./landing/b"})
        told = feed.decide("accept").err
        assert "loaded before, so not read again: 1 file at or below the watermark" in told
        assert "never loaded, so late: 1 other file there (1.ndjson)" in told
        late_step(feed.platform, feed.dataflow, NOW)
        feed.load()
        assert feed.ids == [1, 2]

    @pytest.mark.remedy("other_files", "state accept --below late", "state accept --below loaded")
    @pytest.mark.parametrize(("below", "ids"), [("late", [1, 2, 3]), ("loaded", [1, 3])])
    def test_files_of_which_none_is_known_are_late_or_loaded_as_the_operator_says(
        self, make_feed: MakeFeed, below: str, ids: list[int]
    ) -> None:
        feed = make_feed(source={"path": "./landing/a"})
        feed.put("a/9.ndjson", 1)
        feed.load()
        feed.put("b/2.ndjson", 2)
        feed.define(source={"path": "./landing/b"})
        answer = feed.cli("state", "accept", NAME, "--reason", "because", "--yes")
        assert (answer.code, answer.error["code"]) == (4, "other_files")
        assert answer.error["choices"] == [
            f"strandline state accept {NAME} --below late --reason TEXT",
            f"strandline state accept {NAME} --below loaded --reason TEXT",
        ]
        feed.decide("accept", "--below", below)
        late_step(feed.platform, feed.dataflow, NOW)
        feed.put("b/99.ndjson", 3)
        feed.load()
        assert feed.ids == ids

    def test_files_with_another_ending_in_the_same_root_are_late(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"extensions": [".b"]})
        feed.put("1.a", 1)
        feed.put("2.b", 2)
        feed.load()
        feed.define(source={"extensions": [".a", ".b"]})
        assert "count as loaded" not in feed.decide("accept").err
        late_step(feed.platform, feed.dataflow, NOW)
        assert feed.ids == [1, 2]


class TestSchemas:
    @pytest.mark.parametrize("schema", ["id long, more string", "id string", "other long"])
    @pytest.mark.needs_spark
    def test_a_changed_declared_schema_begins_nothing(self, make_feed: MakeFeed, schema: str) -> None:
        feed = make_feed(source={"schema": "id long"})
        feed.put("a.ndjson", 1)
        feed.load()
        feed.put("b.ndjson", 2)
        feed.define(source={"schema": schema})
        error = feed.fail()
        assert (error.code, feed.open_intent) == ("schema", None)
        assert "strict" in error.message
        feed.define(source={"schema": "id   bigint"})
        assert (feed.load().status, feed.ids) == ("committed", [1, 2])

    def test_folders_that_the_schema_names_are_no_difference(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "day date, id long"})
        feed.put("day=2026-01-01/region=eu/a.ndjson", 1)
        feed.load()
        feed.put("day=2026-01-02/region=eu/a.ndjson", 2)
        assert (feed.load().status, feed.ids) == ("committed", [1, 2])

    @pytest.mark.needs_spark
    def test_after_a_reset_and_without_the_table_another_schema_is_pinned(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long"}, unknown_fields="ignore")
        feed.put("a.ndjson", {"id": 1, "more": "x"})
        feed.load()
        feed.define(source={"schema": "id long, more string"})
        shutil.rmtree(feed.table)
        feed.decide("reset")
        feed.load()
        assert feed.rows("id", "more") == [(1, "x")]

    @pytest.mark.parametrize(
        ("sql", "code", "words"),
        [
            ("select id, 'x' as more from input", "incompatible_schema", "set `schema_mode: merge`"),
            ("select cast(id as string) || 'x' as id from input", "target", "schema_mode: strict"),
        ],
    )
    @pytest.mark.needs_spark
    def test_refused_rows_are_given_up_and_old_definitions_go_on(
        self, make_feed: MakeFeed, sql: str, code: str, words: str
    ) -> None:
        feed = make_feed(sql="select id from input")
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(sql=sql)
        feed.put("b.ndjson", 2)
        error = feed.fail()
        assert (error.code, feed.open_intent) == (code, None)
        assert words in error.message
        feed.define(sql="select id from input")
        feed.load()
        assert (feed.ids, whys(feed)) == ([1, 2], ["run", "abandon", "run"])

    def test_rows_a_format_refuses_are_given_up(self, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuses(*_: Any, **__: Any) -> None:
            raise RowsRefused("expected single values, found lists")

        feed.put("a.ndjson", 1)
        feed.load()
        feed.put("b.ndjson", 2)
        with monkeypatch.context() as patched:
            patched.setattr(DeltaLakeTable, "write", refuses)
            outcome = feed.run()
        assert outcome.error is not None
        assert (outcome.error.code, feed.open_intent) == ("target", None)
        assert "refuses the rows of slice 2: expected single values, found lists." in outcome.error.message
        feed.load()
        assert (feed.ids, whys(feed)) == ([1, 2], ["run", "abandon", "run"])


@pytest.mark.needs_spark
def test_a_table_keeps_the_layout_that_it_was_made_with(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, day date"}, target={"partition_by": ["day"]})
    feed.put("day=2026-01-01/a.ndjson", 1)
    feed.load()
    feed.define(target={"partition_by": []})
    feed.put("day=2026-01-02/a.ndjson", 2)
    feed.load()
    feed.define(target={"partition_by": ["id"]})
    feed.put("day=2026-01-03/a.ndjson", 3)
    feed.load()
    assert (feed.ids, DeltaTable(str(feed.table)).metadata().partition_columns) == ([1, 2, 3], ["day"])


def exported(feed: Feed) -> Path:
    """Export the state into a file beside the project's."""
    path = feed.folder / "export.ndjson"
    path.write_text(feed.cli("state", "export", NAME).out)
    return path


def dying_at(step: Step) -> Any:
    """An observer with which a run ends after a step as if it were killed, as far as one process can show it."""

    def observer(done: Step, line: str) -> None:
        if done is step:
            raise KeyboardInterrupt

    return observer


class TestVersions:
    """A table of versions is no table of rows."""

    @pytest.mark.needs_spark
    @pytest.mark.full
    def test_a_table_of_versions_takes_no_other_load_until_it_is_emptied(self, make_feed: MakeFeed) -> None:
        keyed = {"merge_keys": ["id"]}
        scd2 = {"load": "scd2", "effective_column": "day", **keyed}
        feed = make_feed(source={"schema": "id long, day int, fact int"}, target=scd2)
        feed.put("1.ndjson", {"id": 1, "day": 1, "fact": 1})
        feed.put("2.ndjson", {"id": 1, "day": 2, "fact": 2})
        feed.load()
        upsert = {"load": "merge_upsert", "effective_column": None}
        for load, other in ((scd2, upsert), (upsert, scd2)):
            feed.define(target=other)
            error = feed.cli("run", NAME).error
            assert (error["code"], error["choices"]) == (
                "definition_changed",
                [f"strandline state reset {NAME} --replace --reason TEXT"],
            )
            assert "an scd2 table accepts only load: scd2" in error["message"]
            assert "set another target.table" in error["message"]
            assert feed.cli("state", "accept", NAME, "--reason", "x", "--yes").code == 4
            feed.define(target=load)
            feed.load()
            feed.define(target=other)
            feed.decide("reset", "--replace")
            feed.load()
            rows = DeltaTable(str(feed.table)).to_pyarrow_table().to_pylist()
            versions = [(row["id"], row["day"], row.get("_valid_to")) for row in rows]
            assert len(versions) == (1 if other["load"] == "merge_upsert" else 2), versions
