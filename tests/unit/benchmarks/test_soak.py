"""The plan of a soak, and how its rows are compared."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from benchmarks.soak.chaos import Event, EventKind, planned
from benchmarks.soak.counting import Compared
from benchmarks.soak.sources import Rows


def test_a_seed_always_makes_the_same_plan_and_another_seed_another() -> None:
    assert planned(1, 4, 40) == planned(1, 4, 40)
    assert planned(1, 4, 40) != planned(2, 4, 40)


def test_what_is_spared_changes_nothing_else() -> None:
    runs: EventKind = "killed run"
    spared = planned(1, 4, 40, frozenset(("runs",)))
    assert spared == [event for event in planned(1, 4, 40) if event.kind != runs]
    assert len(spared) < len(planned(1, 4, 40))


@pytest.mark.parametrize("minutes", [1.6, 4, 16])
def test_every_plan_has_each_disturbance_of_files_rows_engine_and_store(minutes: float) -> None:
    found = {event.kind for event in planned(1, minutes, 40)}
    assert {"file", "late file", "bad file", "rows", "correction", "killed run", "killed engine"} <= found
    assert found & {"store paused", "store killed"}
    assert all(event.at < minutes * 60 for event in planned(1, minutes, 40))


@pytest.mark.parametrize("seed", range(20))
def test_an_engine_is_never_killed_so_often_that_dev_gives_up_on_it(seed: int) -> None:
    for minutes in (5, 16, 17.6, 22.6, 48):
        deaths = times(planned(seed, minutes, 1), "killed engine")
        assert all(late - early > 600 for early, late in zip(deaths, deaths[3:], strict=False))


@pytest.mark.parametrize("seed", range(20))
def test_one_outage_is_over_before_the_next_begins(seed: int) -> None:
    outages = [event for event in planned(seed, 16, 1) if event.kind.startswith("store")]
    assert all(later.at > event.at + event.seconds for event, later in pairwise(outages))


def test_what_is_missing_doubled_or_of_another_value_is_told_by_its_id() -> None:
    expected: Rows = Counter({(1, "a"): 1, (2, "b"): 1, (3, "c"): 1, (4, "d"): 1})
    found: Rows = Counter({(1, "a"): 1, (2, "b"): 2, (3, "x"): 1, (5, "e"): 1})
    compared = Compared.of(expected, found)
    assert (compared.expected, compared.actual) == (4, 5)
    assert (compared.missing, compared.doubled, compared.wrong) == ([4], [2], [3, 5])
    assert compared.problems == ["1 ids missing: 4", "1 ids doubled: 2", "2 ids wrong: 3, 5"]


def test_the_same_rows_are_no_problem() -> None:
    rows: Rows = Counter({(1,): 1, (2,): 1})
    assert Compared.of(rows, Counter(rows)).problems == []


def times(events: list[Event], what: EventKind) -> list[float]:
    return [event.at for event in events if event.kind == what]
