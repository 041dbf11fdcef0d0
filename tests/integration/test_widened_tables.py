"""A table whose columns another writer has widened names the mode that takes narrower rows, and that mode takes them (docs/reference/schemas.md)."""

from __future__ import annotations

from typing import Any

import pytest

from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables.registry import find_table
from tests.integration.conftest import MakeFeed
from tests.support.iceberg import foreign_table


@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.parametrize(
    "load", [{"load": "append"}, {"load": "merge_upsert", "merge_keys": ["id"]}], ids=["append", "upsert"]
)
def test_rows_of_narrower_types_are_refused_with_the_mode_that_takes_them(
    make_feed: MakeFeed, spark_engine: SparkEngine, form: str, load: dict[str, Any]
) -> None:
    feed = make_feed(
        source={"schema": "id long, v int, s struct<a: int>"},
        target={"format": form, **load},
        late_files="ignore",
    )
    feed.put("1.ndjson", {"id": 1, "v": 1, "s": {"a": 1}})
    feed.load()
    spark = spark_engine.session()
    name = f"delta.`{feed.table}`" if form == "delta" else foreign_table(spark, feed.table)
    if form == "delta":
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')").collect()
    for column in ("v", "s.a"):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE bigint").collect()
    feed.put("2.ndjson", {"id": 2, "v": 2, "s": {"a": 2}})
    error = feed.fail()
    assert (
        "column v is bigint in the table and int in the rows; column s.a is bigint in the table and int in the rows"
        in error.message
    )
    assert "Another writer has widened the table. Set `schema_mode: merge` below `target`" in error.message
    feed.define(target={"schema_mode": "merge"})
    feed.load()
    rows = find_table(Place(str(feed.table))).contents.distinct_rows(["id", "v"])
    assert list(rows) == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]
