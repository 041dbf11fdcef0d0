"""A round of the sweep is over whatever it finds; what it names is bounded, what it counts is exact, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resources.kinds.path import planning
from resources.kinds.path.opening import path_planning
from resources.listing import Budget
from resources.watermarks.lists import QUARANTINED_FILES, StoredList
from resources.watermarks.quarantine_list import read_quarantine
from tests.support.arrivals import NOW, Arrivals

MakeArrivals = Callable[..., Arrivals]
LAST = {"path": "d=3/z.ndjson"}
LATE = [f"d={day}/{number:02}.ndjson" for day in (0, 1, 2) for number in range(9)][:25]


@pytest.fixture
def make(tmp_path: Path) -> MakeArrivals:
    """A dataflow that has loaded one file, with 25 late ones in three folders."""

    def made(**definition: Any) -> Arrivals:
        arrivals = Arrivals(tmp_path, **definition)
        arrivals.put("d=3/z.ndjson", *LATE)
        arrivals.commit(["d=3/z.ndjson"])
        return arrivals

    return made


@pytest.mark.parametrize("policy", ["ingest", "quarantine", "alert", "ignore"])
def test_a_round_of_many_late_files_counts_all_of_them(make: MakeArrivals, policy: str) -> None:
    arrivals = make(late_files=policy)
    for _ in range(3):
        done = arrivals.sweep(most=10)
        assert (done.complete, len(done.late), done.sweep.verified_at) == (True, 25, NOW.isoformat())
        assert (arrivals.waiting().count, arrivals.waiting().first(50)) == (25, LATE[:10])


@pytest.mark.parametrize("policy", ["ingest", "alert"])
def test_the_note_counts_all_late_files_in_a_round_too(make: MakeArrivals, policy: str) -> None:
    arrivals = make(late_files=policy)
    arrivals.sweep(most=10)
    for _ in range(10):
        done = arrivals.sweep(most=10, pages=1)
        assert arrivals.waiting().count == 25
        assert max(len(arrivals.note.late), len(arrivals.note.before)) <= 10
        assert done.sweep.verified_at is not None


def test_runs_load_all_late_files_once_some_in_each_round(make: MakeArrivals) -> None:
    arrivals = make(late_files="ingest")
    loaded: list[str] = []
    left: list[int] = []
    while not left or left[-1]:
        arrivals.sweep(most=10, pages=2)
        planned = arrivals.planned("late")
        assert len(planned) <= 20, "those of this round and of the one before"
        loaded += planned
        if planned:
            arrivals.commit(planned, LAST, why="late")
        left.append(arrivals.waiting().count if arrivals.note.verified_at else 25)
    assert sorted(loaded) == LATE
    assert left == sorted(left, reverse=True), "the count only falls while nothing comes"
    assert arrivals.note.verified_at is not None


def test_a_late_file_that_comes_in_the_middle_of_a_round_is_counted_at_once(make: MakeArrivals) -> None:
    arrivals = make(late_files="alert")
    arrivals.sweep()
    arrivals.put("c/new.ndjson")
    while arrivals.waiting().count == 25:
        arrivals.sweep(pages=1)
    assert (arrivals.waiting().count, arrivals.waiting().first(1)) == (26, ["c/new.ndjson"])


def test_quarantine_sets_all_aside_once_some_at_a_step(make: MakeArrivals) -> None:
    arrivals = make(late_files="quarantine")
    shown = [arrivals.late(most=10).as_json() for _ in range(4)]
    assert [(one["quarantined"], one["waiting"]["count"]) for one in shown] == [
        (10, 15),
        (10, 5),
        (5, 0),
        (0, 0),
    ]
    assert all((one["complete"], one["verified_at"]) == (True, NOW.isoformat()) for one in shown)
    held = [one.file.path for one in read_quarantine(arrivals.platform.log, arrivals.newest).waiting]
    assert held == LATE


def test_a_plan_looks_at_some_late_files_at_once(make: MakeArrivals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_LATE_AT_ONCE", 10)
    arrivals = make()
    arrivals.sweep()
    loaded: list[str] = []
    while planned := arrivals.planned("late"):
        assert len(planned) <= 10
        arrivals.commit(planned, LAST, why="late")
        loaded += planned
    assert loaded == LATE


def test_a_late_file_that_is_gone_is_not_set_aside(make: MakeArrivals) -> None:
    arrivals = make(late_files="quarantine")
    arrivals.sweep()
    for path in LATE[1:]:
        (arrivals.landing / path).unlink()
    assert arrivals.late().as_json()["quarantined"] == 1
    assert [one.file.path for one in read_quarantine(arrivals.platform.log, arrivals.newest).waiting] == LATE[
        :1
    ]


class TestSettle:
    """A late file that somebody is still writing is neither loaded nor set aside, nor forgotten."""

    @pytest.fixture
    def arrivals(self, tmp_path: Path) -> Arrivals:
        return self.made(tmp_path)

    def made(self, tmp_path: Path, **definition: Any) -> Arrivals:
        arrivals = Arrivals(tmp_path, watermark={"type": "path", "settle": "PT10M"}, **definition)
        arrivals.put("d=3/z.ndjson", "d=0/old.ndjson")
        arrivals.put("d=1/young.ndjson", age=30)
        arrivals.commit(["d=3/z.ndjson"])
        return arrivals

    def test_it_is_late_once_it_has_settled(self, arrivals: Arrivals) -> None:
        later = NOW + timedelta(minutes=11)
        assert [file.path for file in arrivals.sweep().late] == ["d=0/old.ndjson"]
        found = arrivals.waiting()
        assert (found.count, [file.path for file in found.settling]) == (1, ["d=1/young.ndjson"])
        assert arrivals.waiting(later).first(50) == ["d=0/old.ndjson", "d=1/young.ndjson"]
        assert [file.path for file in arrivals.sweep(now=later).late] == [
            "d=0/old.ndjson",
            "d=1/young.ndjson",
        ]

    def test_a_run_leaves_it_and_says_so_and_a_later_one_loads_it(self, arrivals: Arrivals) -> None:
        arrivals.sweep()
        plan = arrivals.plan()
        assert arrivals.planned("late") == ["d=0/old.ndjson"]
        assert [skip.subject for skip in plan.skips] == ["d=1/young.ndjson"]
        assert "younger than settle" in plan.skips[0].why
        later = NOW + timedelta(minutes=11)
        assert arrivals.planned("late", later) == ["d=0/old.ndjson", "d=1/young.ndjson"]
        arrivals.put("d=1/young.ndjson", age=-600)
        assert arrivals.planned("late", later) == ["d=0/old.ndjson"], (
            "it was written again since it was found"
        )

    def test_it_is_not_set_aside_before(self, tmp_path: Path) -> None:
        arrivals = self.made(tmp_path, late_files="quarantine")
        shown = arrivals.late().as_json()
        assert (shown["late"], shown["quarantined"], shown["settling"]) == (["d=0/old.ndjson"], 1, 1)
        later = NOW + timedelta(minutes=11)
        arrivals.put("d=1/young.ndjson", age=-600)
        assert arrivals.late(now=later).quarantined is None
        assert arrivals.late(now=later + timedelta(minutes=11)).as_json()["quarantined"] == 1

    def test_a_released_file_waits_too(self, tmp_path: Path) -> None:
        arrivals = self.made(tmp_path)
        log, name = arrivals.platform.log, arrivals.flow.name
        aside = StoredList(QUARANTINED_FILES, [["d=1/young.ndjson", 0, "v", 0, "bad", True]])
        arrivals.commit([], LAST, quarantine=log.put_list(name, "x", aside, "quarantine"))
        assert arrivals.planned("release") == []
        assert [skip.subject for skip in arrivals.plan().skips] == ["d=1/young.ndjson"]
        later = NOW + timedelta(minutes=11)
        assert arrivals.planned("release", later) == ["d=1/young.ndjson"]
        peek = path_planning(arrivals.platform, arrivals.flow).peek
        assert peek(arrivals.newest, NOW, Budget(), None).listed.files == ()
        assert [file.path for file in peek(arrivals.newest, later, Budget(), None).listed.files] == [
            "d=1/young.ndjson"
        ]

    @pytest.mark.parametrize("tracking", ["watermark", "set"])
    def test_a_new_file_that_has_not_settled_asks_for_no_run(self, tmp_path: Path, tracking: str) -> None:
        arrivals = Arrivals(tmp_path, watermark={"type": "path", "settle": "PT10M", "tracking": tracking})
        peek = path_planning(arrivals.platform, arrivals.flow).peek
        arrivals.put("a.ndjson", age=30)
        arrivals.put("b.ndjson")
        behind = ["b.ndjson"] if tracking == "set" else []
        assert [file.path for file in peek(None, NOW, Budget(), None).listed.files] == behind
        arrivals.put("a.ndjson")
        assert len(peek(None, NOW, Budget(), None).listed.files) == 2
