"""What becomes of a column that was added, vanished or changed its type: each schema mode on each format, and the version before stays (docs/reference/schemas.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.tables.contract.commits import Version
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed

BEFORE = {"id": 1, "v": 1, "gone": "g"}
FIRST = pa.table({"id": [1], "v": pa.array([1], pa.int32()), "gone": ["g"]})
CHANGES = {
    "added": pa.table({"id": [2], "v": pa.array([2], pa.int32()), "gone": ["g"], "new": ["n"]}),
    "vanished": pa.table({"id": [2], "v": pa.array([2], pa.int32())}),
    "wider": pa.table({"id": [2], "v": pa.array([2**40], pa.int64()), "gone": ["g"]}),
    "another type": pa.table({"id": [2], "v": ["two"], "gone": ["g"]}),
}
REFUSED = "refused"
RESCUED = "_rescued_data"
OUTCOMES: dict[str, dict[str, Any]] = {
    "strict": {
        "added": REFUSED,
        "vanished": [BEFORE, {"id": 2, "v": 2, "gone": None}],
        "wider": REFUSED,
        "another type": REFUSED,
    },
    "merge": {
        "added": [BEFORE | {"new": None}, {"id": 2, "v": 2, "gone": "g", "new": "n"}],
        "vanished": [BEFORE, {"id": 2, "v": 2, "gone": None}],
        "wider": [BEFORE, {"id": 2, "v": 2**40, "gone": "g"}],
        "another type": REFUSED,
    },
    "rescue": {
        "added": [BEFORE | {RESCUED: None}, {"id": 2, "v": 2, "gone": "g", RESCUED: {"new": "n"}}],
        "vanished": [BEFORE | {RESCUED: None}, {"id": 2, "v": 2, "gone": None, RESCUED: None}],
        "wider": [BEFORE | {RESCUED: None}, {"id": 2, "v": None, "gone": "g", RESCUED: {"v": 2**40}}],
        "another type": [BEFORE | {RESCUED: None}, {"id": 2, "v": None, "gone": "g", RESCUED: {"v": "two"}}],
    },
    "overwrite": {
        "added": [{"id": 2, "v": 2, "gone": "g", "new": "n"}],
        "vanished": [{"id": 2, "v": 2}],
        "wider": [{"id": 2, "v": 2**40, "gone": "g"}],
        "another type": [{"id": 2, "v": "two", "gone": "g"}],
    },
}
"""By mode and change: all rows after the second run."""

QUICK = {("delta", "rescue"), ("iceberg", "merge"), ("parquet", "strict")}


def _cells() -> list[Any]:
    return [
        pytest.param(form, mode, id=f"{form} {mode}", marks=[] if (form, mode) in QUICK else pytest.mark.full)
        for form in ("delta", "iceberg", "parquet")
        for mode in OUTCOMES
    ]


def _rows(feed: Feed, version: Version | None = None) -> list[dict[str, Any]]:
    table = feed.platform.table(feed.dataflow)
    frame = table.contents.read(
        feed.engine.session(), table.contents.newest_version() if version is None else version
    )
    found = [row.asDict() for row in frame.collect()]
    for row in found:
        if row.get(RESCUED):
            row[RESCUED] = json.loads(row[RESCUED])
    return sorted(found, key=lambda row: int(row["id"]))


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("form", "mode"), _cells())
def test_columns_change_as_the_mode_says(make_feed: MakeFeed, tmp_path: Path, form: str, mode: str) -> None:
    target = {"format": form, "schema_mode": mode, "origin_columns": False}
    whole = {"watermark": {"type": "window", "definition": []}} if mode == "overwrite" else {}
    feed = make_feed(
        source={"format": "parquet", "schema": None},
        target=target | ({"load": "overwrite"} if whole else {}),
        **whole,
    )
    pq.write_table(FIRST, feed.landing / "a.parquet")
    feed.load()
    before, version = _rows(feed), feed.platform.table(feed.dataflow).contents.newest_version()
    assert before == [BEFORE | {RESCUED: None} if mode == "rescue" else BEFORE]
    for change, rows in CHANGES.items():
        made = feed.copy(tmp_path / change)
        made.command("relocate", "--yes")
        if whole:
            (made.landing / "a.parquet").unlink()
        pq.write_table(rows, made.landing / "b.parquet")
        error = made.run().error
        expected = OUTCOMES[mode][change]
        if expected == REFUSED:
            assert error is not None, change
            assert "v" in error.message or "new" in error.message
            assert _rows(made) == before, change
            continue
        assert error is None, (change, error.message if error else "")
        assert _rows(made) == expected, change
        assert _rows(made, version) == before, change
