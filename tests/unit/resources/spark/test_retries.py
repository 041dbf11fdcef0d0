"""How long a Spark Connect server that does not answer is waited for."""

from __future__ import annotations

from contextlib import suppress

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark.sql.connect.client.retries import Retrying

from resources.spark.retries import Outage, OutagePolicy, outage_of


class Refused(grpc.RpcError):  # type: ignore[misc]
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self) -> None:
        """No server has said anything."""


class Clock:
    """Seconds that pass only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def tried(policy: OutagePolicy, clock: Clock, answers_at: int | None = None) -> float:
    """The seconds that one call waits. The server answers at this try, or is gone."""
    before = clock.now
    with suppress(Refused):
        for number, attempt in enumerate(Retrying([policy], sleep=clock.wait), start=1):
            with attempt:
                if number != answers_at:
                    raise Refused
    return clock.now - before


@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED")
def test_a_gone_server_is_waited_for_half_a_minute_by_all_sessions() -> None:
    clock = Clock()
    sessions = [OutagePolicy(outage) for outage in [Outage(clock)] for _ in range(3)]
    waits = [tried(session, clock) for session in sessions for _ in range(2)]
    assert 12 < waits[0] < 22
    assert waits[1:] == [0] * 5


@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED")
def test_a_server_that_has_answered_since_is_waited_for_again() -> None:
    clock = Clock()
    outage = Outage(clock)
    tried(OutagePolicy(outage), clock)
    outage.end()
    assert tried(OutagePolicy(outage), clock) > 12


@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED")
def test_a_server_of_which_nothing_was_asked_for_long_is_waited_for_again() -> None:
    clock = Clock()
    policy = OutagePolicy(Outage(clock))
    tried(policy, clock)
    clock.wait(3600)
    assert tried(policy, clock) > 12


def test_a_server_that_comes_back_in_time_is_waited_for() -> None:
    clock = Clock()
    assert 0 < tried(OutagePolicy(Outage(clock)), clock, answers_at=8) < 20


def test_each_server_has_an_outage_of_its_own() -> None:
    assert outage_of("sc://one") is outage_of("sc://one")
    assert outage_of("sc://one") is not outage_of("sc://two")
