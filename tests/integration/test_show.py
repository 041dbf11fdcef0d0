"""``strandline show``: rows of a table as they are, by any condition, or a message that leads on."""

from __future__ import annotations

from decimal import Decimal
from typing import NoReturn

import pytest

from resources.connections.places import Place
from resources.tables.first_rows import read_first_rows
from resources.tables.registry import find_table
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed


@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_rows_are_shown_exactly_by_a_condition_and_up_to_a_limit(
    make_feed: MakeFeed, table_format: str
) -> None:
    schema = "id long, price decimal(20, 2), at timestamp, tags array<string>"
    target = {"format": table_format, "origin_columns": False}
    feed = make_feed(source={"schema": schema}, target=target)
    price = Decimal("123456789012345678.90")
    feed.put_text(
        "1.ndjson",
        f'{{"id": 1, "price": {price}, "at": "2026-01-01T12:00:00Z", "tags": ["a", null]}}\n{{"id": 2}}\n{{"id": 3}}\n',
    )
    feed.load()
    shown = feed.command("show", f"bronze/{NAME}", "--where", "id = 1").json
    assert shown["rows"] == [
        {"id": 1, "price": str(price), "at": "2026-01-01T12:00:00.000000Z", "tags": ["a", None]}
    ]
    assert [column["type"] for column in shown["columns"]] == [
        "bigint",
        "decimal(20,2)",
        "timestamp",
        "array<string>",
    ]
    shown = feed.command("show", NAME, "--limit", "2").json
    assert (shown["table"], len(shown["rows"]), shown["more"]) == (f"bronze/{NAME}", 2, True)
    empty = {"price": None, "at": None, "tags": None}
    assert feed.command("show", NAME, "--where", "id > 2 OR id > 5").json["rows"] == [{"id": 3, **empty}]


@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_rows_look_the_same_with_spark_and_without(make_feed: MakeFeed, table_format: str) -> None:
    schema = (
        "id long, price decimal(38, 9), weight float, size double, day date, local timestamp_ntz, raw binary,"
        " parts struct<name: string, cost: decimal(20, 2)>, counts map<string, int>, seen array<timestamp>"
    )
    feed = make_feed(source={"schema": schema}, target={"format": table_format, "origin_columns": False})
    feed.put_text(
        "1.ndjson",
        '{"id": 1, "price": 0.000000001, "weight": 0.1, "size": 1e300, "day": "0001-01-01",'
        ' "local": "2026-03-29T02:30:00", "raw": "AAE=", "parts": {"name": "ä", "cost": 123456789012345678.90},'
        ' "counts": {"b": 1, "a": null}, "seen": ["2026-01-01T12:00:00.5+01:00", null]}\n{"id": 2}\n',
    )
    feed.load()
    without_spark, with_spark = (
        feed.command("show", NAME, *condition).json for condition in ((), ("--where", "id > 0"))
    )
    assert without_spark == with_spark

    def refuse_session() -> NoReturn:
        raise AssertionError

    read_rows = read_first_rows(find_table(Place(str(feed.table))), refuse_session, 20, NAME)
    assert list(read_rows.rows) == without_spark["rows"]
    assert sorted(without_spark["rows"], key=lambda row: row["id"])[0] == {
        "id": 1,
        "price": "0.000000001",
        "weight": 0.1,
        "size": 1e300,
        "day": "0001-01-01",
        "local": "2026-03-29T02:30:00.000000",
        "raw": "AAE=",
        "parts": {"name": "ä", "cost": "123456789012345678.90"},
        "counts": {"b": 1, "a": None},
        "seen": ["2026-01-01T11:00:00.500000Z", None],
    }


def test_a_wrong_condition_names_the_columns(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    for condition in ("nothing = 1", "id =", "1 / (id - 1) > 0"):
        answer = feed.cli("show", NAME, "--where", condition)
        assert (answer.code, answer.error["code"]) == (2, "predicate"), condition
        assert "the columns of bronze/flow (id, _source_file" in answer.error["message"]


@pytest.mark.without_jvm
def test_a_table_that_is_not_there_is_named_with_what_leads_on(feed: Feed) -> None:
    answer = feed.cli("show", NAME)
    assert answer.error["choices"] == [f"strandline run {NAME}"]
    assert "dataflow flow has loaded nothing yet" in answer.error["message"]
    assert "did you mean bronze/flow?" in feed.cli("show", "bronze/flo").error["message"]
    assert feed.cli("show", "nothing").code == 2
