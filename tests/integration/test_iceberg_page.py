"""What docs/reference/iceberg.md shows is loaded, and read by other engines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
import yaml
from pyiceberg.table import StaticTable

from tests.support.feed import CHECKOUT
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from tests.integration.conftest import MakeFeed


def test_the_page_s_dataflow_loads_and_other_engines_read_its_table(
    make_feed: MakeFeed, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (CHECKOUT / "docs/reference/iceberg.md").read_text()
    shown = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    shown["source"]["path"] = "./landing"
    feed = make_feed(**shown)
    feed.put("1.ndjson", {"id": 1, "origin": "JFK"}, {"id": 2, "origin": "EWR"})
    feed.load()
    feed.put("2.ndjson", {"id": 2, "origin": "LGA"}, {"id": 3, "origin": "JFK"})
    assert feed.load().rows == 2
    expected = [(1, "JFK"), (2, "LGA"), (3, "JFK")]
    assert feed.rows("id", "origin") == expected  # pyiceberg

    table = StaticTable.from_metadata(str(feed.table))
    assert "strandline_flow" in table.metadata.refs
    files = [task.file.file_path for task in table.scan().plan_files()]
    rows = ds.dataset(files).to_table(columns=["id", "origin"]).to_pylist()
    assert sorted((row["id"], row["origin"]) for row in rows) == expected

    spark = feed.engine.session()
    read = spark.table(foreign_table(spark, feed.table)).select("id", "origin").collect()
    assert sorted(map(tuple, read)) == expected

    lines = re.findall(r'^    python -c "(.*)"$', page, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        exec(line.replace(".strandline/lake/bronze/flights", str(feed.table)))
    assert str(table.current_snapshot().snapshot_id) in capsys.readouterr().out  # type: ignore[union-attr]


def test_the_page_s_session_deletes_rows_and_the_next_run_loads(make_feed: MakeFeed) -> None:
    page = (CHECKOUT / "docs/reference/iceberg.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    feed = make_feed(target={"format": "iceberg"})
    feed.put("1.ndjson", 7, 8)
    feed.load()
    for placeholder, own in {
        "sc://127.0.0.1:PORT": str(feed.engine.remote),
        "/data/shop/.strandline/lake": str(feed.folder / "lake"),
        "bronze.flights": f"bronze.{feed.name}",
    }.items():
        assert placeholder in shown
        shown = shown.replace(placeholder, own)
    exec(shown)
    feed.put("2.ndjson", 9)
    assert feed.load().rows == 1
    assert feed.ids == [8, 9]
