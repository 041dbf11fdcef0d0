"""What a function may yield, as Arrow tables of one schema: each value is kept exactly, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import SchemaError
from resources.sources.python.batches import WrongYield, cast_to, inferred_schema, raw_batches

ROW = {"id": 1, "at": datetime(2024, 1, 1, tzinfo=UTC), "name": "x", "amount": Decimal("1.5"), "tags": ["a"]}
UTC_TIME, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=30)


def tables(given_rows: Any, schema: pa.Schema, zone: str = "UTC", **options: Any) -> list[dict[str, Any]]:
    """All rows of what a function returns, as they are staged."""
    return [
        row
        for batch in raw_batches(given_rows)
        for row in cast_to(batch, schema, zone, **options).to_pylist()
    ]


def cast(value: Any, kind: pa.DataType, zone: str = "UTC") -> Any:
    """A value as one of a type."""
    return tables([{"v": value}], pa.schema([("v", kind)]), zone)[0]["v"]


class _Foreign:
    """A frame of another library, which gives its columns in Arrow's form."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_look_at_the_first_row_takes_a_list_as_it_comes_and_a_thousand_rows_of_others() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(5000):
            taken.append(number)
            yield {"id": number}

    assert (len(next(raw_batches(rows()))), len(taken)) == (1000, 1000)
    lists = iter([[{"id": 1}], [{"id": 2}]])
    assert (next(raw_batches(lists)), next(lists)) == ([{"id": 1}], [{"id": 2}])


@given(
    NUMBERS,
    st.sampled_from(["rows", "lists", "table", "batches", "frame", "one table", "reader", "foreign frame"]),
)
def test_each_form_gives_the_same_rows(numbers: list[int | None], form: str) -> None:
    schema = pa.schema([("id", pa.int64())])
    rows, table = [{"id": number} for number in numbers], pa.table({"id": pa.array(numbers, pa.int64())})
    forms: dict[str, Any] = {
        "rows": iter(rows),
        "lists": iter([rows[:3], [], rows[3:]]),
        "table": [table],
        "batches": table.to_batches(max_chunksize=7),
        "frame": [table.to_pandas(types_mapper=lambda _: pd.Int64Dtype())],
        "one table": table,
        "reader": pa.RecordBatchReader.from_batches(schema, table.to_batches(max_chunksize=7)),
        "foreign frame": [_Foreign(table)],
    }
    assert [row["id"] for row in tables(forms[form], schema)] == numbers


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (
            datetime.fromisoformat("2024-07-01T12:00:00"),
            UTC_TIME,
            datetime(2024, 7, 1, 10, tzinfo=UTC),
        ),  # local time of the definition
        ("2024-07-01T12:00:00+02:00", UTC_TIME, datetime(2024, 7, 1, 10, tzinfo=UTC)),
        ("2024-07-01T12:00:00", LOCAL_TIME, datetime.fromisoformat("2024-07-01T12:00:00")),
        ("2024-07-01", pa.date32(), date(2024, 7, 1)),
        ("1.25", pa.decimal128(20, 2), Decimal("1.25")),
        (Decimal("1.2500"), pa.decimal128(20, 2), Decimal("1.25")),
        (1, pa.float64(), 1.0),
        (2.0, pa.int64(), 2),
        (None, pa.int64(), None),
        ({"a": 1}, pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": None}),
    ],
)
def test_a_value_that_is_one_of_the_type_is_kept(value: Any, kind: pa.DataType, expected: Any) -> None:
    assert cast(value, kind, "Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (2**40, pa.int32()),
        ("1", pa.int64()),
        (1, pa.string()),
        (True, pa.int64()),
        (1, pa.bool_()),
        (Decimal("1.255"), pa.decimal128(20, 2)),
        (datetime(2024, 1, 1, tzinfo=UTC), LOCAL_TIME),
        ("yesterday", UTC_TIME),
    ],
)
def test_a_value_that_would_change_is_refused_with_its_column(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column v: expected values of type") as refused:
        cast(value, kind)
    assert refused.value.field == "v"


def test_nanoseconds_are_refused_unless_they_are_whole_microseconds() -> None:
    schema = pa.schema([("v", UTC_TIME)])
    at = {count: pa.table({"v": pa.array([count], pa.timestamp("ns", "UTC"))}) for count in (1000, 1001)}
    assert tables(at[1000], schema) == [{"v": datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)}]
    with pytest.raises(SchemaError, match="column v"):
        tables(at[1001], schema)


def test_a_schema_is_inferred_from_the_rows_and_decimals_have_room() -> None:
    more = ROW | {"amount": Decimal("12345678901234567890.123456789012345678"), "extra": 1}
    schema = inferred_schema(list(raw_batches([ROW, more])))
    assert {field.name: str(field.type) for field in schema} == {
        "id": "int64",
        "at": "timestamp[us, tz=UTC]",
        "name": "string",
        "amount": "decimal128(38, 18)",
        "tags": "list<item: string>",
        "extra": "int64",
    }
    assert tables([ROW, more], schema) == [ROW | {"extra": None}, more]


def test_a_column_without_any_value_tells_no_type() -> None:
    with pytest.raises(WrongYield, match="expected a value of b among the first rows"):
        inferred_schema([[{"a": 1, "b": None}]])


def test_unknown_fields_are_refused_or_left_out() -> None:
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(SchemaError, match="found also more"):
        tables([{"id": 1, "more": 2}], schema)
    assert tables([{"id": 1, "more": 2}], schema, ignore_unknown=True) == [{"id": 1}]
    assert tables(pa.table({"more": [2], "id": [1]}), schema, ignore_unknown=True) == [{"id": 1}]
