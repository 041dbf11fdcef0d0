"""Each remedy that a message names leads on: it is run on a small project, and each row is in the table once."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.errors import StrandlineError
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.moves import restore

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}


def put_source(feed: Feed, rows: Sequence[dict[str, Any]], data_type: pa.DataType) -> None:
    """Write the source's table anew, with a value of this type."""
    schema = pa.schema([("id", pa.int64()), ("value", data_type)])
    write_deltalake(
        str(feed.folder / "lake" / "bronze" / "src"),
        pa.Table.from_pylist(list(rows), schema=schema),
        mode="overwrite",
        schema_mode="overwrite",
    )


def reading_a_table(make_feed: MakeFeed, **target: Any) -> Feed:
    """A dataflow above the ids of a lake table."""
    return make_feed(
        source={"type": "table", "table": "bronze/src"},
        watermark={"type": "column", "columns": ["id"]},
        target={**UPSERT, **target},
    )


def follow(feed: Feed, error: StrandlineError, rows: list[tuple[Any, ...]], *columns: str) -> None:
    """Run each choice of an error on the project as it was, then the dataflow, and compare the rows."""
    assert error.choices, error.message
    saved = feed.folder.parent / "saved"
    shutil.copytree(feed.folder, saved, dirs_exist_ok=True)
    for choice in error.choices:
        restore(saved, feed.folder)
        feed.command(
            *choice.replace("TEXT", "because").split()[1:], *(["--yes"] if " state " in choice else [])
        )
        feed.load()
        assert feed.rows(*columns) == rows, choice
        assert feed.load().status == "nothing"


@pytest.mark.each_case
@pytest.mark.parametrize("mode", ["strict", "merge"])
@pytest.mark.full
def test_a_number_that_gets_digits_names_what_its_source_takes(make_feed: MakeFeed, mode: str) -> None:
    feed = reading_a_table(make_feed, schema_mode=mode)
    put_source(feed, [{"id": 1, "value": 1}], pa.int64())
    feed.load()
    put_source(
        feed, [{"id": 1, "value": Decimal("1.5")}, {"id": 2, "value": Decimal("2.5")}], pa.decimal128(10, 2)
    )
    error = feed.fail()
    assert "source.schema" not in error.message
    assert "rescue" not in error.message
    if mode == "strict":
        assert "schema_mode: merge" in error.message
        feed.define(target={"schema_mode": "merge"})
        assert feed.cli("validate").code == 0
        feed.define(target={"schema_mode": "strict"})
    follow(feed, error, [(1, Decimal("1.50")), (2, Decimal("2.50"))], "id", "value")


@pytest.mark.full
def test_a_time_that_gets_a_zone_is_loaded_by_the_reset_that_is_named(make_feed: MakeFeed) -> None:
    feed = reading_a_table(make_feed)
    zoned = datetime(2026, 1, 1, 12, tzinfo=UTC)
    at = zoned.replace(tzinfo=None)
    put_source(feed, [{"id": 1, "value": at}], pa.timestamp("us"))
    feed.load()
    put_source(feed, [{"id": 1, "value": zoned}, {"id": 2, "value": zoned}], pa.timestamp("us", "UTC"))
    rows = [(1, zoned), (2, zoned)]
    follow(feed, feed.fail(), rows, "id", "value")
    restore(feed.folder.parent / "saved", feed.folder)
    feed.decide("reset")  # keeps the table, whose column has the old type
    error = feed.fail()
    follow(feed, error, rows, "id", "value")


@pytest.mark.without_jvm
def test_files_of_the_root_are_replayed_by_arrival_as_the_refusal_says(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    answer = feed.cli(
        "replay", NAME, "--start", "2020-01-01", "--end", "2100-01-01", "--replace", "--dry-run"
    )
    assert (answer.code, answer.error["code"]) == (2, "configuration")
    (choice,) = answer.error["choices"]
    assert "--by arrival" in choice


@pytest.mark.remedy("corrupt_state", "rename")
@pytest.mark.without_jvm
def test_a_folder_of_the_state_that_was_renamed_by_hand_is_named(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    new = Feed(feed.folder, feed.engine, feed.definition, feed.settings, name="orders")
    new.define(source={"path": "./landing"}, target={"table": f"bronze/{NAME}"})
    (feed.folder / "dataflows" / f"{NAME}.yaml").unlink()
    feed.state.rename(new.state)
    feed.put("2.ndjson", 2)
    error = new.fail()
    assert error.choices == (f"strandline rename {NAME} NEW",), error.message
    assert f"Rename it back to {NAME}" in error.message
    new.state.rename(feed.state)
    new.command("rename", NAME, "orders")
    new.load()
    assert feed.ids == [1, 2]
