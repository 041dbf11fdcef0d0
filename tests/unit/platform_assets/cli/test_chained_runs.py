"""``run --all``: a dataflow whose windows wait runs although its upstream has failed, and is well with windows that wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from partitions.dataflow import Dataflow
from platform_assets.cli.run_in_order import run_in_order
from platform_assets.kinds import profile_of
from platform_assets.kinds.dead_servers import UnreachableServers
from resources.outcome import Outcome
from tests.support.chained import Chain, at, key_of
from tests.support.jvmless import jvmless


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    chain = Chain(tmp_path)
    for hour in range(72):
        chain.arrive("EWR", hour, 1)
    chain.now = at(73)
    chain.scene.broken.add(key_of("EWR", 29))
    with jvmless():
        yield chain


class Runner:
    """Runs dataflows of a chain."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.platform = chain, chain.platform()

    def run(self, flow: Dataflow) -> Outcome:
        outcome = self.chain.run(flow.name)
        assert outcome is not None
        return outcome


def test_a_failed_hour_stops_neither_other_days_nor_their_run(chain: Chain) -> None:
    flows = list(chain.flows.values())
    runner = cast("Any", Runner(chain))
    outcomes = run_in_order(runner, flows, {}, lambda outcome: None)
    assert [(outcome.dataflow, outcome.status) for outcome in outcomes] == [
        ("hours", "failed"),
        ("days", "committed"),
        ("weeks", "nothing"),
    ]
    assert [outcome.error for outcome in outcomes[1:]] == [None, None]
    assert chain.rows("days") == [("|2026-01-05T00", 24), ("|2026-01-07T00", 24)]


def test_list_counts_the_days_that_wait(chain: Chain) -> None:
    for name in ("hours", "days"):
        chain.run(name)
    flow = chain.flows["days"]
    profile = profile_of(flow)
    waiting = profile.waiting(chain.platform(), flow, chain.newest("days"), chain.now, UnreachableServers())
    reach = "up to 2026-01-06T00:00:00+00:00; 1 gap"
    assert waiting == {"work_units": 0, "failed_units": 0, "waiting_for_upstream": 1, "reach": reach}
    assert profile.waiting_in_words(waiting) == "1 waiting for upstream"
