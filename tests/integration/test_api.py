"""Rows of an HTTP API: each once, whatever the API answers, and what is saved is what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.spark import SparkEngine
from tests.support.api import BY_TIME, Api, ApiFeed, Row, api
from tests.support.columns import at

OFFSETS = {"paging": {"type": "offset", "param": "offset", "size_param": "limit", "size": 3}}


@pytest.fixture
def server() -> Iterator[Api]:
    with api() as running:
        yield running


def row(number: int, day: int | None = None, **values: Any) -> Row:
    """A row of a day of January 2026."""
    made = {"id": number, "at": at(number if day is None else day).isoformat(), "value": number}
    return made | values


def test_a_run_asks_above_what_it_saved_and_saves_the_bound_that_it_sent(
    tmp_path: Path, engine: SparkEngine, server: Api
) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS).flow()
    server.rows = [row(number) for number in range(1, 9)]
    assert flow.run("2026-01-06").rows == 5
    asked = set(server.asked("since", "until"))
    assert asked == {(None, None), (None, "2026-01-06T00:00:00+00:00")}
    server.log.clear()
    assert flow.run("2026-01-20").rows == 3
    assert set(server.asked("since", "until")) == {("2026-01-06T00:00:00+00:00", "2026-01-20T00:00:00+00:00")}
    assert flow.run("2026-01-20").status == "nothing"
    assert flow.ids == list(range(1, 9))
