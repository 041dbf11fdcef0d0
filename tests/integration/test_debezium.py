"""Change events of Debezium in files: applied by key, kept as history, or appended (docs/reference/debezium.md)."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.support.debezium import BEGIN, ID, LOST, NAME, Row, event, lines, source, typed, wrapped
from tests.support.feed import Feed

UPSERT: Row = {"load": "merge_upsert", "merge_keys": ["id"]}
SCD2: Row = {"load": "scd2", "merge_keys": ["id"]}
DDL = "id long, name string"
each_format = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def feed_of(folder: Path, engine: SparkEngine, target: Row, schema: str | None = DDL, **source: Any) -> Feed:
    files = {"format": "debezium", "schema": schema, **source}
    return Feed(folder, engine, {"source": files, "target": dict(target)})


def put(feed: Feed, name: str, *events: Any, wraps: bool = False) -> None:
    messages = [wrapped(each, ID, NAME) for each in events] if wraps else events
    feed.put_text(f"{name}.json", lines(messages))


def named(id_: int, name: str | None) -> dict[str, Any]:
    return {"id": id_, "name": name}


SNAPSHOT = [
    event("r", 100, named(1, "Ada")),
    event("r", 100, named(2, "Bo")),
    event("r", 100, named(3, "Cy")),
]
CHANGES = [
    event("u", 110, named(1, "Ada L.")),
    event("d", 120, before=named(2, None)),
    None,  # the tombstone behind each delete
    event("d", 130, before=named(3, None)),  # a key changes: its row goes, and comes under the new one
    event("c", 130, named(4, "Cy")),
]


@pytest.mark.parametrize("wraps", [True, False])
@each_format
def test_changes_are_applied_by_key(
    tmp_path: Path, engine: SparkEngine, table_format: str, wraps: bool
) -> None:
    target = {**UPSERT, "format": table_format}
    feed = feed_of(tmp_path, engine, target, None if wraps else DDL)
    put(feed, "a", *SNAPSHOT, wraps=wraps)
    feed.load()
    assert feed.rows("id", "name") == [(1, "Ada"), (2, "Bo"), (3, "Cy")]
    put(feed, "b", *CHANGES, wraps=wraps)
    outcome = feed.load()
    assert feed.rows("id", "name", "_op", "_position", "_snapshot") == [
        (1, "Ada L.", "u", "00000000/0000006E:1", False),
        (4, "Cy", "c", "00000000/00000082:1", False),
    ]
    assert outcome.newest is not None
    assert outcome.newest.total_rows == 2


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
@each_format
def test_files_in_any_order_end_in_the_same_rows(
    tmp_path: Path, engine: SparkEngine, table_format: str, order: str
) -> None:
    feed = feed_of(tmp_path, engine, {**UPSERT, "format": table_format})
    files: dict[str, list[Any]] = {
        "a": SNAPSHOT,
        "b": CHANGES,
        "c": [event("u", 140, named(4, "Cyrus")), event("c", 150, named(2, "Bob"))],
    }
    for number, name in enumerate(order):
        put(feed, f"{number}{name}", *files[name])
        feed.load()
    put(feed, "3again", *CHANGES)
    feed.load()
    assert feed.rows("id", "name") == [(1, "Ada L."), (2, "Bob"), (4, "Cyrus")]


def test_a_repeated_snapshot_and_repeated_events_change_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    feed = feed_of(tmp_path, engine, SCD2)
    put(feed, "a", *SNAPSHOT)
    put(feed, "b", *CHANGES)
    feed.load()
    columns = ("id", "name", "_valid_from", "_valid_to", "_is_current", "_is_deleted")
    before = feed.rows(*columns)
    put(feed, "c", event("r", 200, named(1, "Ada L.")), event("r", 200, named(4, "Cy")), *CHANGES)
    feed.load()
    assert feed.rows(*columns) == before


@pytest.mark.parametrize("order", ["ab", "ba"])
@each_format
def test_scd2_keeps_a_version_of_each_change(
    tmp_path: Path, engine: SparkEngine, table_format: str, order: str
) -> None:
    feed = feed_of(tmp_path, engine, {**SCD2, "format": table_format})
    for number, name in enumerate(order):
        put(feed, f"{number}{name}", *(SNAPSHOT if name == "a" else CHANGES))
        feed.load()

    def at(lsn: int) -> datetime:
        return datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=lsn * 1000)

    assert feed.rows("id", "name", "_valid_from", "_valid_to", "_is_current", "_is_deleted") == [
        (1, "Ada", at(100), at(110), False, False),
        (1, "Ada L.", at(110), None, True, False),
        (2, "Bo", at(100), at(120), False, True),
        (3, "Cy", at(100), at(130), False, True),
        (4, "Cy", at(130), None, True, False),
    ]


@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_append_keeps_each_change_once(tmp_path: Path, engine: SparkEngine, table_format: str) -> None:
    feed = feed_of(tmp_path, engine, {"load": "append", "format": table_format})
    put(feed, "a", *SNAPSHOT, *CHANGES[:2])
    feed.load()
    put(feed, "b", SNAPSHOT[0], *CHANGES, *CHANGES)  # the connector has started again
    feed.load()
    assert feed.rows("_position", "_op", "id", "name") == [
        ("00000000/00000064", "r", 1, "Ada"),
        ("00000000/00000064", "r", 2, "Bo"),
        ("00000000/00000064", "r", 3, "Cy"),
        ("00000000/0000006E:1", "u", 1, "Ada L."),
        ("00000000/00000078:0", "d", 2, None),
        ("00000000/00000082:0", "d", 3, None),
        ("00000000/00000082:1", "c", 4, "Cy"),
    ]


def test_a_value_that_was_not_logged_keeps_the_tables(tmp_path: Path, engine: SparkEngine) -> None:
    feed = feed_of(tmp_path, engine, UPSERT, "id long, name string, note string")
    put(feed, "a", event("c", 100, named(1, "Ada") | {"note": "long"}))
    feed.load()
    put(feed, "b", event("u", 110, named(1, "Ada L.") | {"note": LOST}))
    feed.load()
    assert feed.rows("id", "name", "note") == [(1, "Ada L.", "long")]


@pytest.mark.parametrize("target", [{"load": "append"}, SCD2])
def test_a_value_that_was_not_logged_is_refused_where_it_would_be_lost(
    tmp_path: Path, engine: SparkEngine, target: Row
) -> None:
    feed = feed_of(tmp_path, engine, target)
    put(feed, "a", event("u", 110, named(1, LOST)))
    message = feed.fail().message
    assert "a.json" in message
    assert "line 1" in message
    assert "field name" in message
    assert "REPLICA IDENTITY FULL" in message


def test_lines_that_are_no_changes_are_bad_records(tmp_path: Path, engine: SparkEngine) -> None:
    feed = feed_of(tmp_path, engine, UPSERT)
    put(feed, "a", event("c", 100, named(1, "Ada")), {"id": 2}, event("c", 102, {"id": "x"}), event("t", 103))
    message = feed.fail().message
    assert [f"line {number}" in message for number in (1, 2, 3, 4)] == [False, True, True, True]
    feed.define(max_bad_records=3)
    feed.load()
    assert feed.rows("id", "name") == [(1, "Ada")]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.json", b"null\n\xff\n", "line 2: expected text in UTF-8"),
        ("a.json.gz", gzip.compress(b"null\n" * 9, mtime=0)[:-4], "end too early"),
    ],
)
def test_a_file_that_cannot_be_decoded_is_bad(
    tmp_path: Path, engine: SparkEngine, name: str, data: bytes, words: str
) -> None:
    feed = feed_of(tmp_path, engine, UPSERT)
    feed.put_bytes(name, data)
    message = feed.fail().message
    assert name in message
    assert words in message


def test_types_come_from_the_schema_of_events(tmp_path: Path, engine: SparkEngine) -> None:
    feed = feed_of(tmp_path, engine, {**UPSERT, "schema_mode": "merge"}, None)
    price = typed(
        "price",
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        scale="2",
        **{"connect.decimal.precision": "10"},
    )
    born = typed("born", "int32", "io.debezium.time.Date")
    feed.put_text("a.json.gz", lines([wrapped(event("c", 100, {"id": 1, "price": "AN3h"}), ID, price)]))
    feed.load()
    feed.put_text(
        "b.json", lines([wrapped(event("c", 110, {"id": 2, "price": None, "born": 1}), ID, price, born)])
    )
    feed.load()
    assert feed.rows("id", "price", "born") == [(1, Decimal("568.01"), None), (2, None, date(1970, 1, 2))]
    assert feed.types == {"id": "long", "price": "decimal(10,2)", "born": "date"}


def test_a_step_must_leave_what_orders_the_changes(tmp_path: Path, engine: SparkEngine) -> None:
    feed = feed_of(tmp_path, engine, UPSERT)
    put(feed, "a", event("c", 100, named(1, "Ada")), event("d", 110, before=named(1, None)))
    feed.define(sql="SELECT id, name, _op, _source_file FROM input")
    assert "_position" in feed.fail().message
    feed.define(sql="SELECT id, upper(name) AS name, _op, _position, _source_file FROM input")
    put(feed, "b", event("c", 120, named(2, "Bo")), event("d", 130, before=named(1, None)))
    feed.load()
    assert feed.rows("id", "name") == [(2, "BO")]


def test_changes_of_mysql_are_ordered_by_binlog(tmp_path: Path, engine: SparkEngine) -> None:
    feed = feed_of(tmp_path, engine, UPSERT)

    def at(op: str, file: int, position: int, name: str | None) -> dict[str, Any]:
        place = {"connector": "mysql", "file": f"bin.{file}", "pos": position, "row": 0}
        image = {"before" if op == "d" else "after": named(1, name)}
        return event(op, 100, **image) | {"source": source(100) | place}

    put(feed, "a", at("u", 1000000, 4, "new"), at("u", 999999, 9000, "old"))
    put(feed, "b", at("d", 999999, 8000, None))
    feed.load()
    assert feed.rows("id", "name") == [(1, "new")]


HOUR = 3_600_000


def later(op: str, lsn: int, hours: int, after: Row | None = None, before: Row | None = None) -> Any:
    """An event at a low position, hours after the first ones."""
    return event(op, lsn, after, before, ts_ms=BEGIN + hours * HOUR, ts_us=1000 * (BEGIN + hours * HOUR))


@pytest.mark.parametrize(
    "restarted",
    [
        later("u", 50, 1, named(1, "Eve")),
        later("c", 50, 1, named(2, "Eve")),
        later("r", 50, 1, named(1, "Eve")),
    ],
    ids=["key of the table", "deleted key", "new snapshot"],
)
@each_format
def test_a_log_that_began_anew_stops_before_its_changes_count_as_older(
    tmp_path: Path, engine: SparkEngine, table_format: str, restarted: Any
) -> None:
    feed = feed_of(tmp_path, engine, {**UPSERT, "format": table_format})
    put(feed, "a", *SNAPSHOT, *CHANGES)
    feed.load()
    before = feed.rows("id", "name", "_position")
    put(feed, "b", later("c", 60, 1, named(9, "New")), restarted)
    error = feed.fail()
    assert error.code == "log_restarted"
    assert "found an event at 00000000/00000032" in error.message
    assert "of 2023-11-14 23:13:20 UTC" in error.message
    assert (feed.rows("id", "name", "_position"), feed.open_intent) == (before, None)


def test_a_snapshot_right_behind_the_last_change_of_a_key_goes_on(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = feed_of(tmp_path, engine, UPSERT)
    put(feed, "a", *SNAPSHOT, *CHANGES)
    feed.load()
    put(feed, "b", later("r", 130, 1, named(1, "Ada L.")), later("r", 130, 1, named(4, "Cy")))
    feed.load()
    assert feed.rows("id", "name", "_op") == [(1, "Ada L.", "r"), (4, "Cy", "c")]


@pytest.mark.remedy("log_restarted", "state reset --replace")
def test_a_new_snapshot_in_another_folder_begins_the_table_of_a_new_log(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = feed_of(tmp_path, engine, UPSERT)
    put(feed, "a", *SNAPSHOT, *CHANGES)
    feed.load()
    put(feed, "b", later("u", 50, 1, named(1, "Eve")))
    assert feed.fail().code == "log_restarted"
    snapshot = [later("r", 40, 1, named(1, "Ada L.")), later("r", 40, 1, named(2, "Bo"))]
    (feed.folder / "new_log").mkdir()
    (feed.folder / "new_log/a.json").write_text(lines([*snapshot, later("u", 50, 1, named(1, "Eve"))]))
    feed.define(source={"path": "./new_log"})
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.rows("id", "name", "_op") == [(1, "Eve", "u"), (2, "Bo", "r")]
