"""Units: where they come from, who goes first where not all can, and what a slice holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.feed import Feed
from tests.support.window_feed import DatabaseTable, Windows, event, instant, on_lake, on_postgres, watermark

Make = Callable[..., Windows]
APPENDED = {"load": "append"}


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Make:
    def made(**definition: Any) -> Windows:
        return on_lake(tmp_path / "project", engine, **({"target": APPENDED} | definition))

    return made


def of_listed_units(
    folder: Path, engine: SparkEngine, table: DatabaseTable, listed: list[dict[str, Any]]
) -> Feed:
    """A dataflow over a day of a table, whose units such inputs list."""
    source = {"table": f"{table.schema}.events", "window_column": "at", "unit_columns": {"u": "unit"}}
    day = watermark("2020-01-01", "2020-01-02", None, secondary_input=listed)
    return on_postgres(folder / "project", engine, table, source, watermark=day, target=APPENDED)


def u(*names: str) -> list[str]:
    """Identities of units."""
    return [f'{{"u":"{name}"}}' for name in names]


class TestSecondaryInput:
    LISTED = watermark(
        "2020-01-01",
        "2020-01-02",
        None,
        secondary_input=[{"table": "raw/units", "fields": ["u"], "filters": {"status": "open|closed"}}],
        min_units=0,
    )

    def _list(self, made: Windows, **units: str | None) -> None:
        table = pa.table({"u": list(units), "status": pa.array(units.values(), pa.string())})
        write_deltalake(str(made.table.path.parent / "units"), table, mode="overwrite")

    def test_its_filtered_rows_are_the_units_and_a_new_one_starts_at_from(self, make: Make) -> None:
        made = make(watermark=self.LISTED)
        made.table.put(*[event(number, "2020-01-01", unit) for number, unit in enumerate("abcd")])
        self._list(made, a="open", b="closed", c="reopened", d=None)
        made.run("2020-01-03")
        assert made.feed.ids == [0, 1]
        self._list(made, b="open", c="open")
        outcome = made.feed.run(now=instant("2020-01-03"))
        assert (outcome.error, outcome.work_units, made.feed.ids) == (None, 1, [0, 1, 2])
        plan = made.feed.platform.plan(made.feed.dataflow, instant("2020-01-03"))
        assert "no longer a unit" in next(skip.why for skip in plan.skips if "a" in skip.subject)
        assert sorted(made.feed.watermark["units"]) == u("a", "b", "c"), "a keeps its history, and its rows"

    def test_an_empty_one_plans_nothing_and_one_that_cannot_be_read_fails_the_plan(self, make: Make) -> None:
        made = make(watermark=self.LISTED)
        made.table.put(event(1, "2020-01-01"))
        error = made.fail("2020-01-03")
        assert (error.code, error.exit_code) == ("secondary_input", 1)
        assert "raw/units" in error.message
        self._list(made, a="ended")
        assert made.run("2020-01-03") == []
        assert (made.feed.newest, made.feed.table.exists()) == (None, False)


class TestSlices:
    def test_neighbouring_work_units_share_a_commit_and_max_slices_ends_a_run(self, make: Make) -> None:
        made = make(watermark=watermark(to="2020-01-06", checkpoint={"interval_windows": 4}, max_slices=2))
        made.table.put(
            *[event(number, f"2020-01-0{1 + number // 2}", "ab"[number % 2]) for number in range(10)]
        )
        made.run("2020-01-07")
        assert made.feed.ids == list(range(8))
        made.run("2020-01-07")
        assert made.feed.ids == list(range(10))
        assert [(entry.work_units, entry.rows) for entry in made.feed.entries] == [(4, 4), (4, 4), (2, 2)]
        assert made.run("2020-01-07") == []

    def test_pacing_spaces_the_starts_of_work_units(self, make: Make) -> None:
        made = make(watermark=watermark(to="2020-01-02", units="a,b", pacing="PT30S"))
        made.table.put(event(1, "2020-01-01", "b"))
        waited: list[float] = []
        made.run("2020-01-07", wait=waited.append)
        assert [entry.work_units for entry in made.feed.entries] == [1, 1]
        (pause,) = waited
        assert 0 < pause < 30


class TestQuery:
    """Units from the database that the rows are read from."""

    @pytest.mark.postgres
    def test_a_new_member_is_noticed_at_the_next_plan_and_starts_at_from(
        self, tmp_path: Path, engine: SparkEngine, postgres: Postgres
    ) -> None:
        table = DatabaseTable(postgres)
        table.put(*[event(number, "2020-01-01", unit) for number, unit in enumerate("abc")])
        table.ask("CREATE TABLE {s}.members (name text, open boolean)")
        table.ask("INSERT INTO {s}.members VALUES ('a', true), ('b', true), ('c', false), ('a', true)")
        query = f"SELECT name AS u, open FROM {table.schema}.members -- all of them;"
        listed = [{"query": query, "fields": ["u"], "filters": {"open": "true"}}]
        flow = of_listed_units(tmp_path, engine, table, listed)
        now = instant("2020-01-03")
        assert flow.run(now=now).error is None
        assert (flow.ids, sorted(flow.watermark["units"])) == ([0, 1], u("a", "b"))
        table.ask("UPDATE {s}.members SET open = true WHERE name = 'c'")
        outcome = flow.run(now=now)
        assert (outcome.error, outcome.work_units, flow.ids) == (None, 1, [0, 1, 2])

    @pytest.mark.postgres
    def test_a_query_that_fails_plans_nothing_and_no_all_units(
        self, tmp_path: Path, engine: SparkEngine, postgres: Postgres
    ) -> None:
        table = DatabaseTable(postgres)
        table.put(event(1, "2020-01-01", "a"))
        listed = [{"query": "SELECT u FROM nowhere", "fields": ["u"]}]
        flow = of_listed_units(tmp_path, engine, table, listed)
        error = flow.fail(now=instant("2020-01-03"))
        assert error.code == "secondary_input"
        assert "nowhere" in error.message
        assert flow.rows("id") == []
