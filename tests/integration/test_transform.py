"""A step of the user's that runs Python on Spark's workers, which find no module of the project by themselves."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.integration.conftest import MakeFeed

STEP = """
from helpers_of_transform import doubled


def step(df, batch):
    def rows(batches):
        for part in batches:
            yield doubled(part)

    return df.mapInPandas(rows, df.schema)
"""


@pytest.mark.full
def test_functions_of_the_project_s_modules_run_on_the_workers(make_feed: MakeFeed) -> None:
    feed = make_feed(transform="step_of_transform:step")
    (feed.folder / "step_of_transform.py").write_text(STEP)
    (feed.folder / "helpers_of_transform.py").write_text(
        "def doubled(rows):\n    return rows.assign(id=rows['id'] * 2)\n"
    )
    feed.put("1.ndjson", 1, 2)
    feed.load()
    assert feed.ids == [2, 4]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "raise ValueError('no rate')",
            "ValueError: no rate ({folder}/{name}.py:2). The run stopped before it changed anything",
        ),
        (
            "df.count()",
            "expected a Spark DataFrame, found NoneType. The run stopped before it changed anything",
        ),
        ("return df.select('nope')", "`nope` cannot be resolved"),
        (
            "df.sparkSession.conf.set('spark.sql.session.timeZone', 'Asia/Tokyo'); return df",
            "to stay UTC, found Asia/Tokyo",
        ),
    ],
)
def test_a_failing_function_is_named_by_line(make_feed: MakeFeed, body: str, said: str) -> None:
    name = f"wrong_step_{uuid4().hex[:8]}"  # no other test has imported it
    feed = make_feed(transform=f"{name}:step")
    (feed.folder / f"{name}.py").write_text(f"def step(df, batch):\n    {body}\n")
    feed.put("1.ndjson", 1)
    error = feed.fail()
    expected = said.format(folder=feed.folder, name=name)
    assert (error.code, expected in error.message) == ("query", True), error.message
    assert (feed.entries, feed.open_intent) == ([], None)


def test_a_query_over_a_table_that_is_no_input_names_the_inputs(make_feed: MakeFeed) -> None:
    feed = make_feed(sql="SELECT * FROM input JOIN planes USING (id)")
    feed.put("1.ndjson", 1)
    error = feed.fail()
    assert error.message.endswith(
        "Check sql; a query can read input. Add other tables of the lake to `inputs`"
    )


def test_a_column_of_the_user_s_is_never_replaced_by_the_run_s_own(make_feed: MakeFeed) -> None:
    sql = "SELECT id, CURRENT_TIMESTAMP() AS _Ingested_At FROM input"
    feed = make_feed(sql=sql)
    feed.put("1.ndjson", 1)
    error = feed.fail()
    expected = "origin_columns: true: expected rows without _ingested_at, _run_id, which it adds, found '_Ingested_At'"
    assert (error.code, expected in error.message) == ("query", True), error.message
    assert "origin_columns: false" in error.message
    assert (feed.entries, feed.open_intent) == ([], None)
    kept = make_feed(sql=sql, target={"origin_columns": False})
    kept.put("1.ndjson", 1)
    assert kept.run().error is None
    assert kept.ids == [1]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            "id, 1 AS _Strandline_change",
            "starts with _strandline_, which Strandline's own queries use, found _Strandline_change",
        ),
        ("id, 1 AS a, 2 AS A", "expected columns with different names, found two named a"),
    ],
    ids=["a name of Strandline's queries", "one name twice"],
)
def test_columns_no_table_can_have_begin_nothing(make_feed: MakeFeed, columns: str, said: str) -> None:
    feed = make_feed(sql=f"SELECT {columns} FROM input")
    feed.put("1.ndjson", 1)
    error = feed.fail()
    assert (error.code, said in error.message) == ("query", True), error.message
    assert (feed.entries, feed.open_intent) == ([], None)


FAILING_STEP = """
from pyspark.sql import functions as F


def step(df, batch):
    @F.udf("long")
    def checked(value):
        raise ValueError("no rate")

    return df.select(checked("id").alias("id"))
"""


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 10 DIV (id - 1) AS id FROM input", "sql fails on rows of slice 1: [DIVIDE_BY_ZERO]"),
        ("SELECT if(id = 1, raise_error('no rate'), id) AS id FROM input", "[USER_RAISED_EXCEPTION] no rate"),
        (None, "transform fails on rows of slice 1: ValueError: no rate"),
    ],
)
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_step_that_fails_on_a_row_gives_up_and_corrected_goes_on(
    make_feed: MakeFeed, sql: str | None, said: str, table_format: str
) -> None:
    name = f"failing_step_{uuid4().hex[:8]}"
    step = {"sql": sql} if sql else {"transform": f"{name}:step"}
    feed = make_feed(target={"format": table_format}, **step)
    (feed.folder / f"{name}.py").write_text(FAILING_STEP)
    feed.put("1.ndjson", 1)
    error = feed.fail()
    assert (error.code, said in error.message) == ("query", True), error.message
    assert "its number was abandoned. To go on, correct" in error.message
    assert feed.open_intent is None
    feed.define(sql=None, transform=None)
    feed.load()
    assert feed.ids == [1]


@pytest.mark.full
def test_an_option_with_which_spark_reads_no_row_gives_the_number_up(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "csv", "options": {"timeZone": "Mars/Phobos"}})
    feed.put_text("1.csv", "id\n1\n")
    error = feed.fail()
    assert (error.code, "source.options fails on rows of slice 1" in error.message) == ("query", True)
    feed.define(source={"options": {"timeZone": "UTC"}})
    feed.load()
    assert feed.ids == [1]
