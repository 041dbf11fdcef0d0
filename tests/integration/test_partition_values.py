"""Values of partition columns that a folder name cannot hold are refused by name, whatever the load, and the next run goes on (docs/reference/loads.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitions.errors import RowsRefused
from partitions.loads import Append, Replace, ReplaceAll
from partitions.predicate import Among
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.registry import find_table, open_table
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

NULL = "__HIVE_DEFAULT_PARTITION__"
LOADS: dict[str, dict[str, Any]] = {
    "append": {"load": "append"},
    "merge_upsert": {"load": "merge_upsert", "merge_keys": ["id"]},
    "merge_overwrite": {"load": "merge_overwrite", "merge_keys": ["id"]},
    "scd2": {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"},
}


def put(feed: Feed, name: str, *rows: tuple[int, Any]) -> None:
    """A file of rows with an id and a value of the partition."""
    lines = (json.dumps({"id": id_, "p": p, "at": f"2026-01-01T00:00:{id_:02}Z"}) for id_, p in rows)
    (feed.landing / name).write_text("\n".join(lines) + "\n")


def rows_of(feed: Feed) -> list[tuple[Any, ...]]:
    """What is in the table, as Strandline reads it."""
    rows = find_table(Place(str(feed.table))).contents.distinct_rows(["id", "p"])
    return sorted(((row["id"], row["p"]) for row in rows), key=repr)


@pytest.mark.parametrize(
    ("form", "load", "value", "why"),
    [
        ("delta", "append", "", "an empty text"),
        ("delta", "merge_upsert", NULL, f"the text {NULL}"),
        ("delta", "merge_overwrite", "", "an empty text"),
        ("delta", "scd2", "", "an empty text"),
        ("delta", "append", "a\x00b", "a text with a NUL character"),
        ("parquet", "append", NULL, f"the text {NULL}"),
        ("parquet", "append", "é" * 127, "a value that is too long for a folder's name"),
        ("iceberg", "append", "%" * 85, "a value that is too long for a folder's name"),
    ],
)
def test_a_value_that_no_folder_keeps_is_refused_by_name_and_the_next_run_goes_on(
    make_feed: MakeFeed, form: str, load: str, value: str, why: str
) -> None:
    feed = make_feed(
        source={"schema": "id long, p string, at timestamp"},
        target={"format": form, "partition_by": ["p"], **LOADS[load]},
        late_files="ignore",
    )
    put(feed, "1.ndjson", (1, "a"), (2, None))
    feed.load()
    before = rows_of(feed)
    put(feed, "2.ndjson", (3, "b"), (4, value))
    for _ in range(2):
        error = feed.fail()
        assert error.code == "partition_value"
        assert f"table bronze/{NAME} refuses the rows of slice" in error.message
        assert f"column p of partition_by has {why}, which a folder name cannot hold" in error.message
        assert rows_of(feed) == before
    feed.define(sql="SELECT * EXCEPT (p), IF(id = 4, 'other', p) AS p FROM input")
    assert feed.load().status == "committed"
    assert rows_of(feed) == sorted([*before, (3, "b"), (4, "other")], key=repr)


@pytest.mark.parametrize("load", ["append", "merge_upsert"])
def test_iceberg_keeps_each_text_of_a_partition(make_feed: MakeFeed, load: str) -> None:
    feed = make_feed(
        source={"schema": "id long, p string, at timestamp"},
        target={"format": "iceberg", "partition_by": ["p"], **LOADS[load]},
    )
    put(feed, "1.ndjson", (1, "a"))
    feed.load()
    put(feed, "2.ndjson", (2, ""), (3, NULL), (4, "a\x00b"), (5, None))
    feed.load()
    assert rows_of(feed) == sorted([(1, "a"), (2, ""), (3, NULL), (4, "a\x00b"), (5, None)], key=repr)


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_texts_of_odd_letters_are_kept_by_folders(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(
        source={"schema": "id long, p string, at timestamp"},
        target={"format": form, "partition_by": ["p"], "load": "append"},
    )
    texts = [
        " ",
        "a  ",
        "50%25 %zz",
        "a/b=c",
        ".",
        "..",
        "null",
        NULL.lower(),
        "a\x01\n\x7f",
        "é",
        "e\u0301",
        "😀",
        "x" * 253,
        "%" * 84,
    ]
    put(feed, "1.ndjson", *enumerate(texts))
    feed.load()
    assert rows_of(feed) == sorted(enumerate(texts), key=repr)


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_replacing_rows_are_refused_alike(spark_engine: SparkEngine, tmp_path: Path, form: str) -> None:
    spark, table = spark_engine.session(), open_table(form, Place(str(tmp_path / "t")), ("p",))
    table.write(spark.sql("SELECT 1L AS id, 'a' AS p"), Append(), Tag("app", 1, "o"), "{}", base=None)
    bad = spark.sql("SELECT 2L AS id, '' AS p")
    for load in (Replace(Among("p", ("", "a"))), Replace(Among("id", (1, 2))), ReplaceAll()):
        with pytest.raises(RowsRefused) as refused:
            table.write(bad, load, Tag("app", 2, "o"), "{}", base=table.contents.newest_version())
        assert refused.value.code == "partition_value"
    assert list(table.contents.distinct_rows(["id", "p"])) == [{"id": 1, "p": "a"}]
