"""``strandline why NAME``: from the log, and the plan of the next run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from partitions.errors import SourceError
from partitions.why_answer import WhyAnswer
from platform_assets.why_now import NextRun, look_ahead, why_now
from resources.dagster.run_history import RunHistory
from resources.notes.last_run import note_attempt
from resources.outcome import Outcome
from tests.support.arrivals import NOW, Arrivals

AT = "2026-06-02T00:00:00+00:00"


@pytest.fixture
def arrivals(tmp_path: Path) -> Arrivals:
    return Arrivals(tmp_path)


def why(arrivals: Arrivals) -> WhyAnswer:
    platform, flow = arrivals.platform, arrivals.flow
    return why_now(platform, flow, NOW, RunHistory(platform.log), look_ahead(platform, flow, NOW))


def test_of_a_source_that_was_emptied_not_everything_is_loaded(arrivals: Arrivals) -> None:
    arrivals.put("a.ndjson", "b.ndjson")
    arrivals.commit(["a.ndjson", "b.ndjson"], files=2, total_files=2)
    assert why(arrivals).lines == ["arrivals: everything is loaded: no file is above the watermark"]
    for file in arrivals.landing.iterdir():
        file.unlink()
    answer = why(arrivals)
    warning = (
        f"{arrivals.landing} holds no file, although the dataflow has loaded 2 files from it. If it has moved, correct source.path;"
        " `strandline ledger arrivals --compare` names them"
    )
    assert answer.status == "waits"
    assert answer.summary == "nothing to load now: no file is above the watermark"
    assert [(reason.what, reason.why) for reason in answer.reasons] == [("the source", warning)]


@pytest.mark.parametrize(("idle", "next_try"), [((), AT), (("arrivals_files",), None)])
def test_no_time_is_promised_while_a_sensor_is_off(
    arrivals: Arrivals, idle: Sequence[str], next_try: str | None
) -> None:
    platform, flow = arrivals.platform, arrivals.flow
    note_attempt(platform.log, Outcome("arrivals", None, {}, 0, error=SourceError("no answer")))
    next_run = NextRun(tried_at=AT, idle_sensors=idle)
    failure = why_now(platform, flow, NOW, RunHistory(platform.log), next_run).reasons[0]
    assert (failure.why, failure.next_try) == ("no answer", next_try)
    promise = "; Dagster's sensor, if it is on, tries it again at 2026-06-02 00:00:00 UTC"
    assert failure.line.endswith(promise) == (next_try is not None)
