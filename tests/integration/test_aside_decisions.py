"""Decisions about the live state while a replay of columns stands aside; no row is written (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitions.errors import NeedsDecision
from partitions.sentinels import serialise
from resources.replay.isolated.claim import begin_isolated
from resources.replay.isolated.definition import definition_of_rows
from resources.replay.isolated.promoting import preview_promote
from resources.replay.isolated.standing import IsolatedReplay, mark
from resources.spark.engine import SparkEngine
from resources.watermarks.entry import new_id, utc_now
from tests.support.asides import TABLE
from tests.support.columns import Columns, at, on_lake


@pytest.mark.parametrize(("end", "refused"), [(5, False), (6, True)])
@pytest.mark.parametrize("load", ["append", "merge_upsert"])
def test_a_watermark_moved_by_hand_tells_no_rows_above_it(
    tmp_path: Path, load: str, end: int, *, refused: bool
) -> None:
    keys = {"merge_keys": ["id"]} if load == "merge_upsert" else {}
    flow, source = on_lake(tmp_path, SparkEngine(), target={"load": load, **keys})
    source.put({"id": 1, "at": at(1), "value": 1})
    _set(flow, 5)
    newest, log = flow.feed.newest, flow.feed.platform.log
    assert newest is not None
    aside = begin_isolated(
        log,
        IsolatedReplay(
            id=new_id(),
            dataflow=flow.feed.name,
            kind="column",
            table=TABLE,
            request={"start": "2026-01-01", "end": f"2026-01-0{end}"},
            column="at",
            range=serialise({"lower": at(1), "upper": at(end)}),
            number=newest.number,
            watermark=newest.watermark,
            definition=definition_of_rows(flow.feed.dataflow),
            time=utc_now(),
        ),
    )
    mark(log, aside, "complete")
    assert preview_promote(flow.feed.platform, flow.feed.dataflow, TABLE)
    _set(flow, 20)
    if not refused:
        assert preview_promote(flow.feed.platform, flow.feed.dataflow, TABLE)
        return
    with pytest.raises(NeedsDecision, match=r"\(set\) moved the watermark") as stopped:
        preview_promote(flow.feed.platform, flow.feed.dataflow, TABLE)
    assert stopped.value.code == "range_loaded_again"


def _set(flow: Columns, day: int) -> None:
    text = serialise({"at": at(day)})
    flow.feed.decide("set", text)
