"""What a changed sql does to the columns of the table (docs/how-to/changing-a-dataflow.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.support.feed import NAME, Feed

FORMATS = [
    "delta",
    pytest.param("iceberg", marks=pytest.mark.full),
    pytest.param("parquet", marks=pytest.mark.full),
]
ARRIVAL = ["--by", "arrival", "--start", "2000-01-01", "--end", "2100-01-01"]


def loaded(folder: Path, engine: SparkEngine, **target: Any) -> Feed:
    """A dataflow that has loaded row 1 of file 1."""
    feed = Feed(folder, engine, {"source": {"schema": "id long, value long"}, "target": target})
    feed.put("1.ndjson", {"id": 1, "value": 1})
    feed.load()
    return feed


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("load", [{"load": "append"}, {"load": "merge_upsert", "merge_keys": ["id"]}])
def test_a_new_column_of_sql_is_refused_with_the_mode_that_adds_it(
    tmp_path: Path, engine: SparkEngine, format_: str, load: dict[str, Any]
) -> None:
    if format_ == "parquet" and load["load"] != "append":
        pytest.skip("refused: Parquet tables only append")
    feed = loaded(tmp_path, engine, format=format_, **load)
    feed.define(sql="SELECT *, 1 AS more FROM input")
    feed.put("2.ndjson", {"id": 2, "value": 2})
    error = feed.fail()
    assert (error.code, feed.open_intent) == ("incompatible_schema", None)
    assert (
        "found a new column in the rows of slice 2: more int. To add it, set `schema_mode: merge`"
        in error.message
    )
    feed.define(target={"schema_mode": "merge"})
    feed.load()
    assert feed.ids == [1, 2]
    if format_ != "parquet":  # its older files lack the column
        assert feed.rows("id", "more") == [(1, None), (2, 1)]


def test_sql_without_the_file_is_refused_where_a_load_needs_it(tmp_path: Path, engine: SparkEngine) -> None:
    feed = loaded(tmp_path, engine, load="merge_upsert", merge_keys=["id"])
    feed.define(sql="SELECT id, value FROM input")
    feed.put("2.ndjson", {"id": 2, "value": 2})
    error = feed.fail()
    assert (error.code, feed.open_intent) == ("query", None)
    assert "expected a column _source_file in the rows, since load: merge_upsert needs it" in error.message
    feed.define(sql="SELECT id, value, _source_file FROM input")
    feed.load()
    assert feed.rows("id") == [(1,), (2,)]


@pytest.mark.remedy("rows_without_file", "state reset --replace")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "change",
    [{"sql": "SELECT id, value FROM input"}, {"target": {"origin_columns": False}}],
    ids=["sql", "origin_columns"],
)
def test_rows_without_their_file_are_never_doubled_by_a_replacement(
    tmp_path: Path, engine: SparkEngine, format_: str, change: dict[str, Any]
) -> None:
    feed = loaded(tmp_path, engine, format=format_, load="append")
    feed.define(**change)
    feed.put("2.ndjson", {"id": 2, "value": 2})
    feed.load()
    for command in (
        ["state", "rewind", NAME, "--to", "0", "--replace", "--reason", "because", "--yes"],
        ["replay", NAME, *ARRIVAL, "--replace"],
        ["replay", NAME, *ARRIVAL, "--into", "bronze/again"],
    ):
        answer = feed.cli(*command)
        assert (answer.code, answer.error["code"]) == (2, "rows_without_file"), answer.out
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.ids == [1, 2]
