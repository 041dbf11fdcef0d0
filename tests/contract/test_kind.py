"""What every kind of watermark promises to the loop (docs/explanation/architecture.md, Contracts)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from partitions.errors import BadFile, BadPart, BadUnits
from partitions.plan import Plan
from partitions.request import LateOnly
from partitions.sentinels import serialise
from resources.kinds.contract.kind import Kind
from resources.kinds.contract.reading import SliceBase
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog
from tests.contract.capabilities import pytest_generate_tests
from tests.support.commits import Upstream, copying
from tests.support.feed import NAME, Feed, dies_after, rows_in
from tests.support.window_feed import LakeTable, event, watermark

__all__ = ["pytest_generate_tests"]

NOW = datetime(2020, 1, 5, tzinfo=UTC)


class Subject(ABC):
    """A dataflow of one kind, with four parts of work.

    Attributes:
        feed: the dataflow.
    """

    feed: Feed

    @abstractmethod
    def put_more(self) -> None:
        """A part comes above the watermark."""

    @abstractmethod
    def bad(self, slice_: Any) -> BadPart:
        """The error that names the slice's first part."""

    @property
    def kind(self) -> Kind[Any]:
        """The kind, opened anew: nothing is remembered."""
        return self.feed.platform.kind(self.feed.dataflow)

    def fixed(self, slice_: Any) -> Any:
        """The slice with what exactly it is read from."""
        kind, spark = self.kind, self.feed.platform.engine(self.feed.dataflow).session()
        pinned = kind.reading.pin(spark, [slice_])
        assert pinned is not None
        return kind.reading.fix(slice_, SliceBase(spark, self.newest, pinned, NOW))

    @property
    def log(self) -> WatermarkLog:
        """The watermark log."""
        return self.feed.platform.log

    @property
    def newest(self) -> Entry | None:
        """The newest entry."""
        return self.log.newest(NAME)

    def plan(self, now: datetime = NOW) -> Plan[Any]:
        """What is due."""
        return self.kind.planning.plan(self.newest, now)

    def load(self, now: datetime = NOW) -> None:
        """Load all that is due."""
        outcome = self.feed.run(now=now)
        assert outcome.error is None


class _Path(Subject):
    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        self.feed = Feed(folder, engine, {"watermark": {"checkpoint": {"interval_files": 2}}})
        for number in range(1, 5):
            self.feed.put(f"{number}.ndjson", number)

    def put_more(self) -> None:
        self.feed.put("9.ndjson", 9)

    def bad(self, slice_: Any) -> BadPart:
        return BadFile("it is torn", path=slice_.files[0].path, why="torn")


class _Window(Subject):
    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        self.feed = Feed(
            folder,
            engine,
            {
                "source": {"type": "table", "table": "bronze/events", "window_column": "at", "unit_columns": {"u": "unit"},
                           "path": None, "format": None},
                "watermark": watermark(units="a,b", checkpoint={"interval_windows": 2}),
                "target": {"load": "merge_overwrite", "replace_by_watermark": True},
            },
        )  # fmt: skip
        self.table = LakeTable(self.feed.folder / "lake" / "bronze" / "events")
        self.table.put(*[event(day, f"2020-01-0{day}", "a") for day in range(1, 5)])

    def put_more(self) -> None:
        self.table.put(event(9, "2020-01-05", "a"))

    def bad(self, slice_: Any) -> BadPart:
        work = slice_.works[0]
        return BadUnits("it is torn", part="work", why="torn", units={work.key: "torn"})


class _Column(Subject):
    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        self.feed = Feed(
            folder,
            engine,
            {
                "source": {"type": "table", "table": "bronze/events", "path": None, "format": None},
                "watermark": {"type": "column", "columns": ["at"], "checkpoint": {"interval_rows": 4}},
            },
        )
        self.table = LakeTable(self.feed.folder / "lake" / "bronze" / "events")
        for hour in range(8):
            self.table.add(event(hour, f"2020-01-01T0{hour}:00"))

    def put_more(self) -> None:
        self.table.add(event(9, "2020-01-05T12:00"))

    def bad(self, slice_: Any) -> BadPart:
        raise NotImplementedError


class _Stream(Subject):
    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        self.feed = Feed(
            folder,
            engine,
            {
                "source": {"schema": "id long, d string, ts timestamp"},
                "watermark": {"type": "stream", "event_time": "ts", "split": "d", "timeout": "PT5M",
                              "checkpoint": {"interval_files": 2}},
            },
        )  # fmt: skip
        for number in range(1, 5):
            self._put(number)

    def _put(self, hour: int) -> None:
        self.feed.put(f"{hour}.ndjson", {"id": hour, "d": "a", "ts": f"2020-01-01T0{hour}:00:00Z"})

    def put_more(self) -> None:
        self._put(9)

    def bad(self, slice_: Any) -> BadPart:
        return BadFile("it is torn", path=slice_.input.source_files[0].path, why="torn")


class _Offset(Subject):
    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        source = {"from": "earliest", "path": None, "format": None}
        self.feed = Feed(folder, engine, copying(source=source, watermark={"checkpoint": {"commits": 2}}))
        self.table = Upstream(self.feed.folder / "lake", engine)
        for number in range(1, 5):
            self.table.append((number, "a"))

    def put_more(self) -> None:
        self.table.append((9, "a"))

    def bad(self, slice_: Any) -> BadPart:
        raise NotImplementedError


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, engine: SparkEngine) -> Subject:
    make: dict[str, Callable[[Path, SparkEngine], Subject]] = {
        "path": _Path,
        "column": _Column,
        "window": _Window,
        "stream": _Stream,
        "offset": _Offset,
    }
    return make[request.param](tmp_path / "project", engine)


def _all_keys(plan: Plan[Any]) -> list[Any]:
    return [key for slice_ in plan.slices for key in slice_.keys]


def _intent(subject: Subject, slice_: Any) -> Intent:
    """As much of an intent as tells a slice."""
    state = subject.newest.state() if subject.newest else {}
    known: dict[str, Any] = {
        "before": serialise(state),
        "watermark": serialise(slice_.advance(state)),
        "why": slice_.why,
        "replaces": "own" if slice_.replaces else None,
    }
    return Intent.model_construct(**known)


def test_all_of_the_source_is_due_at_first_and_each_part_once(subject: Subject) -> None:
    plan = subject.plan()
    keys = _all_keys(plan)
    assert plan.due
    assert len(keys) == len(set(keys))
    assert len(plan.slices) > 1


def test_nothing_is_due_after_a_load_until_more_comes(subject: Subject) -> None:
    subject.load()
    assert not subject.plan().due
    subject.put_more()
    later = NOW + timedelta(days=1)
    assert subject.plan(later).due


def test_a_plan_is_a_function_of_state_source_and_clock(subject: Subject) -> None:
    assert subject.plan() == subject.plan()


def test_a_request_for_late_files_plans_nothing_that_is_new(subject: Subject) -> None:
    assert subject.kind.planning.plan(subject.newest, NOW, LateOnly()).slices == ()


def test_a_slice_is_the_same_after_it_was_stored(subject: Subject) -> None:
    kind = subject.kind
    for slice_ in subject.plan().slices:
        fixed = subject.fixed(slice_)
        again = subject.kind.stored_slices.from_rows(
            _intent(subject, fixed), kind.stored_slices.to_rows(fixed)
        )
        state = subject.newest.state() if subject.newest else {}
        assert (again.keys, again.size, again.why, again.replaces) == (
            fixed.keys,
            fixed.size,
            fixed.why,
            fixed.replaces,
        )
        assert again.advance(state) == fixed.advance(state)
        assert (again.upper, kind.stored_slices.to_rows(again)) == (
            fixed.upper,
            kind.stored_slices.to_rows(fixed),
        )


def test_the_watermark_never_falls_by_a_slice(subject: Subject) -> None:
    kind, state = subject.kind, dict[str, Any]()
    for slice_ in map(subject.fixed, subject.plan().slices):
        after = dict(slice_.advance(state))
        assert kind.planning.covers(serialise(after), serialise(state))
        assert not kind.planning.covers(serialise(state), serialise(after))
        state = after


def test_halves_hold_what_the_whole_held_in_its_order(subject: Subject) -> None:
    for slice_ in map(subject.fixed, subject.plan().slices):
        halves = slice_.halve()
        assert [key for half in halves for key in half.keys] == list(slice_.keys)
        state: dict[str, Any] = {}
        for half in halves:
            state = dict(half.advance(state))
        assert state == slice_.advance({})


def test_a_slice_knows_its_own_bad_parts(subject: Subject) -> None:
    first, second = subject.plan().slices[:2]
    bad = subject.bad(first)
    assert (first.contains(bad), second.contains(bad)) == (True, False)


def test_fixing_a_slice_again_changes_nothing_while_the_source_is_the_same(subject: Subject) -> None:
    fixed = subject.fixed(subject.plan().slices[0])
    subject.kind.reading.check_unchanged(fixed)
    assert subject.fixed(fixed) == fixed


def test_rows_of_no_slice_have_the_columns_of_any(subject: Subject) -> None:
    kind, spark = subject.kind, subject.feed.platform.engine(subject.feed.dataflow).session()
    slices = subject.plan().slices
    pinned = kind.reading.pin(spark, slices)
    assert pinned is not None
    fixed = subject.fixed(slices[0])
    none, some = kind.reading.read(spark, None, pinned), kind.reading.read(spark, fixed, pinned)
    assert (none.dtypes, none.count()) == (some.dtypes, 0)


def test_rows_that_fail_a_rule_are_rejected_once_however_a_run_dies(subject: Subject) -> None:
    feed = subject.feed.define(rules=[{"name": "even", "expect": "id % 2 = 0"}])
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.SET_ASIDE), now=NOW)
    subject.load()
    subject.put_more()
    subject.load(NOW + timedelta(days=1))
    rejected = rows_in(Path(f"{feed.table}_rejected"), ("id", "_rejected_by"))
    assert {rules for _, rules in rejected} == {"even"}
    ids = [id_ for (id_,) in feed.rows("id")]
    assert [id_ for id_ in ids if id_ % 2] == []
    assert [id_ for id_, _ in rejected if not id_ % 2] == []
    expected = {"path": 5, "window": 5, "column": 9, "stream": 4, "offset": 5}
    both = sorted([*ids, *(id_ for id_, _ in rejected)])
    assert (len(both), len(set(both))) == (expected[feed.dataflow.kind],) * 2
    entries = feed.entries
    assert sum(entry.rejected for entry in entries) == len(rejected)
    assert sum(entry.checked for entry in entries) == len(both)
