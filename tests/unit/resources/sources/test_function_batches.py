"""What a function may yield, as Arrow tables of one schema: each value is kept exactly, or refused."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import SchemaError
from resources.sources.python.batches import cast_to, inferred_schema
from resources.sources.python.yielded import InvalidYield, raw_batches

ROW = {
    "id": 1,
    "at": datetime(2024, 1, 1, tzinfo=UTC),
    "name": "x",
    "amount": Decimal("1.5"),
    "tags": ["a"],
    "prices": [{"x": Decimal("0.5")}],
}
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


def test_a_first_look_takes_lists_as_they_come_and_1000_rows_else() -> None:
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
    st.sampled_from(
        [
            "rows",
            "lists",
            "table",
            "batches",
            "frame",
            "one table",
            "reader",
            "foreign frame",
            "lazy",
            "dataset",
        ]
    ),
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
        "lazy": pl.LazyFrame(table),
        "dataset": pyarrow.dataset.dataset(table),
    }
    assert [row["id"] for row in tables(forms[form], schema)] == numbers


async def rows_of_nobody() -> list[dict[str, Any]]:
    """Return rows to whoever awaits it."""
    return [{"id": 1}]


async def rows_one_by_one() -> AsyncIterator[dict[str, Any]]:
    """Yield rows to whoever asks for them with async for."""
    yield {"id": 1}


@pytest.mark.parametrize("function", [rows_of_nobody, rows_one_by_one])
def test_rows_of_an_async_function_are_refused_with_what_to_do(function: Any) -> None:
    with pytest.raises(
        InvalidYield, match=r"Nothing awaits an async function: call asyncio\.run in a plain one"
    ):
        list(raw_batches(function()))
    with pytest.raises(InvalidYield, match="Nothing awaits an async function"):
        list(raw_batches([function()]))


@pytest.mark.parametrize(
    ("value", "data_type", "message"),
    [
        ("one", pa.int64(), "expected values of type bigint, found others: string"),
        (1, pa.timestamp("us", "UTC"), "expected values of type timestamp, found others: bigint"),
        ([1], pa.decimal128(5, 2), "expected values of type decimal(5,2), found others: array<bigint>"),
    ],
)
def test_a_value_that_does_not_fit_is_named_in_the_words_of_a_schema(
    value: Any, data_type: pa.DataType, message: str
) -> None:
    for batch in ([{"v": value}], pa.table({"v": [value]})):
        with pytest.raises(SchemaError, match=re.escape(f"column v: {message}")):
            cast_to(batch, pa.schema([("v", data_type)]), "UTC")


AWARE, NAIVE = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime.fromisoformat("2026-01-01T12:00:00")
BERLIN = datetime(2026, 1, 1, 11, tzinfo=UTC)
"""The local time there, as an instant."""
PRICE, X_PRICE = pa.decimal128(10, 2), pa.struct([("x", pa.decimal128(10, 2))])


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (
            datetime.fromisoformat("2024-07-01T12:00:00"),
            UTC_TIME,
            datetime(2024, 7, 1, 10, tzinfo=UTC),
        ),  # local time of the definition
        ("2024-07-01T12:00:00+02:00", UTC_TIME, datetime(2024, 7, 1, 10, tzinfo=UTC)),
        ("2026-01-01 12:00:00.000001", UTC_TIME, BERLIN.replace(microsecond=1)),
        ("2026-01-01", UTC_TIME, datetime(2025, 12, 31, 23, tzinfo=UTC)),
        (date(2026, 1, 1), UTC_TIME, datetime(2025, 12, 31, 23, tzinfo=UTC)),
        (pd.Timestamp("2026-01-01T12:00:00.000001"), UTC_TIME, BERLIN.replace(microsecond=1)),
        (np.datetime64("2026-01-01T12:00:00"), UTC_TIME, BERLIN),
        (NAIVE.replace(month=10, day=25, hour=2), UTC_TIME, datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("2026-10-25T02:30:00", UTC_TIME, datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
        (NAIVE.replace(month=10, day=25, hour=2, fold=1), UTC_TIME, datetime(2026, 10, 25, 1, tzinfo=UTC)),
        (NAIVE.replace(month=3, day=29, hour=2), UTC_TIME, datetime(2026, 3, 29, 1, tzinfo=UTC)),
        (pd.NaT, UTC_TIME, None),
        (pd.NA, pa.int64(), None),
        ("2024-07-01T12:00:00", LOCAL_TIME, datetime.fromisoformat("2024-07-01T12:00:00")),
        ("2024-07-01", pa.date32(), date(2024, 7, 1)),
        (NAIVE.replace(hour=0), pa.date32(), date(2026, 1, 1)),
        ("1.25", pa.decimal128(20, 2), Decimal("1.25")),
        (Decimal("1.2500"), pa.decimal128(20, 2), Decimal("1.25")),
        (0.1, pa.decimal128(38, 18), Decimal("0.1")),
        (1e22, pa.decimal128(38, 0), Decimal(10**22)),
        (5, PRICE, Decimal(5)),
        (2**64 + 1, pa.decimal128(38, 0), Decimal(2**64 + 1)),
        (1, pa.float64(), 1.0),
        (Decimal("0.10"), pa.float64(), 0.1),
        (0.5, pa.float32(), 0.5),
        (0.1, pa.float32(), 0.10000000149011612),
        (2.0, pa.int64(), 2),
        (None, pa.int64(), None),
        ({"a": 1}, pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": None}),
        ({"x": 1.1}, X_PRICE, {"x": Decimal("1.1")}),
        ([{"x": 1}, None], pa.list_(X_PRICE), [{"x": Decimal(1)}, None]),
        ({"a": 1.5}, pa.map_(pa.string(), PRICE), [("a", Decimal("1.5"))]),
        ([NAIVE, AWARE], pa.list_(UTC_TIME), [BERLIN, AWARE]),
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
        (1.255, pa.decimal128(20, 2)),
        (math.inf, PRICE),
        (10**9, PRICE),
        (Decimal("0.1000000000000000000001"), pa.float64()),
        (2**53 + 1, pa.float64()),
        (1 / 3, pa.float32()),
        (1e300, pa.float32()),
        (1_700_000_000, UTC_TIME),
        (NAIVE, pa.int64()),
        (NAIVE, pa.date32()),
        (AWARE, pa.date32()),
        (datetime(2024, 1, 1, tzinfo=UTC), LOCAL_TIME),
        ("2024-01-01T00:00:00Z", LOCAL_TIME),
        ("2024-01-01T00:00:00.000000001Z", UTC_TIME),
        (pd.Timestamp("2026-01-01T12:00:00.000000001"), UTC_TIME),
        ("yesterday", UTC_TIME),
        ({"x": 1.255}, X_PRICE),
        ([1, 2.5], pa.list_(pa.int64())),
        ("ab", pa.list_(pa.string())),
        ([1], X_PRICE),
    ],
)
def test_a_value_that_would_change_is_refused_with_its_column(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column v: expected values of type") as refused:
        cast(value, kind)
    assert refused.value.field == "v"


MIXED: list[tuple[list[Any], pa.DataType, list[Any]]] = [
    ([NAIVE, AWARE, None], UTC_TIME, [BERLIN, AWARE, None]),
    ([AWARE, NAIVE, pd.NaT], UTC_TIME, [AWARE, BERLIN, None]),
    ([date(2026, 1, 1), NAIVE], LOCAL_TIME, [NAIVE.replace(hour=0), NAIVE]),
    ([NAIVE.replace(hour=0), date(2026, 1, 2)], pa.date32(), [date(2026, 1, 1), date(2026, 1, 2)]),
    (["2026-01-01T12:00:00Z", "2026-01-01T12:00:00", None], UTC_TIME, [AWARE, BERLIN, None]),
    ([NAIVE, "2026-01-01", date(2026, 1, 1)], LOCAL_TIME, [NAIVE, *[NAIVE.replace(hour=0)] * 2]),
    (["0.10", 1], PRICE, [Decimal("0.1"), Decimal(1)]),
    (
        [1, Decimal("0.25"), 0.5, np.int64(3)],
        PRICE,
        [Decimal(1), Decimal("0.25"), Decimal("0.5"), Decimal(3)],
    ),
    ([2**53 + 1, 0.5], pa.decimal128(38, 1), [Decimal(2**53 + 1), Decimal("0.5")]),
]


@pytest.mark.parametrize(("values", "kind", "expected"), MIXED)
def test_values_of_several_kinds_are_kept(values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    schema = pa.schema([("v", kind)])
    assert [
        row["v"] for row in tables([{"v": value} for value in values], schema, "Europe/Berlin")
    ] == expected


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [case for case in MIXED if case[1] != UTC_TIME and not any(isinstance(value, str) for value in case[0])],
)
def test_objects_of_frames_stay_as_in_rows(values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    frame = pd.DataFrame(
        {"n": [float(at) for at in range(len(values))], "v": pd.Series(values, dtype=object)}
    )
    schema = pa.schema([("v", kind), ("n", pa.int64())])
    assert [row["v"] for row in tables(frame, schema, "Europe/Berlin")] == expected


def test_a_frame_with_times_of_both_kinds_is_refused() -> None:
    frame = pd.DataFrame({"v": pd.Series([NAIVE, AWARE], dtype=object)})
    with pytest.raises(InvalidYield, match="found times with and without a zone"):
        tables(frame, pa.schema([("v", UTC_TIME)]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [([date(2026, 1, 1), NAIVE], pa.date32()), ([True, 1], pa.int64()), ([1, "a"], pa.string())],
)
def test_values_of_kinds_that_would_change_are_refused(values: list[Any], kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column v: expected values of type"):
        tables([{"v": value} for value in values], pa.schema([("v", kind)]))


def test_arrow_s_objects_and_lists_are_kept_as_python_s_are() -> None:
    inner = pa.array([{"x": 0.1, "at": NAIVE}, None], pa.struct([("x", pa.float64()), ("at", LOCAL_TIME)]))
    table = pa.table({"v": inner, "w": pa.array([[1], None], pa.list_(pa.int32()))})
    wide = pa.list_(pa.field("element", pa.int64()))
    schema = pa.schema([("v", pa.struct([("x", PRICE), ("at", UTC_TIME)])), ("w", wide)])
    assert tables(table, schema, "Europe/Berlin") == [
        {"v": {"x": Decimal("0.1"), "at": BERLIN}, "w": [1]},
        {"v": None, "w": None},
    ]


def test_a_column_without_any_value_fits_every_type_and_views_are_text() -> None:
    empty = pd.DataFrame({"v": [math.nan, math.nan]})
    assert tables(empty, pa.schema([("v", UTC_TIME)])) == [{"v": None}, {"v": None}]
    views = pa.table({"v": pa.array(["a", None], pa.string_view())})
    assert tables(views, pa.schema([("v", pa.string())])) == [{"v": "a"}, {"v": None}]


def test_a_field_of_an_object_that_the_schema_lacks_is_refused_or_left_out() -> None:
    schema = pa.schema([("v", pa.struct([("a", pa.int64())]))])
    for given_rows in ([{"v": {"a": 1, "b": 2}}], pa.table({"v": [{"a": 1, "b": 2}]})):
        with pytest.raises(SchemaError, match="column v: expected the fields a, found also b") as refused:
            tables(given_rows, schema)
        assert (refused.value.reason, refused.value.field) == ("unknown_field", "v")
        assert tables(given_rows, schema, ignore_unknown=True) == [{"v": {"a": 1}}]


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaError, match="expected each column once, found id again"):
        tables(twice, pa.schema([("id", pa.int64())]))


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
        "tags": "list<element: string>",
        "prices": "list<element: struct<x: decimal128(38, 18)>>",
        "extra": "int64",
    }
    assert tables([ROW, more], schema) == [ROW | {"extra": None}, more]


def test_a_column_without_any_value_tells_no_type() -> None:
    with pytest.raises(InvalidYield, match="expected a value of b among the first rows"):
        inferred_schema([[{"a": 1, "b": None}]])


def test_values_that_no_table_holds_are_refused_by_column_when_a_schema_is_inferred() -> None:
    for value in (time(1, 2), timedelta(1), [time(1, 2)]):
        with pytest.raises(
            InvalidYield, match=r"found t: values of type (time64|duration)\[us\], which no column holds"
        ):
            inferred_schema([[{"t": value}]])
    with pytest.raises(InvalidYield, match="found id and ID"):
        inferred_schema([[{"id": 1, "ID": 2}]])
    with pytest.raises(InvalidYield, match="expected a value of l among the first rows"):
        inferred_schema([[{"l": []}]])


def test_types_are_inferred_as_a_table_has_them() -> None:
    given = pa.schema(
        [
            ("a", pa.string_view()), ("b", pa.large_list(pa.large_string())), ("c", pa.uint8()), ("d", pa.float16()),
            ("e", pa.struct([("x", pa.timestamp("ns", "Asia/Tokyo")), ("y", pa.dictionary(pa.int8(), pa.string()))])),
            ("f", pa.date64()), ("g", pa.map_(pa.string(), pa.int32())), ("h", pa.large_binary()),
        ]
    )  # fmt: skip
    found = {field.name: str(field.type) for field in inferred_schema([given.empty_table()])}
    assert found == {
        "a": "string",
        "b": "list<element: string>",
        "c": "int64",
        "d": "float",
        "e": "struct<x: timestamp[us, tz=UTC], y: string>",
        "f": "date32[day]",
        "g": "map<string, int32>",
        "h": "binary",
    }


def test_an_empty_frame_is_no_rows_whatever_its_columns() -> None:
    schema = pa.schema([("id", pa.int64()), ("at", UTC_TIME)])
    for frame in (pd.DataFrame(), pd.DataFrame(columns=["id"]), pd.DataFrame({"other": []})):
        assert tables(frame, schema) == []


def test_unknown_fields_are_refused_or_left_out() -> None:
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(SchemaError, match="found also more"):
        tables([{"id": 1, "more": 2}], schema)
    assert tables([{"id": 1, "more": 2}], schema, ignore_unknown=True) == [{"id": 1}]
    assert tables(pa.table({"more": [2], "id": [1]}), schema, ignore_unknown=True) == [{"id": 1}]


def test_named_levels_of_an_index_are_columns_and_row_numbers_are_not() -> None:
    frame = pd.DataFrame({"day": ["a", "b", "a"], "n": [1, 2, 3]})
    (by_day,) = raw_batches(frame.groupby("day").sum())
    assert by_day.to_pylist() == [{"day": "a", "n": 4}, {"day": "b", "n": 2}]
    (by_both,) = raw_batches(frame.assign(m=1).set_index(["day", "n"]))
    assert by_both.to_pylist()[0] == {"day": "a", "n": 1, "m": 1}
    (kept,) = raw_batches(frame.set_index("day", drop=False))
    assert kept.column_names == ["day", "n"]
    (numbered,) = raw_batches(frame.query("n > 1"))
    assert numbered.to_pylist() == [{"day": "b", "n": 2}, {"day": "a", "n": 3}]
    (empty,) = raw_batches(pd.DataFrame(columns=["day", "n"]))
    assert (empty.column_names, empty.num_rows) == (["day", "n"], 0)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"n": [1]}, index=["x"]), "an index without a name, with values such as x. Make it a column with rename_axis"),
        (pd.DataFrame({"n": [1]}, index=pd.Index([2], name="n")), "an index and a column of the name n, with other values. Rename one of them"),
    ],
)  # fmt: skip
def test_an_index_that_would_be_lost_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidYield, match=message):
        list(raw_batches(frame))


def test_categories_of_polars_and_runs_of_values_are_their_values() -> None:
    categories = pl.DataFrame({"v": ["a", None, "b", "a"]}, schema={"v": pl.Categorical})
    assert tables(categories, pa.schema([("v", pa.string())])) == [
        {"v": "a"}, {"v": None}, {"v": "b"}, {"v": "a"}
    ]  # fmt: skip
    runs = pa.table({"v": pa.RunEndEncodedArray.from_arrays([2, 3], [5, None])})
    schema = inferred_schema([runs])
    assert schema.field("v").type == pa.int64()
    assert tables(runs, schema) == [{"v": 5}, {"v": 5}, {"v": None}]


def test_numbers_with_a_negative_scale_are_whole_numbers() -> None:
    table = pa.table({"v": pa.array([Decimal(1200)], pa.decimal128(5, -2))})
    schema = inferred_schema([table])
    assert schema.field("v").type == pa.decimal128(7, 0)
    assert tables(table, schema) == [{"v": Decimal(1200)}]


def test_a_frame_that_arrow_cannot_hold_is_refused() -> None:
    with pytest.raises(
        InvalidYield, match="expected a frame whose columns Arrow can hold, found one that it cannot"
    ):
        list(raw_batches(pl.DataFrame({"v": [2**100]}, schema={"v": pl.Int128})))
    with pytest.raises(InvalidYield, match="found v: objects without fields, which no column holds"):
        inferred_schema([pa.table({"v": pa.array([{}], pa.struct([]))})])
