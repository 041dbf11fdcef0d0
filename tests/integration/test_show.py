"""``strandline show``: rows of a table as they are, by any condition, or a message that leads on."""

from __future__ import annotations

from decimal import Decimal

import pytest

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
