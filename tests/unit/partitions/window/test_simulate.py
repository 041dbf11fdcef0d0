"""What every grace would have caught and read again."""

from __future__ import annotations

import pytest

from partitions.errors import ConfigurationError
from partitions.instants import DAY
from partitions.window.simulate import Observation, Simulation, graces_of, simulate

UNIT = "{}"


def read(run: int, window: int, rows: int = 10, digest: str = "same") -> Observation:
    """On the day ``run``, of the day ``window``; both count from 0, and a run is an hour after midnight."""
    return Observation(
        run * DAY + 3_600_000, UNIT, window * DAY, (window + 1) * DAY, window * DAY, rows, digest
    )


def tried(*observations: Observation, graces: str = "P0D..P3D") -> Simulation:
    return simulate(observations, graces_of(graces), dataflow="flow")


def test_a_change_is_caught_by_each_grace_above_its_age() -> None:
    # Day 0 is read on day 1, again on day 2 (age 0: it is the newest) and on day 3, when it has changed.
    found = tried(read(1, 0), read(2, 0), read(2, 1), read(3, 0, 12, "other"), read(3, 1), read(3, 2))
    assert [(one.caught, one.rows) for one in found.candidates] == [(0, 0), (0, 0), (1, 2), (1, 2)]
    assert (found.changes, found.longest) == (1, DAY)
    assert found.as_json()["recommended"] == "P2D"
    assert found.why == (
        "a grace of P2D would have caught the one late change, and no shorter one. No run has looked for changes that came later"
        " than P1D after a window's end"
    )


def test_a_grace_is_counted_for_longer_ones_than_there_was() -> None:
    found = tried(*(read(run, run - 1) for run in range(1, 5)))
    # Run 2 could have read day 0 again, run 3 days 0 and 1, run 4 days 0, 1 and 2.
    assert [one.reread for one in found.candidates] == [0, 3, 5, 6]


def test_without_any_second_read_nothing_is_said_of_late_changes() -> None:
    found = tried(read(1, 0), read(2, 1))
    assert found.as_json()["recommended"] is None
    assert found.why.startswith("late changes are unknown, since no run has read a window again.")


def test_without_a_change_there_is_nothing_to_recommend() -> None:
    found = tried(read(1, 0), read(2, 0), read(2, 1), read(3, 0), read(3, 2))
    assert found.why.startswith("no late change was observed in 5 reads")


def test_reads_of_different_stretches_are_not_compared() -> None:
    part = read(2, 0, 3, "part")._replace(lower=DAY // 2)
    assert tried(read(1, 0), part).changes == 0


def test_no_candidate_that_is_long_enough_is_said() -> None:
    found = tried(read(1, 0), read(2, 0), read(2, 1), read(3, 0, 12, "other"), read(3, 2), graces="P0D,P1D")
    assert found.why.startswith("no grace of these would have caught the one late change: try longer ones")


def test_nothing_observed_is_said() -> None:
    assert tried().as_json()["observed"]["reads"] == 0
    assert tried().why.startswith("no run has observed anything yet")


def test_candidates_are_days_of_a_range_or_durations() -> None:
    assert graces_of("P0D..P2D") == [0, DAY, 2 * DAY]
    assert graces_of("P1D, PT36H,P1D") == [DAY, DAY * 3 // 2]
    assert [one["grace"] for one in tried(graces="PT36H,PT90M").as_json()["graces"]] == ["PT1H30M", "P1DT12H"]


@pytest.mark.parametrize("text", ["", "P3D..P1D", "3", "P1D..", "days"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--grace"):
        graces_of(text)
