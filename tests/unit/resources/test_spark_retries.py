"""How long a Spark Connect server that does not answer is waited for."""

from __future__ import annotations

from contextlib import suppress

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark.sql.connect.client.retries import Retrying

from resources.spark_retries import Patience


class Refused(grpc.RpcError):  # type: ignore[misc]
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self) -> None:
        """No server has said anything."""


def tried(policy: Patience, answers_at: int | None = None) -> list[float]:
    """The waits of one call, in seconds. The server answers at this try, or is gone."""
    waits: list[float] = []
    with suppress(Refused):
        for number, attempt in enumerate(Retrying([policy], sleep=waits.append), start=1):
            with attempt:
                if number != answers_at:
                    raise Refused
    return waits


@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED")
def test_a_server_that_is_gone_is_waited_for_half_a_minute_and_by_one_call_alone() -> None:
    policy = Patience()
    waits = [tried(policy) for _ in range(3)]
    assert 25 < sum(waits[0]) < 40
    assert waits[1:] == [[], []]


def test_a_server_that_comes_back_in_time_is_waited_for_by_each_call() -> None:
    policy = Patience()
    assert [len(tried(policy, answers_at=8)) for _ in range(2)] == [7, 7]
