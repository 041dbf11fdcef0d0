"""Whatever others do to a table, and whenever: no row is lost or doubled, or a run stops with exit code 4 and each choice leads on (docs/reference/state.md)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resources.kinds.path.late import late_step
from resources.outcome import Observer, Outcome, Step
from tests.integration.conftest import MakeFeed
from tests.support.catalogs import known_to_database, known_to_server, metadata_of, put_back
from tests.support.feed import NOW, Answer, Feed
from tests.support.foreign_acts import ACTS, FOREIGN_ID, Others
from tests.support.window_feed import BY_COLUMNS, REPLACED, LakeTable, event, instant, watermark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES: dict[str, Any] = {"source": {"schema": "id long, thing string, state long"}}
EVENTS: dict[str, Any] = {"source": {"type": "table", "table": "raw/events"} | BY_COLUMNS}
TABLE: dict[str, Any] = {"source": {"type": "table", "table": "raw/events"}}
BY_ID: dict[str, Any] = {"merge_keys": ["id"]}
LOADS: dict[str, dict[str, Any]] = {
    "append": FILES | {"target": {"load": "append"}},
    "by keys": FILES | {"target": {"load": "merge_upsert"} | BY_ID},
    "keys in partitions": FILES | {"target": {"load": "merge_upsert", "partition_by": ["thing"]} | BY_ID},
    "keys overwritten": FILES | {"target": {"load": "merge_overwrite"} | BY_ID, "late_files": "alert"},
    "history": FILES | {"target": {"load": "scd2", "merge_keys": ["thing"], "effective_column": "id"}},
    "windows": EVENTS | {"target": REPLACED, "watermark": watermark(to="P0D", units="a", grace="P1D")},
    "folders": {
        "source": FILES["source"] | {"path": "./landing/{start:%Y-%m-%d}", "extensions": [".ndjson"]},
        "watermark": watermark(to="P0D", units=None, partial=False),
        "target": {"load": "append"},
    },
    "whole": TABLE | {"target": {"load": "overwrite"}, "watermark": {"type": "window", "definition": []}},
}
"""Rows of a history are versions of one thing. Of windows each run reads one more day, and the day before it again; of a whole table all rows.
Rows of folders, which are windows, carry their window's start alone."""

TARGETS = (
    "delta",
    "delta by keys",
    "iceberg",
    "iceberg by keys",
    "parquet",
    "delta keys overwritten",
    "delta history",
    "delta windows",
    "iceberg keys overwritten",
    "iceberg history",
    "iceberg windows",
    "parquet windows",
    "parquet whole",
    "iceberg in a database",
    "iceberg in a database by keys",
    "iceberg on a server",
    "iceberg on a server by keys",
    "delta folders",
    "iceberg folders",
    "parquet folders",
    "delta keys in partitions",
    "iceberg keys in partitions",
)
"""A format, who knows the table if its folder does not, and how it is loaded if not by appends."""

MOMENTS = ("between runs", "before the write", "after the write", "before a recovery", "before its entry")
"""The second and third in a run that lives; the last two after a run that died with its intent put, and with its commit in the table."""

QUICK = {
    ("delta", "rollback", "after the write"),
    ("delta by keys", "compaction", "before a recovery"),
    ("iceberg", "expiry", "before its entry"),
    ("iceberg by keys", "rollback", "before the write"),
    ("parquet", "made again", "before the write"),
    ("parquet", "expiry", "before its entry"),
    ("iceberg keys overwritten", "append", "before its entry"),
    ("parquet windows", "delete", "between runs"),
    ("parquet folders", "rollback", "before the write"),
    ("iceberg in a database", "made again", "between runs"),
    ("delta keys in partitions", "append", "before its entry"),
    ("iceberg keys in partitions", "compaction", "before the write"),
}
"""Cells of the matrix that every test run has."""


def _cells() -> list[Any]:
    """Those of every run, and of the whole matrix a third in which each two of target, act and moment meet."""
    numbered = itertools.product(enumerate(TARGETS), enumerate(ACTS), enumerate(MOMENTS))
    third = {
        tuple(name for _, name in cell) for cell in numbered if sum(number for number, _ in cell) % 3 == 0
    }
    return [
        pytest.param(*cell, id=" / ".join(cell), marks=_marks(cell))
        for cell in itertools.product(TARGETS, ACTS, MOMENTS)
        if cell in QUICK | third
    ]


def _marks(cell: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    slow = [] if cell in QUICK else [pytest.mark.full]
    return [*slow, *([pytest.mark.postgres] if "database" in cell[0] else [])]


class Died(BaseException):
    """Ends a run as SIGKILL does."""


@dataclass
class Flow:
    """A dataflow that gets one row after another: in files, or in a table of which it reads windows or all.

    Attributes:
        feed: the dataflow.
        load: its key in LOADS.
        now: the clock of its runs and decisions: a row is of the day before.
    """

    feed: Feed
    load: str
    now: datetime = NOW

    def put(self, number: int) -> None:
        """The row of a number comes to the source."""
        day, file = f"2020-01-0{number}", {"id": number, "thing": "lamp", "state": number}
        match self.load:
            case "windows" | "whole":
                rows = [event(known, f"2020-01-0{known}") for known in range(1, number + 1)]
                LakeTable(self.feed.folder / "lake" / "raw" / "events").put(*rows)
            case "folders":
                self.feed.put(f"{day}/1.ndjson", file)
            case _:
                self.feed.put(f"{number}.ndjson", file)
                return
        self.now = instant(day) + timedelta(days=1)

    def run(self, observer: Observer | None = None) -> Outcome:
        """Run the loop."""
        return self.feed.run(observer, self.now)

    def decide(self, choice: str) -> Answer:
        """Take a choice of an error."""
        words = choice.removeprefix("strandline ").replace("TEXT", "because").split()
        return self.feed.cli(*words, "--yes", "--now", self.now.isoformat())

    def copy(self, folder: Path) -> Flow:
        """The same dataflow in another folder, which its Iceberg table names; a table that a catalog knows stays where it is."""
        copied = self.feed.copy(folder)
        if not copied.platform.lake.child(copied.dataflow.table).catalog:
            copied.command("relocate", "--yes")
        return replace(self, feed=copied)


@pytest.fixture
def flow(request: pytest.FixtureRequest, make_feed: MakeFeed, target: str) -> Flow:
    load = next((load for load in LOADS if target.endswith(f" {load}")), "append")
    definition = LOADS[load]
    format_ = target.partition(" ")[0]
    feed = make_feed(**definition | {"target": {"format": format_} | definition["target"]})
    if "in a database" in target:
        known_to_database(feed, request.getfixturevalue("postgres"))
    elif "on a server" in target:
        known_to_server(feed, request.getfixturevalue("rest"))
    return Flow(feed, load)


def at(step: Step, others: Others, act: str, *, dies: bool) -> Observer:
    """Others act once, when a run has done this step; or it dies there first."""
    done: list[Step] = []

    def observer(found: Step, line: str) -> None:
        if found is step and not done:
            done.append(found)
            if dies:
                raise Died
            others.do(act)

    return observer


def with_act(flow: Flow, others: Others, act: str, moment: str) -> None:
    """Have others act at that moment of the load of the third row."""
    if moment == "between runs":
        others.do(act)
    flow.put(3)
    match moment:
        case "before the write" | "after the write":
            step = Step.INTENT_PUT if moment == "before the write" else Step.WRITTEN
            _checked(flow.run(at(step, others, act, dies=False)).error)
        case "before a recovery" | "before its entry":
            step = Step.INTENT_PUT if moment == "before a recovery" else Step.WRITTEN
            with pytest.raises(Died):
                flow.run(at(step, others, act, dies=True))
            others.do(act)


def _checked(error: Any) -> Any:
    """An error that a run may end with: a decision is needed, with choices, or the next run can go on."""
    if error is not None:
        assert error.code != "internal", error.message
        assert error.exit_code != 4 or error.choices, error.message
    return error


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("target", "act", "moment"), _cells())
def test_no_row_is_lost_or_doubled_or_a_command_leads_on(
    flow: Flow, spark: SparkSession, tmp_path: Path, target: str, act: str, moment: str
) -> None:
    others = Others(flow.feed, spark)
    for number in (1, 2):
        flow.put(number)
        assert flow.run().error is None
    with_act(flow, others, act, moment)
    flow.put(4)
    error = _checked(flow.run().error)
    if error is None:
        _settled(flow, others, act, emptied=False)
        return
    assert error.exit_code == 4, error.message
    place = flow.feed.platform.lake.child(flow.feed.dataflow.table)
    known = metadata_of(place) if place.catalog else None
    led_on = []
    for choice in _ways(flow, error.choices):
        if known:
            put_back(place, known)
        led_on.append(_leads_on(flow.copy(tmp_path / choice.replace(" ", "_")), spark, choice, act))
    assert any(led_on), error.choices


def _ways(flow: Flow, choices: tuple[str, ...]) -> tuple[str, ...]:
    """The choices but one that needs an export, and one that says of appends that it adds all of them to what is there; these if there is no other."""
    name = flow.feed.name
    left_out = {f"strandline state import {name} FILE --reason TEXT"}
    if flow.load == "append":
        left_out.add(f"strandline state reset {name} --reason TEXT")
    return tuple(choice for choice in choices if choice not in left_out) or choices


def _leads_on(flow: Flow, spark: SparkSession, choice: str, act: str) -> bool:
    """Take a choice, and those of the runs after it; False: the table is another writer's, and tells no state."""
    emptied = False
    for _ in range(2):
        emptied = emptied or "--replace" in choice
        done = flow.decide(choice)
        if done.code == 4 and done.error["code"] == "nothing_to_adopt":
            return False
        if done.code == 4 and done.error["code"] == "deleted_rows":
            done = flow.decide(_with_deleted_rows_loaded(done.error["choices"]))
        assert done.code == 0, (choice, done.out, done.err)
        error = _checked(flow.run().error)
        if error is None:
            break
        assert error.choices, error.message
        choice = error.choices[0]
    else:
        pytest.fail(f"{choice} does not lead on")
    _settled(flow, Others(flow.feed, spark), act, emptied=emptied)
    return True


def _with_deleted_rows_loaded(choices: Sequence[str]) -> str:
    """Return the choice that brings back rows that the table lacks."""
    return next(choice for choice in choices if "--deleted load" in choice)


def _waiting(flow: Flow) -> set[int]:
    """The rows of late files that the sweep has found, and that the policy leaves to an operator."""
    if flow.feed.dataflow.kind != "path":
        return set()
    left = late_step(flow.feed.platform, flow.feed.dataflow, flow.now).remaining
    return {int(path.partition(".")[0]) for path in left.first(4)}


def _settled(flow: Flow, others: Others, act: str, *, emptied: bool) -> None:
    """Each of the dataflow's rows is there once; but those that others have deleted, unless everything was loaded again, need not be.

    Nor are those of late files of which the sweep says that they wait for a decision.
    """
    feed, waiting = flow.feed, _waiting(flow)
    ids = others.ids()
    mine = [number for number in ids if number != FOREIGN_ID]
    expected = [[number for number in (1, 2, 3, 4) if number not in waiting]]
    if act == "delete" and not emptied:
        expected.append([2, 3, 4])
    assert mine in expected
    if flow.load == "history":
        ends = [row[1:] for row in feed.rows("id", "_valid_to", "_is_current") if row[0] != FOREIGN_ID]
        assert ends == [*((number, False) for number in mine[1:]), (None, True)]
    if act == "append":
        assert ids.count(FOREIGN_ID) == (0 if emptied or flow.load == "whole" else 1)
    else:
        assert ids.count(FOREIGN_ID) <= 1
    assert flow.run().error is None, "the next run has nothing to do"
    assert feed.platform.table(feed.dataflow).contents.count_rows() == len(ids)
