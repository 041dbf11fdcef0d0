"""Decisions about windows: what a changed definition invalidates, what is read again after a rewind, and what a lost state costs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.feed import NAME, removes_table
from tests.support.window_feed import REPLACED, Windows, event, instant, on_lake, watermark

A, B = '{"u":"a"}', '{"u":"b"}'
NOW = "2020-01-06T12:00"


def planned(made: Windows) -> list[tuple[str, str]]:
    """Start and unit of what the next run would read."""
    plan = made.feed.platform.plan(made.feed.dataflow, instant(NOW))
    return [
        (one["window"]["start"][5:10], one["unit"]["u"]) for piece in plan.slices for one in piece.describe()
    ]


@pytest.fixture(scope="module")
def loaded_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Callable[[str], Windows]:
    """Five days of two units in two entries, each day's row of each unit; by the target's load."""
    made: dict[str, Windows] = {}

    def loaded(load: str) -> Windows:
        if load not in made:
            target = REPLACED if load == "merge_overwrite" else {"load": load}
            here = on_lake(
                tmp_path_factory.mktemp(load) / "project",
                engine,
                watermark=watermark(to="P0D"),
                target=target,
            )
            here.table.put(
                *[
                    event(2 * day + unit, f"2020-01-0{day}", "ab"[unit])
                    for day in range(1, 6)
                    for unit in (0, 1)
                ]
            )
            here.run("2020-01-04")
            here.run(NOW)
            made[load] = here
        return made[load]

    return loaded


@pytest.fixture
def make(loaded_once: Callable[[str], Windows], tmp_path: Path) -> Callable[..., Windows]:
    """A copy of one's own."""

    def copied(load: str = "append") -> Windows:
        there = loaded_once(load)
        feed = there.feed.copy(tmp_path / "loaded")
        return Windows(
            feed, type(there.table)(feed.folder / "lake" / "raw" / "events", rows=dict(there.table.rows))
        )

    return copied


class TestDefinitions:
    @pytest.mark.parametrize(
        ("changes", "said", "then"),
        [
            ({"watermark": watermark("2020-01-02", "P0D")}, "from was 2020-01-01, is 2020-01-02 (windows start at other instants", []),
            ({"watermark": watermark("2020-01-01T12:00:00", "P0D")}, "all others are read again", [("01-0" + str(day), unit) for day in range(1, 6) for unit in "ab"]),
            ({"watermark": watermark(to="P0D", window={"weekly": ["2020-01-01", "2020-01-03"], "daily": ["2020-01-03", "-"]})}, "window was daily, is ", []),
            ({"watermark": watermark(to="P0D", timezone="+02:00")}, "timezone was UTC", None),
            ({"source": {"unit_columns": {"u": "value"}}}, "source.unit_columns was u: unit, is u: value (the loaded units now stand for other rows", []),
            ({"source": {"window_column": "value"}}, "the loaded windows now stand for other rows", []),
            ({"source": {"table": "raw/others"}}, "the watermark belongs to the old source", []),
            ({"target": {"table": "bronze/others"}}, "the rows loaded so far are in the old table", []),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )  # fmt: skip
    def test_a_changed_one_is_a_decision_that_says_what_it_invalidates(
        self,
        make: Callable[..., Windows],
        changes: dict[str, Any],
        said: str,
        then: list[tuple[str, str]] | None,
    ) -> None:
        made = make()
        made.feed.define(**changes)
        answer = made.feed.cli("run", NAME, "--now", NOW)
        assert (answer.code, answer.error["code"]) == (4, "definition_changed")
        assert said in answer.error["message"]
        assert answer.error["choices"][0] == f"strandline state accept {NAME} --reason TEXT"
        if then is not None and "table" not in changes.get("source", {}):
            told = made.feed.decide("accept", now=NOW).err
            assert planned(made) == then, "windows that start where an old one started keep what they have"
            again = "each commit deletes what it reads of them, and inserts it again"
            assert ("adds their rows a second time" in told, again in told) == (False, bool(then))

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            (
                {"unit_columns": {"u": "units"}},
                "source.unit_columns.u: expected a column of raw/events, which has",
            ),
            ({"window_column": "att"}, "found att (did you mean at?)"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_a_column_that_is_not_there_is_named_before_anything_is_begun(
        self, make: Callable[..., Windows], source: dict[str, Any], said: str
    ) -> None:
        made = make()
        made.feed.define(source=source, watermark=watermark(to="-"))
        made.feed.decide("accept", now=NOW)
        entry = made.feed.newest
        error = made.fail(NOW)
        assert (error.code, said in error.message) == ("configuration", True), error.message
        assert (made.feed.newest, made.feed.open_intent) == (entry, None)

    @pytest.mark.parametrize(
        ("more", "then"),
        [
            ({"units": "a,b,c"}, [(f"01-0{day}", "c") for day in range(1, 6)]),
            ({"units": "b"}, []),
            ({"to": "-"}, [("01-06", "a"), ("01-06", "b")]),
            ({"parallelism": 1, "to": "-"}, [("01-06", "a")]),
            ({"abstinent": "P1D", "abstinent_skips": True}, []),
            ({"min_units": 1, "partial": False}, []),
        ],
        ids=str,
    )
    def test_what_only_says_how_much_is_read_may_change_at_any_time(
        self, make: Callable[..., Windows], more: dict[str, Any], then: list[tuple[str, str]]
    ) -> None:
        made = make()
        made.feed.define(watermark=watermark(**{"to": "P0D", **more}))
        assert planned(made) == then

    def test_a_longer_window_with_new_days_is_read_whole(self, make: Callable[..., Windows]) -> None:
        made = make("merge_overwrite")
        made.feed.define(watermark=watermark(to="2020-01-08", window="weekly"))
        made.feed.decide("accept", now=NOW)
        plan = made.feed.platform.plan(made.feed.dataflow, instant(NOW))
        read = [
            (one["read"]["start"][:10], one["unit"]["u"], one["reason"]) for one in plan.slices[0].describe()
        ]
        assert read == [("2020-01-01", "a", "forced"), ("2020-01-01", "b", "forced")]

    @pytest.mark.full
    def test_a_grace_may_come_at_any_time(self, make: Callable[..., Windows]) -> None:
        made = make("merge_overwrite")
        made.feed.define(watermark={"grace": "P1D"})
        assert planned(made) == [("01-05", "a"), ("01-05", "b")]


class TestRewind:
    def test_an_append_without_replace_doubles_and_says_so(self, make: Callable[..., Windows]) -> None:
        made = make()
        answer = made.feed.decide("rewind", "--to", "1", now=NOW)
        assert (
            "4 of these work units were loaded before; load: append adds their rows a second time"
            in answer.err
        )
        made.run(NOW)
        assert made.feed.ids == [2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11]

    def test_replace_deletes_all_that_was_ever_loaded_of_it(self, make: Callable[..., Windows]) -> None:
        made = make()
        made.feed.decide("rewind", "--to", "1", "--replace", now=NOW)
        answer = made.feed.decide("rewind", "--to", "0", "--replace", now=NOW)
        assert "each commit deletes what it reads of them, and inserts it again" in answer.err
        made.feed.define(watermark={"checkpoint": {"interval_windows": 6}})
        made.table.put(event(2, "2020-01-01", "a", value=1))
        made.table.drop(11)
        made.run(NOW)
        assert made.feed.ids == list(range(2, 11))
        newest = made.feed.entries[-1]
        assert (newest.total_rows, newest.replace_until) == (9, None)

    @pytest.mark.full
    def test_a_window_that_is_replaced_anyway_needs_no_replace(self, make: Callable[..., Windows]) -> None:
        made = make("merge_overwrite")
        answer = made.feed.decide("rewind", "--to", "1", now=NOW)
        assert "each commit deletes what it reads of them, and inserts it again" in answer.err
        made.run(NOW)
        assert made.feed.ids == list(range(2, 12))

    @pytest.mark.full
    def test_a_replacing_reset_empties_the_table_at_once(self, make: Callable[..., Windows]) -> None:
        made = make()
        made.table.drop(3)
        made.feed.decide("reset", "--replace", now=NOW)
        made.feed.define(watermark={"checkpoint": {"interval_windows": 6}})
        made.run(NOW)
        assert made.feed.ids == [2, *range(4, 12)]
        assert made.feed.entries[-1].total_rows == 9


class TestLostState:
    def test_adopt_takes_the_newest_state_and_nothing_is_due(self, make: Callable[..., Windows]) -> None:
        made = make()
        before = made.feed.watermark
        shutil.rmtree(made.feed.state)
        refused = made.feed.cli("run", NAME, "--now", NOW)
        assert (refused.code, refused.error["code"]) == (4, "state_lost")
        made.feed.decide("adopt", now=NOW)
        assert (made.feed.watermark, planned(made)) == (before, [])

    @pytest.mark.parametrize("table", ["made again", "removed"])
    def test_set_leads_on_if_there_is_none_to_adopt(self, make: Callable[..., Windows], table: str) -> None:
        made = make()
        assert made.feed.newest is not None
        watermark = made.feed.newest.watermark
        rows = DeltaTable(str(made.feed.table)).to_pyarrow_table()
        shutil.rmtree(made.feed.table)
        if table == "made again":
            write_deltalake(str(made.feed.table), rows)
        stopped = made.feed.cli("state", "adopt", NAME, "--reason", "x", "--yes", "--now", NOW).error
        assert stopped["code"] == "nothing_to_adopt"
        assert [choice.split()[2] for choice in stopped["choices"]] == ["set", "reset"]
        made.feed.decide("set", watermark, now=NOW)
        made.table.add(event(12, "2020-01-06"))
        made.run("2020-01-07")
        assert made.feed.ids == ([*range(2, 13)] if table == "made again" else [12])

    def test_an_import_leaves_nothing_due(self, make: Callable[..., Windows], tmp_path: Path) -> None:
        made = make()
        (tmp_path / "export.jsonl").write_text(made.feed.cli("state", "export", NAME).out)
        shutil.rmtree(made.feed.state)
        made.feed.decide("import", str(tmp_path / "export.jsonl"), now=NOW)
        assert planned(made) == []
        assert made.feed.entries[-1].total_rows == 10

    def test_set_raises_highs_and_never_lowers_one(self, make: Callable[..., Windows]) -> None:
        made = make()
        made.feed.define(watermark=watermark(to="P0D", units="a,b,c"))
        assert len(planned(made)) == 5
        state = made.feed.watermark
        run = state["units"][A][0]
        low = json.dumps({**state, "units": {A: [[run[0], run[1] - 86_400_000]]}})
        answer = made.feed.cli("state", "set", NAME, low, "--reason", "x", "--yes")
        assert (answer.code, answer.error["code"]) == (4, "would_fall")
        made.feed.decide(
            "set", json.dumps({**state, "units": {**state["units"], '{"u":"c"}': [run]}}), now=NOW
        )
        assert planned(made) == []
        assert made.feed.cli("state", "set", NAME, '{"path": "x"}', "--reason", "x", "--yes").code == 2


class TestUnfinished:
    """A run that died left a slice behind."""

    def _dies(self, made: Windows, now: str) -> None:
        def observer(step: Step, line: str) -> None:
            if step is Step.INTENT_PUT:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            made.feed.run(observer, now=instant(now))

    def test_the_preview_says_a_landed_slice_is_given_up(self, make: Callable[..., Windows]) -> None:
        made = make()
        made.feed.define(watermark={"checkpoint": {"interval_windows": 2}})
        made.table.put(event(12, "2020-01-06"), event(13, "2020-01-07"))
        assert made.feed.run(removes_table(made.feed), now=instant("2020-01-08")).error is not None
        told = made.feed.decide("reset", "--replace", now=NOW).err
        assert "slice 4, which a run left unfinished, is given up: its work is planned again" in told
        assert [entry.why for entry in made.feed.entries] == ["run", "run", "run", "abandon", "reset"]

    def test_what_is_planned_after_it_reads_what_has_come_since(self, make: Callable[..., Windows]) -> None:
        made = make()
        made.table.put(event(12, "2020-01-06", "a"))
        self._dies(made, "2020-01-07")
        made.table.put(event(13, "2020-01-06T01:00", "a"), event(14, "2020-01-07", "b"))
        outcome = made.feed.run(now=instant("2020-01-08"))
        assert (outcome.status, made.feed.ids) == ("recovered", [*range(2, 13), 14])
        assert [entry.work_units for entry in made.feed.entries[-2:]] == [2, 2]

    @pytest.mark.full
    def test_a_unit_that_fails_late_leaves_the_rest_planned(self, make: Callable[..., Windows]) -> None:
        made = make()
        made.table.add(event(12, "2020-01-06", "a"))
        made.table.add(event(13, "2020-01-06", "b"))
        self._dies(made, "2020-01-07")
        with made.table.without(12):
            error = made.fail("2020-01-07T01:00")
        assert error.code == "failed_units"
        assert made.feed.ids == [*range(2, 12), 13]
        state = next(entry for entry in made.feed.entries if entry.failed_units).state()
        assert (state["grid"], [len(run) for run in state["units"][B]]) == ("daily UTC", [2])
        (failure,) = state["failed"][A].values()
        assert failure[2] == int(instant("2020-01-07").timestamp() * 1000), "when it was planned"
        made.run("2020-01-07T02:00")
        assert made.feed.ids == list(range(2, 14))

    @pytest.mark.full
    def test_it_is_not_finished_with_other_keys_but_replanned(self, make: Callable[..., Windows]) -> None:
        made = make("merge_overwrite")
        made.table.put(event(12, "2020-01-06", "a"), event(13, "2020-01-06T01:00", "a"))
        self._dies(made, "2020-01-07")
        made.feed.define(target={"merge_keys": ["value"]})
        answer = made.feed.cli("run", NAME, "--now", "2020-01-07")
        assert (answer.code, answer.error["code"]) == (4, "intent_changed")
        assert "merge_keys" in answer.error["message"]
        assert "its work is planned again" in made.feed.decide("accept", now=NOW).err
        made.run("2020-01-07")
        assert made.feed.ids == [*range(2, 12), 13]
