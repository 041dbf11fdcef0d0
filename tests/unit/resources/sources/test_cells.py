"""What a cell becomes in a column of a type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark.sql.types import BooleanType as Flag

from resources.sources.files.cells import MisfitError, converter, infer_type, kind_of_cell

DAY, MOMENT = date(2026, 1, 2), datetime.fromisoformat("2026-01-02T03:04:05.678")


def _convert(kind: DataType, cell: Any) -> Any:
    convert = converter(kind)
    assert convert is not None
    return convert(cell)


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        (LongType(), 5.0, 5),
        (LongType(), 9007199254740991.0, 9007199254740991),
        (LongType(), "007", 7),
        (ByteType(), -128, -128),
        (ShortType(), 32767.0, 32767),
        (IntegerType(), " 12 ", 12),
        (DoubleType(), 1, 1.0),
        (DoubleType(), "1e3", 1000.0),
        (DoubleType(), 6.02e23, 6.02e23),
        (FloatType(), 1.5, 1.5),
        (DecimalType(10, 2), 0.1 + 0.2, Decimal("0.30")),
        (DecimalType(10, 2), 0.7 + 0.1, Decimal("0.80")),
        (DecimalType(20, 4), 1234567890123456.0, Decimal("1234567890123456.0000")),
        (DecimalType(3, 0), 999, Decimal(999)),
        (DecimalType(38, 18), "0.000000000000000001", Decimal("1E-18")),
        (StringType(), 5.0, "5"),
        (StringType(), 5.25, "5.25"),
        (StringType(), "  ", "  "),
        (StringType(), True, "true"),
        (StringType(), DAY, "2026-01-02"),
        (StringType(), MOMENT, "2026-01-02 03:04:05.678000"),
        (StringType(), time(3, 4, 5), "03:04:05"),
        (StringType(), timedelta(hours=30, seconds=1), "30:00:01"),
        (StringType(), timedelta(seconds=1.5), "00:00:01.500000"),
        (StringType(), -timedelta(minutes=30), "-00:30:00"),
        (Flag(), "TRUE", True),
        (Flag(), False, False),
        (DateType(), DAY, DAY),
        (DateType(), datetime.fromisoformat("2026-01-02"), DAY),
        (DateType(), "2026-01-02", DAY),
        (TimestampNTZType(), MOMENT, MOMENT),
        (TimestampNTZType(), DAY, datetime.fromisoformat("2026-01-02")),
        (TimestampType(), MOMENT, MOMENT.replace(tzinfo=UTC)),
        (TimestampType(), "2026-01-02 03:04", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
    ],
)
def test_a_cell_becomes_a_value_of_its_column(kind: DataType, cell: Any, value: Any) -> None:
    made = _convert(kind, cell)
    assert (made, type(made)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        (LongType(), 1.5),
        (LongType(), "x"),
        (LongType(), True),
        (LongType(), DAY),
        (LongType(), 2.0**63),
        (LongType(), math.inf),
        (ByteType(), 128),
        (DoubleType(), "NaN"),
        (DoubleType(), False),
        (DecimalType(3, 1), 100),
        (DecimalType(10, 2), 1.005),
        (DateType(), "20260102"),
        (DecimalType(3, 1), "1e400"),
        (Flag(), 1),
        (Flag(), "yes"),
        (DateType(), MOMENT),
        (DateType(), 45000.0),
        (DateType(), "2 January"),
        (TimestampNTZType(), "2026-01-02T00:00:00+01:00"),
        (TimestampType(), time(3)),
    ],
)
def test_a_cell_that_a_column_cannot_hold_without_a_loss_is_refused(kind: DataType, cell: Any) -> None:
    with pytest.raises(MisfitError):
        _convert(kind, cell)


@pytest.mark.parametrize(
    ("kind", "cell", "reason"),
    [
        (LongType(), 2.0**53, "a number with more digits than a workbook stores exactly"),
        (StringType(), 2.0**53, "a number with more digits than a workbook stores exactly"),
        (DecimalType(20, 0), 2.0**53, "a number with more digits than a workbook stores exactly"),
        (DecimalType(20, 4), 123456789012.3456, "a number with more digits than a workbook stores exactly"),
        (DecimalType(20, 3), 123456789012.3456, "a number with more digits than a workbook stores exactly"),
        (DoubleType(), math.inf, "a number beyond the range of a workbook"),
        (StringType(), math.nan, "a number beyond the range of a workbook"),
        (DateType(), date(1900, 2, 28), "28 February 1900, or the 29th, which never existed"),
        (StringType(), datetime.fromisoformat("1900-02-28T12:00"), "28 February 1900, or the 29th"),
    ],
)
def test_a_cell_that_may_mean_another_value_is_refused(kind: DataType, cell: Any, reason: str) -> None:
    with pytest.raises(MisfitError, match=reason):
        _convert(kind, cell)


@pytest.mark.parametrize("kind", [ArrayType(LongType()), StructType(), BinaryType()])
def test_no_cell_can_be_of_a_nested_type(kind: DataType) -> None:
    assert converter(kind) is None


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([], None),
        ([1, 2.0], LongType()),
        ([1, 2.5], DoubleType()),
        ([2.0**63], LongType()),
        ([2.0**63, 0.5], DoubleType()),
        ([DAY], DateType()),
        ([DAY, MOMENT], TimestampNTZType()),
        ([True], Flag()),
        ([True, 1], StringType()),
        ([1, "x"], StringType()),
        ([time(3)], StringType()),
        ([timedelta(1)], StringType()),
    ],
)
def test_a_type_is_inferred_that_holds_all_cells(cells: list[Any], kind: DataType | None) -> None:
    assert infer_type({kind_of_cell(cell) for cell in cells}) == kind


_CELLS = (
    st.integers(1 - 2**53, 2**53 - 1).map(float)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: abs(number) < 2**53)
    | st.text(min_size=1)
    | st.booleans()
    | st.dates(min_value=date(1900, 3, 1))
    | st.datetimes(min_value=datetime.fromisoformat("1900-03-01"))
    | st.times()
    | st.timedeltas(timedelta(0), timedelta(days=1000))
)


@given(st.lists(_CELLS, min_size=1))
def test_each_cell_fits_the_type_that_is_inferred_from_it_and_others(cells: list[Any]) -> None:
    kind = infer_type({kind_of_cell(cell) for cell in cells})
    assert kind is not None
    for cell in cells:
        assert _convert(kind, cell) is not None
