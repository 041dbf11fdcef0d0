"""Another zone of the windows: no row is lost, none is there twice, and what cannot be right is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.window.state import WindowState
from resources.kinds import all_decisions as decisions
from tests.support import chained
from tests.support.chained import Chain, at
from tests.support.jvmless import jvmless

ACCEPT = decisions.accept("moved")


@pytest.fixture(autouse=True)
def _jvmless() -> Iterator[None]:
    with jvmless():
        yield


def moved(folder: Path, monkeypatch: pytest.MonkeyPatch, data_type: str) -> tuple[Chain, Dataflow]:
    """Hours of two days that were loaded in UTC, whose definition names Tokyo now."""
    columns = [{"name": "at", "type": data_type, "nullable": True, "metadata": {}}]
    pinned = json.dumps({"columns": {"type": "struct", "fields": columns}, "folders": []})
    monkeypatch.setattr(chained, "_PINNED", pinned)
    chain = Chain(folder, now=at(49))
    chain.run("hours")
    flow = Chain(folder, hours={"timezone": "Asia/Tokyo"}).flows["hours"]
    outcome = chain.platform().loop(flow, chain.now).run()
    assert outcome.error is not None
    assert outcome.error.code == "definition_changed"
    return chain, flow


@pytest.mark.parametrize("data_type", ["timestamp_ntz", "date"])
def test_hours_of_times_without_a_zone_are_all_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_type: str
) -> None:
    """The nine hours that Tokyo is ahead counted as loaded before their rows were there."""
    chain, flow = moved(tmp_path, monkeypatch, data_type)
    decisions.decide(chain.platform(), flow, ACCEPT, "moved")
    assert chain.state("hours") == WindowState()
    plan = chain.platform().plan(flow, chain.now)
    assert plan.why == "116 work units of 58 windows x 2 units due: 116 new"


def test_hours_of_instants_stay_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, flow = moved(tmp_path, monkeypatch, "timestamp")
    decisions.decide(chain.platform(), flow, ACCEPT, "moved")
    plan = chain.platform().plan(flow, chain.now)
    assert plan.why == "18 work units of 58 windows x 2 units due: 18 new"


def test_times_without_a_zone_are_not_appended_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, flow = moved(tmp_path, monkeypatch, "timestamp_ntz")
    appending = flow.model_copy(update={"target": flow.target.model_validate({"load": "append"})})
    with pytest.raises(
        ConfigurationError, match=r"the values of at have no zone.* `state reset --replace`"
    ) as refused:
        decisions.decide(chain.platform(), appending, ACCEPT, "moved")
    assert refused.value.code == "other_zone"
    assert (
        decisions.decide(
            chain.platform(), appending, decisions.reset("reload", replace=True), "reload"
        ).number
        == 2
    )
