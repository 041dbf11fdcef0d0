"""A watermark of the highest value passes rows that a delete or the retention holds back (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.columns import on_lake
from tests.support.feed import dies_after
from tests.support.window_feed import instant

RETENTION = {"load": "append", "retention": {"column": "at", "keep": "P5D"}}
LATER = (
    {"id": 3, "at": instant("2026-05-29"), "value": 3},
    {"id": 4, "at": instant("2026-06-02"), "value": 4},
)


def test_rows_above_withheld_ones_are_loaded_beside_rows_without_a_value(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    columns, source = on_lake(tmp_path, spark_engine, target=RETENTION)
    source.put({"id": 1, "at": instant("2026-05-01"), "value": 1}, {"id": 2, "at": None, "value": 2})
    columns.run()
    assert (columns.ids, columns.watermark) == ([2], {"at": instant("2026-05-01")})
    source.put(*LATER)
    columns.feed.run(now=instant("2026-06-03"))
    assert columns.ids == [2, 3, 4]


@pytest.mark.full
def test_withheld_rows_are_not_read_again(tmp_path: Path, spark_engine: SparkEngine) -> None:
    columns, source = on_lake(tmp_path, spark_engine, target=RETENTION)
    source.put({"id": 2, "at": instant("2026-05-30"), "value": 2})
    columns.run()
    columns.feed.command(
        "delete", columns.feed.name, "--where", "value = 1", "--reason", "asked for", "--yes"
    )
    source.put({"id": 1, "at": instant("2026-05-31"), "value": 1})
    assert columns.run().newest.withheld == {2: 1}  # type: ignore[union-attr]
    assert columns.run().status == "nothing"
    assert columns.ids == [2]


def test_a_slice_of_a_dead_run_counts_its_withheld_rows_and_their_highest_value(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    columns, source = on_lake(tmp_path, spark_engine, target=RETENTION)
    source.put({"id": 1, "at": instant("2026-05-01"), "value": 1})
    with pytest.raises(KeyboardInterrupt):
        columns.feed.run(dies_after(Step.WRITTEN))
    columns.run()
    assert columns.watermark == {"at": instant("2026-05-01")}
    assert columns.feed.entries[-1].withheld == {0: 1}
    source.put(*LATER)
    columns.feed.run(now=instant("2026-06-03"))
    assert columns.ids == [3, 4]
