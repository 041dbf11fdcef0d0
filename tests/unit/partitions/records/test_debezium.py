"""Lines of change events become rows, exactly or not at all (docs/reference/debezium.md)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from partitions.ddl import parse_ddl
from partitions.records.debezium import EventDecoder
from partitions.records.event_positions import event_position
from partitions.records.judge import Fault
from partitions.sources.formats import DebeziumOptions
from tests.support.debezium import ID, LOST, NAME, event, source, typed, wrapped

EVENT = {"_op": "c", "_position": "00000000/00000064:1", "_snapshot": False, "_transaction": "800"}


def decoder(ddl: str = "", *, keeps_lost: bool = False, **options: Any) -> EventDecoder:
    declared = {column.name: column for column in parse_ddl(ddl)} if ddl else {}
    return EventDecoder(DebeziumOptions.model_validate(options), declared, keeps_lost=keeps_lost)


def row_of(message: Any, reader: EventDecoder | None = None) -> dict[str, Any]:
    """Return the columns of the row of a message, numbers as they are written."""
    row = (reader or decoder()).decode(json.dumps(message))
    assert isinstance(row, str), row
    return {
        name: value
        for name, value in json.loads(row, parse_float=str).items()
        if name not in ("_source_time", *EVENT)
    }


def fault_of(message: Any, reader: EventDecoder | None = None) -> str:
    fault = (reader or decoder()).decode(message if isinstance(message, str) else json.dumps(message))
    assert isinstance(fault, Fault), fault
    return f"{fault.reason} {fault.hint}"


def packed(number: int, length: int = 16) -> str:
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


def test_an_event_becomes_its_row_and_what_it_says_beside_it() -> None:
    row = decoder().decode(json.dumps(event("c", 100, {"id": 1, "name": "Ada"})))
    assert isinstance(row, str)
    assert json.loads(row) == {"id": 1, "name": "Ada", **EVENT, "_source_time": "2023-11-14T22:13:20.100000Z"}


@pytest.mark.parametrize("wraps", [True, False])
def test_a_delete_has_the_row_before_it(wraps: bool) -> None:
    deleted = event("d", 100, before={"id": 1, "name": None})
    assert row_of(wrapped(deleted, ID, NAME) if wraps else deleted) == {"id": 1, "name": None}


@pytest.mark.parametrize(
    "line", ["null", "", '{"schema":null,"payload":null}', '{"schema":{"type":"struct"},"payload":null}']
)
def test_a_tombstone_has_no_row(line: str) -> None:
    assert decoder().decode(line) is None


@pytest.mark.parametrize(
    ("field", "sent", "loaded", "data_type"),
    [
        (typed("v", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"), packed(-123456), "-1234.56", "decimal(38,2)"),
        (typed("v", "bytes", "org.apache.kafka.connect.data.Decimal", scale="0"), "AN3h", 56801, "decimal(38,0)"),
        (typed("v", "bytes", "org.apache.kafka.connect.data.Decimal", scale="3"), packed(10**37 + 7), f"1{'0' * 34}.007", "decimal(38,3)"),
        (typed("v", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"), 12.50, "12.5", "decimal(38,2)"),
        (
            typed("v", "bytes", "org.apache.kafka.connect.data.Decimal", scale="30", **{"connect.decimal.precision": "65"}),
            packed(5), f"0.{'0' * 29}5", "string",
        ),
        (typed("v", "struct", "io.debezium.data.VariableScaleDecimal"), {"scale": 3, "value": packed(-1)}, "-0.001", "string"),
        (typed("v", "int32", "io.debezium.time.Date"), -1, "1969-12-31", "date"),
        (typed("v", "int64", "io.debezium.time.Timestamp"), 1_700_000_000_123, "2023-11-14T22:13:20.123000", "timestamp_ntz"),
        (typed("v", "int64", "io.debezium.time.MicroTimestamp"), -1, "1969-12-31T23:59:59.999999", "timestamp_ntz"),
        (typed("v", "int64", "io.debezium.time.NanoTimestamp"), 1000, "1970-01-01T00:00:00.000001", "timestamp_ntz"),
        (typed("v", "string", "io.debezium.time.ZonedTimestamp"), "2026-01-01T10:00:00+02:00", "2026-01-01T10:00:00+02:00", "timestamp"),
        (typed("v", "int32", "io.debezium.time.Time"), 33_300_000, "09:15:00", "string"),
        (typed("v", "int64", "io.debezium.time.MicroTime"), -3_020_399_000_000, "-838:59:59", "string"),
        (typed("v", "int64", "io.debezium.time.MicroTime"), 1, "00:00:00.000001", "string"),
        (typed("v", "bytes", "io.debezium.data.Bits", length="12"), base64.b64encode(b"\x01\x02").decode(), 513, "long"),
        (typed("v", "bytes", "io.debezium.data.Bits", length="80"), "AQI=", "AQI=", "binary"),
        (typed("v", "string", "io.debezium.data.Json"), '{"a":1}', '{"a":1}', "string"),
        (typed("v", "string", "io.debezium.data.Uuid"), "0b9a", "0b9a", "string"),
        ({"type": "bytes", "field": "v"}, "AQI=", "AQI=", "binary"),
        ({"type": "int16", "field": "v"}, 5, 5, "short"),
    ],
)  # fmt: skip
def test_values_are_decoded_as_their_schema_says(field: Any, sent: Any, loaded: Any, data_type: str) -> None:
    reader = decoder()
    assert row_of(wrapped(event("c", 100, {"id": 1, "v": sent}), ID, field), reader) == {"id": 1, "v": loaded}
    assert reader.schema is not None
    assert [column["type"] for column in reader.schema["fields"]] == ["long", data_type]


def test_values_inside_arrays_and_objects_are_decoded_too() -> None:
    days = {"type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}, "field": "days"}
    box = {"type": "struct", "fields": [typed("at", "int32", "io.debezium.time.Time")], "field": "box"}
    message = wrapped(event("c", 100, {"days": [0, None], "box": {"at": 1000}}), days, box)
    assert row_of(message) == {"days": ["1970-01-01", None], "box": {"at": "00:00:01"}}


@pytest.mark.parametrize(
    ("field", "sent", "words"),
    [
        (typed("v", "int64", "io.debezium.time.NanoTimestamp"), 1, "nanoseconds"),
        (typed("v", "int64", "io.debezium.time.MicroTimestamp"), 9223372036825200000, "beyond the years"),
        (typed("v", "int32", "io.debezium.time.Date"), "x", "no whole number"),
        (typed("v", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"), "?", "no base64"),
    ],
)
def test_a_value_that_no_type_holds_is_refused_by_name(field: Any, sent: Any, words: str) -> None:
    fault = fault_of(wrapped(event("c", 100, {"v": sent}), field))
    assert "field v" in fault
    assert words in fault


@pytest.mark.parametrize(
    ("ddl", "options", "sent", "loaded"),
    [
        ("v date", {}, 1, "1970-01-02"),
        ("v date", {}, "1970-01-02", "1970-01-02"),
        ("v timestamp_ntz", {"time_precision_mode": "connect"}, 1, "1970-01-01T00:00:00.001000"),
        ("v timestamp", {"time_precision_mode": "microseconds"}, 1, "1970-01-01T00:00:00.000001Z"),
        ("v timestamp", {}, "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
        ("v decimal(10,2)", {}, "12.50", "12.50"),
        ("v decimal(10,2)", {}, 12.25, "12.25"),
        ("v decimal(10,2)", {"decimal_handling_mode": "string"}, "1234", "1234"),
        ("v decimal(10,2)", {"decimal_handling_mode": "precise"}, "AN3h", "568.01"),
        ("v decimal(10,2)", {}, {"scale": 1, "value": "AN3h"}, "5680.1"),
        ("v long", {}, 1, 1),
    ],
)
def test_without_schema_the_declared_type_decodes(ddl: str, options: Any, sent: Any, loaded: Any) -> None:
    assert row_of(event("c", 100, {"v": sent}), decoder(ddl, **options)) == {"v": loaded}


@pytest.mark.parametrize(
    ("ddl", "sent", "remedy"),
    [
        ("v timestamp", 1, "options.time_precision_mode"),
        ("v decimal(10,2)", "1234", "options.decimal_handling_mode"),
        ("v decimal(10,2)", "AN3h", "options.decimal_handling_mode"),
    ],
)
def test_without_schema_what_can_be_read_in_two_ways_is_refused(ddl: str, sent: Any, remedy: str) -> None:
    assert remedy in fault_of(event("c", 100, {"v": sent}), decoder(ddl))


@pytest.mark.parametrize(
    "lost", [LOST, base64.b64encode(LOST.encode()).decode(), [LOST], [*map(ord, LOST)], {LOST: LOST}]
)
def test_a_value_that_was_not_logged_is_absent_or_refused(lost: Any) -> None:
    message = event("u", 100, {"id": 1, "v": lost})
    assert row_of(message, decoder(keeps_lost=True)) == {"id": 1}
    assert "REPLICA IDENTITY FULL" in fault_of(message)
    assert row_of(event("u", 100, {"v": lost}, {"v": "old"})) == {"v": "old"}
    assert row_of(event("d", 100, before={"id": 1, "v": lost})) == {"id": 1}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x", "not JSON"),
        ("[1]", "found another value"),
        ('{"id": 1}', "format: ndjson"),
        (event("t", 100), "TRUNCATE"),
        (event("m", 100), "message of the database"),
        (event("z", 100, {"id": 1}), "another operation"),
        (event("c", 100), "field after: expected the row, found nothing"),
        (event("d", 100), "REPLICA IDENTITY"),
        (event("c", 100, {"_op": 1}), "_op"),
        (event("c", 100, {"id": 1}, connector="mongodb"), "mongodb"),
        (
            {**event("c", 100, {"id": 1}), "source": {"connector": "postgresql"}},
            "connector postgresql without it",
        ),
        (
            {"schema": {"type": "struct", "fields": []}, "payload": event("c", 100, {"id": 1})},
            "without before and after",
        ),
    ],
)
def test_a_line_that_is_no_change_of_a_row_says_what_was_found(line: Any, words: str) -> None:
    assert words in fault_of(line)


def test_a_schema_that_changes_within_a_file_gives_all_columns() -> None:
    reader = decoder()
    first = wrapped(event("c", 100, {"id": 1}), ID)
    second = wrapped(event("c", 101, {"id": 2, "name": "Bo"}), ID, NAME)
    assert [row_of(each, reader) for each in (first, first, second, first)] == [
        {"id": 1}, {"id": 1}, {"id": 2, "name": "Bo"}, {"id": 1}
    ]  # fmt: skip
    assert reader.schema is not None
    assert [column["name"] for column in reader.schema["fields"]] == ["id", "name"]


@pytest.mark.parametrize(
    "places",
    [
        [("r", {"lsn": 1}), ("d", {"lsn": 1}), ("c", {"lsn": 1}), ("u", {"lsn": 16}), ("u", {"lsn": 2**32})],
        [
            ("r", {"connector": "mysql", "file": "bin.999999", "pos": 4, "row": 0}),
            ("u", {"connector": "mysql", "file": "bin.999999", "pos": 4, "row": 0}),
            ("u", {"connector": "mysql", "file": "bin.999999", "pos": 4, "row": 10}),
            ("u", {"connector": "mysql", "file": "bin.999999", "pos": 20, "row": 0}),
            ("c", {"connector": "mysql", "file": "bin.1000000", "pos": 4, "row": 0}),
        ],
        [
            ("r", {"connector": "sqlserver", "commit_lsn": "0000002b:000004f8:0003", "change_lsn": None}),
            ("c", {"connector": "sqlserver", "commit_lsn": "0000002B:000004F8:0005", "change_lsn": "0000002b:000004f8:0004"}),
            ("u", {"connector": "sqlserver", "commit_lsn": "0000002b:000004f8:0006", "change_lsn": "0000002b:000004f8:0001", "event_serial_no": 2}),
        ],
        [
            ("r", {"connector": "oracle", "scn": "999"}),
            ("c", {"connector": "oracle", "scn": "1000", "rs_id": " 0x001.02 ", "ssn": 0}),
            ("u", {"connector": "oracle", "scn": "1000", "rs_id": "0x001.02", "ssn": 1}),
        ],
        [  # a transaction that was open during a snapshot
            ("u", {"connector": "oracle", "scn": "900", "commit_scn": "950"}),
            ("r", {"connector": "oracle", "scn": "1000", "commit_scn": None}),
            ("u", {"connector": "oracle", "scn": "990", "commit_scn": "1005"}),
        ],
        [
            ("u", {"lsn": 90, "sequence": '["80","90"]'}),
            ("r", {"lsn": 100, "sequence": '[null,"100"]'}),
            ("u", {"lsn": 110, "sequence": '["95","110"]'}),
            ("d", {"lsn": 90, "sequence": '["120","90"]'}),
            ("c", {"lsn": 90, "sequence": '["120","90"]'}),
            ("u", {"lsn": 91, "sequence": '["120","91"]'}),
            ("u", {"lsn": 130, "sequence": '["125","130"]'}),
        ],
    ],
)  # fmt: skip
def test_positions_order_events_as_the_log_does(places: list[tuple[str, dict[str, Any]]]) -> None:
    positions = [event_position(source(1) | place, operation) for operation, place in places]
    assert positions == sorted(set(positions))
