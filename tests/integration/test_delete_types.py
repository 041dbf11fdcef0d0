"""A delete in force names exactly the rows it says, whatever the types of later rows, or it stops the run."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partitions.errors import NeedsDecision
from resources.loop.rows.delete_marks import MARK, marked_rows
from resources.spark.engine import SparkEngine
from resources.watermarks.deleted_rows import DeleteInForce
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed


def delete(feed: Feed, where: str) -> None:
    feed.command("delete", feed.name, "--where", where, "--reason", "asked for", "--yes")


def in_force(number: int, predicate: str, **columns: str) -> DeleteInForce:
    return DeleteInForce(number, predicate, columns, "asked for", "")


def marks(engine: SparkEngine, values: str, *deletes: DeleteInForce) -> Mapping[int, int | None]:
    """Return the place of the delete that names each row of ``values``, SQL of id and c, by its id."""
    rows = engine.session().sql(f"SELECT * FROM VALUES {values} AS rows(id, c)")
    marked = marked_rows("flow", rows, deletes, lambda: {"d"})
    assert marked.drop(MARK).dtypes == rows.dtypes
    return {row["id"]: row[MARK] for row in marked.collect()}


def test_each_delete_compares_columns_by_its_own_type(engine: SparkEngine) -> None:
    old, new = in_force(2, "c >= 100", c="int"), in_force(3, "c < 5", c="bigint")
    lacking = in_force(4, "d IS NULL AND c = 8", c="bigint", d="date"), in_force(5, "d = 1", d="int")
    values = "(1, 5000000000L), (2, 7L), (3, -5000000000L), (4, NULL), (5, 8L)"
    assert marks(engine, values, old, new, *lacking) == {1: 0, 2: None, 3: 1, 4: None, 5: 2}
    assert marks(engine, "(1, 100S), (2, 4S)", old, new, *lacking) == {1: 0, 2: 1}


def test_a_row_that_several_deletes_name_counts_for_the_first(engine: SparkEngine) -> None:
    deletes = (
        in_force(9, "c = 7", c="bigint"),
        in_force(3, "c = 7", c="int"),
        in_force(0, "c > 1", c="bigint"),
    )
    assert marks(engine, "(1, 7), (2, 8)", *deletes) == {1: 0, 2: 2}


@pytest.mark.parametrize(
    ("predicate", "column_type", "values", "actual"),
    [
        ("c IS NULL", "int", "(3, 'abc')", "string"),
        ("c = 7", "int", "(3, 7.4D)", "double"),
        ("c <=> 7", "string", "(3, 7)", "int"),
        ("c = DATE '2026-05-20'", "date", "(3, TIMESTAMP '2026-05-20 05:00:00')", "timestamp"),
    ],
)
def test_a_type_that_does_not_compare_exactly_is_refused(
    engine: SparkEngine, predicate: str, column_type: str, values: str, actual: str
) -> None:
    with pytest.raises(NeedsDecision, match=f"column c of type {column_type}, .* found {actual}") as error:
        marks(engine, values, in_force(1, "id = 5", id="int"), in_force(2, predicate, c=column_type))
    assert error.value.code == "delete_unfit"
    assert error.value.choices == ("strandline delete flow --forget 2 --reason TEXT",)


@pytest.mark.full
def test_a_file_of_wider_numbers_brings_no_deleted_row_back(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "parquet", "schema": None}, target={"schema_mode": "merge"})
    _put(feed, "1.parquet", pa.int32(), {1: 700, 2: 5})
    feed.load()
    delete(feed, "c >= 100")
    _put(feed, "2.parquet", pa.int64(), {3: 5_000_000_000, 4: 8})
    assert feed.load().withheld == 1
    assert feed.rows_by_spark("id", "c") == [(2, 5), (4, 8)]
    _put(feed, "3.parquet", pa.int32(), {5: 100, 6: 9})
    assert feed.load().withheld == 1
    assert feed.rows_by_spark("id", "c") == [(2, 5), (4, 8), (6, 9)]


def _put(feed: Feed, name: str, number: pa.DataType, values: Mapping[int, int]) -> None:
    columns = {"id": pa.array(values, pa.int64()), "c": pa.array(values.values(), number)}
    file = BytesIO()
    pq.write_table(pa.table(columns), file)
    feed.put_bytes(name, file.getvalue())


@pytest.mark.full
def test_a_forgotten_delete_of_another_type_is_made_again(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, c int"})
    feed.put("1.ndjson", {"id": 1, "c": 7}, {"id": 2, "c": 5})
    feed.load()
    delete(feed, "c = 7")
    feed.define(source={"schema": "id long, c string"})
    feed.decide("reset", "--replace")
    feed.put("2.ndjson", {"id": 3, "c": "abc"}, {"id": 4, "c": "7"})
    assert feed.fail().code == "delete_unfit"
    assert feed.open_intent is None
    feed.command("delete", feed.name, "--forget", "2", "--reason", "c is text now", "--yes")
    feed.load()
    delete(feed, "c IN ('7', 'abc')")
    feed.put("3.ndjson", {"id": 5, "c": "abc"}, {"id": 6, "c": "y"})
    assert feed.load().withheld == 1
    assert feed.rows("id", "c") == [(2, "5"), (6, "y")]


@pytest.mark.remedy("delete_unfit", "delete --forget")
def test_a_condition_that_fails_on_a_row_stops_until_it_is_forgotten(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, c int"}, sql="SELECT id, c FROM input")
    feed.put("1.ndjson", {"id": 1, "c": 7}, {"id": 2, "c": 5})
    feed.load()
    delete(feed, "id = 1")
    delete(feed, "35 / c = 5")
    feed.put("2.ndjson", {"id": 3, "c": 0}, {"id": 4, "c": 7})
    error = feed.fail()
    assert error.code == "delete_unfit"
    assert "entry 3: 35 / c = 5" in error.message
    assert error.choices == ("strandline delete flow --forget 3 --reason TEXT",)
    assert (feed.entries[-1].why, feed.rows("id")) == ("abandon", [(2,)])
    feed.command("delete", feed.name, "--forget", "3", "--reason", "it fails", "--yes")
    feed.load()
    assert feed.rows("id") == [(2,), (3,), (4,)]
    answer = feed.cli("delete", feed.name, "--where", "35 / c = 5", "--reason", "again", "--yes")
    assert (answer.code, answer.error["code"]) == (2, "predicate")
    assert "Division by zero" in answer.error["message"]
