"""A table compared with the table above, at the position up to which its commits are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.spark.engine import SparkEngine
from tests.support.columns import Columns
from tests.support.commits import UPSTREAMS, copying
from tests.support.feed import Feed
from tests.support.reconciled import ids_of, reconciled

KEYED: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"]}


@pytest.mark.each_case
@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_a_table_has_what_the_table_above_has_at_its_position(
    tmp_path: Path, engine: SparkEngine, kind: str
) -> None:
    feed = Feed(tmp_path / "project", engine, copying(target=KEYED))
    upstream, flow = UPSTREAMS[kind](feed.folder / "lake", engine), Columns(feed)
    upstream.append((1, "a"), (2, "b"), (3, "c"))
    feed.load()
    upstream.delete(1)
    upstream.update(2, "bb")
    feed.load()
    document = reconciled(flow, "--rows")
    assert (document["equal"], document["ranges"][0]["source"]) == (True, 2)
    upstream.append((4, "d"))  # behind the position: the next run loads it
    assert reconciled(flow, "--rows")["equal"] is True
    table = DeltaTable(str(feed.table))
    table.update(updates={"v": "'other'"}, predicate="id = 2")
    table.update(updates={"id": "30"}, predicate="id = 3")
    different = reconciled(flow, "--rows", code=1)
    assert ids_of(different) == {"missing": [3], "extra": [30], "different": [2]}
    refused = feed.cli("reconcile", "flow", "--start", "1")
    assert "found a range" in refused.error["message"]
    assert "differs from the source up to" in feed.text("why", "flow")
    feed.define(source={"on_change": "skip"}, target={"load": "append", "merge_keys": None})
    feed.decide("accept")
    assert "found on_change: skip" in feed.cli("reconcile", "flow").error["message"]
