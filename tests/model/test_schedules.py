"""Damage and decisions: whatever happens, a schedule ends with every row once, or with commands that lead there.

What is modelled: one dataflow over files, by watermark (late files ingested or quarantined) or by set; two files a slice, a row a file.
Files arrive, in order and late. Runs and rounds of the sweep load them. All decisions are made, also as answers to a run that stopped. Each of
these dies before or after anything that it puts beside the log, or around its commit, which may land later; or another process does
something there, that takes it for dead. State and table
are lost, restored, made again, cleaned up and written by others (:mod:`tests.model.actions`).

What is right: :mod:`tests.model.oracle`. What is real, and what stands in for Spark: :mod:`tests.support.jvmless`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.model import actions as do
from tests.model.known import KNOWN
from tests.model.schedules import configs, schedules
from tests.model.world import Config, play

_HEALTH: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@given(schedule=schedules(8), config=configs)
@settings(max_examples=30, **_HEALTH)
def test_schedules_end_with_rows_once_or_a_way_there(schedule: list[do.Action], config: Config) -> None:
    play(schedule, config)


@pytest.mark.full
@pytest.mark.timeout(3600)
@given(schedule=schedules(14), config=configs)
@settings(max_examples=1000, **_HEALTH)
def test_long_schedules_end_with_rows_once_or_a_way_there(schedule: list[do.Action], config: Config) -> None:
    play(schedule, config)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if number % 3 == 0 else pytest.mark.full)
        for number, name in enumerate(KNOWN)
    ],
)
def test_a_schedule_that_went_wrong_ends_well(name: str) -> None:
    play(*KNOWN[name])
