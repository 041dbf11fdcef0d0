"""A watermark of another scope stands for no file of the definition as it is now: no decision takes it over."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from resources.kinds import all_decisions as decisions
from resources.platform.platform import Platform
from tests.support.jvmless import NAME, Process, dataflow, platform

pytestmark = pytest.mark.usefixtures("in_arrow")


NOW = datetime(2026, 6, 1, tzinfo=UTC)


def _of_scope(scope: str) -> Dataflow:
    flow = dataflow("watermark", "ingest", ".x")
    return flow.model_copy(update={"watermark": flow.path.model_copy(update={"scope": scope})})


@pytest.fixture
def made(tmp_path: Path) -> Platform:
    """A file in each of two folders."""
    for number in (1, 2):
        file = tmp_path / "landing" / f"d={number}" / "a.ndjson"
        file.parent.mkdir(parents=True)
        file.write_text(f'{{"id": {number}}}\n')
    return platform(tmp_path / "state", tmp_path / "lake", tmp_path / "landing", Process())


def _decided(made: Platform, flow: Dataflow, decision: decisions.DraftBuilder) -> int:
    return decisions.decide(made, flow, decision, "any").number


@pytest.mark.parametrize(("before", "now"), [("global", "partition"), ("partition", "global")])
@pytest.mark.parametrize("decision", ["adopt", "rewind"])
def test_another_scope_waits_for_a_reset(made: Platform, decision: str, before: str, now: str) -> None:
    assert made.loop(_of_scope(before), NOW).run().error is None
    flow = _of_scope(now)
    if decision == "rewind":
        _decided(made, flow, decisions.reset("any"))
    entry = made.log.newest(NAME)
    with pytest.raises(StrandlineError, match=f"scope.*{now}") as refused:
        _decided(made, flow, decisions.adopt("any") if decision == "adopt" else decisions.rewind("any", 1))
    assert f"strandline state reset {NAME} --replace --reason TEXT" in refused.value.choices
    assert made.log.newest(NAME) == entry
    assert made.log.open_intent(NAME, entry) is None
    _decided(made, flow, decisions.reset("any", replace=True))
    assert made.loop(flow, NOW).run().error is None
    assert made.table(flow).contents.count_rows() == 2
