"""Convert Python and Arrow values to column values: exactly, or not at all.

Belongs here: what one value may mean. The columns of a batch are in
:mod:`resources.sources.python.batches`. See docs/reference/python-functions.md, What it yields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from partitions.errors import SchemaError
from resources.sources.python.arrow_ddl import type_words
from resources.sources.python.arrow_types import are_alike, family_of, is_number, is_text
from resources.sources.python.times import (
    are_zoned,
    is_missing,
    is_missing_type,
    is_time_type,
    python_time,
    times_of_one_kind,
)

if TYPE_CHECKING:
    import pyarrow as pa


_ZONED = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
"""A text with a time that ends with an offset."""


def of_python(
    values: Sequence[Any], target: pa.DataType, zone: str, *, ignore_unknown: bool = False
) -> pa.Array:
    """Return Python values as an Arrow array of a type.

    Args:
        values: the values of one column.
        target: the column's type.
        zone: the zone of times without one, if the column's times have one.
        ignore_unknown: whether fields of objects that the type lacks are dropped.

    Raises:
        SchemaError: reason ``unknown_field``: an object has a field that the type lacks.
        TypeError, ValueError, OverflowError, pyarrow.ArrowException: the type cannot hold a value
        unchanged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(target):
        return _nested(
            [None if is_missing(value) else value for value in values], target, zone, ignore_unknown
        )
    has_zone = pa.types.is_timestamp(target) and target.tz is not None
    if _reads_text(target) and (texts := [isinstance(value, str) for value in values]) and any(texts):
        non_texts = [None if has_text else value for value, has_text in zip(values, texts, strict=True)]
        texts_alone = [value if has_text else None for value, has_text in zip(values, texts, strict=True)]
        parsed = _read_text(pa.array(texts_alone, pa.string()), target, zone)
        return pc.coalesce(parsed, of_arrow(own_array(non_texts, zone, zoned=has_zone), target, zone))
    return of_arrow(own_array(values, zone, zoned=has_zone), target, zone)


def own_array(values: Sequence[Any], zone: str | None, *, zoned: bool = False) -> pa.Array:
    """Return Python values as an Arrow array of their common type, which loses nothing.

    Args:
        values: the values of one column.
        zone: the zone of times without one, beside others that have one; None: such times are refused.
        zoned: whether all times get a zone.

    Raises:
        TypeError, ValueError, OverflowError, pyarrow.ArrowException: the values have no common type.
    """
    import pyarrow as pa

    value_types = set(map(type, values))
    if any(is_missing_type(kind) for kind in value_types):
        values = [None if is_missing(value) else value for value in values]
    value_types = {kind for kind in value_types if kind is not type(None) and not is_missing_type(kind)}
    if any(is_time_type(kind) for kind in value_types):
        return pa.array(values if are_zoned(values, value_types) else times_of_one_kind(values, zone, zoned))
    if len(value_types) > 1 and any(
        issubclass(kind, bool) or kind.__name__ == "bool" for kind in value_types
    ):
        raise TypeError("true or false and other values")
    if len(value_types) > 1 and any(issubclass(kind, Decimal) for kind in value_types):
        return pa.array([_decimal(value) for value in values])
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        if not all(issubclass(kind, Real) for kind in value_types):
            raise
        return pa.array(
            [_decimal(value) for value in values]
        )  # whole numbers that no double, or no long holds


def plain_value(value: Any) -> Any:
    """Return a value of NumPy or pandas as a Python value; any other value unchanged.

    Raises:
        ValueError: a time has nanoseconds.
    """
    if is_missing(value):
        return None
    if is_time_type(type(value)):
        return python_time(value)
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def of_arrow(values: Any, target: pa.DataType, zone: str, *, ignore_unknown: bool = False) -> Any:
    """Return an Arrow array as one of a type; arguments and errors as for :func:`of_python`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    source_type = values.type
    if pa.types.is_dictionary(source_type):
        return of_arrow(_decoded(values), target, zone, ignore_unknown=ignore_unknown)
    if pa.types.is_run_end_encoded(source_type):
        return of_arrow(pc.run_end_decode(values), target, zone, ignore_unknown=ignore_unknown)
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    if are_alike(source_type, target):
        return values.cast(target)
    if pa.types.is_nested(target):
        return _nested(values.to_pylist(), target, zone, ignore_unknown)
    if is_text(source_type) and not is_text(target):
        return _read_text(values.cast(pa.string()), target, zone)
    if pa.types.is_timestamp(target):
        return _as_times(values, target, zone)
    if pa.types.is_date(target):
        return _as_days(values, target)
    if is_number(source_type) and is_number(target):
        return _as_numbers(values, target)
    if family_of(source_type) is None or family_of(source_type) != family_of(target):
        raise TypeError(type_words(source_type))
    return values.cast(target)


def _decoded(values: Any) -> Any:
    """Return the values of a dictionary; Arrow's cast takes none of Polars' views of text."""
    import pyarrow as pa

    value_type = values.type.value_type
    if not pa.types.is_string_view(value_type):
        return values.cast(value_type)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array(
        [chunk.dictionary.cast(pa.string()).take(chunk.indices) for chunk in chunks], pa.string()
    )


def _decimal(value: Any) -> Decimal | None:
    """Return a number as a decimal with the digits that it is written with."""
    if value is None or isinstance(value, Decimal):
        return value
    if isinstance(value, Integral):
        return Decimal(int(value))
    if not isinstance(value, Real):
        raise TypeError(f"numbers and {type(value).__name__}")
    return Decimal(str(value))


def _nested(values: Sequence[Any], target: pa.DataType, zone: str, ignore_unknown: bool) -> pa.Array:
    """Return objects, lists or maps as an array; each value in them is kept exactly, too."""
    import pyarrow as pa

    nulls = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_struct(target):
        return _structs(values, target, zone, ignore_unknown, nulls)
    lists = [[] if value is None else _elements(value, target) for value in values]
    offsets = pa.array([0, *accumulate(map(len, lists))], pa.int32())
    flat = [element for elements in lists for element in elements]

    def inner(converted: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return of_python(converted, kind, zone, ignore_unknown=ignore_unknown)

    if pa.types.is_map(target):
        keys, items = (
            inner([pair[at] for pair in flat], kind)
            for at, kind in enumerate((target.key_type, target.item_type))
        )
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=nulls)
    return pa.ListArray.from_arrays(offsets, inner(flat, target.value_type), type=target, mask=nulls)


def _structs(
    values: Sequence[Any], target: pa.DataType, zone: str, ignore_unknown: bool, nulls: pa.Array
) -> pa.Array:
    import pyarrow as pa

    field_names = {field.name for field in target}
    wrong_value = next(
        (value for value in values if value is not None and not isinstance(value, Mapping)), None
    )
    if wrong_value is not None:
        raise TypeError(f"{type(wrong_value).__name__}")
    unknown = sorted({str(name) for value in values for name in value or () if name not in field_names})
    if unknown and not ignore_unknown:
        raise SchemaError(
            f"expected the fields {', '.join(sorted(field_names))}, found also {', '.join(unknown)} (`unknown_fields: ignore` at the top level of the dataflow leaves them out)",
            reason="unknown_field",
            field=unknown[0],
        )
    children = [
        of_python(
            [None if value is None else value.get(field.name) for value in values],
            field.type,
            zone,
            ignore_unknown=ignore_unknown,
        )
        for field in target
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=nulls)


def _elements(value: Any, target: pa.DataType) -> Sequence[Any]:
    import pyarrow as pa

    if pa.types.is_map(target):
        return list(value.items()) if isinstance(value, Mapping) else list(value)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{type(value).__name__}")
    return list(value)


def _read_text(values: Any, target: pa.DataType, zone: str) -> Any:
    """Return texts as times, days or decimals, which JSON can only write as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(target) and target.tz is not None:
        nothing = pa.scalar(None, pa.string())
        zoned = pc.match_substring_regex(values, _ZONED)
        with_zone = pc.if_else(zoned, values, nothing).cast(target)
        local = pc.if_else(zoned, nothing, values).cast(pa.timestamp("us"))
        return pc.coalesce(with_zone, _in_zone(local, target, zone))
    if _reads_text(target):
        return values.cast(target)
    raise TypeError(type_words(values.type))


def _reads_text(target: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(target) or pa.types.is_date(target) or pa.types.is_decimal(target))


def _as_times(values: Any, target: pa.DataType, zone: str) -> Any:
    import pyarrow as pa

    source_type = values.type
    if not pa.types.is_timestamp(source_type) and not pa.types.is_date(source_type):
        raise TypeError(type_words(source_type))
    if pa.types.is_timestamp(source_type) and source_type.tz is not None:
        if target.tz is None:
            raise TypeError("times with a zone, and the column has none")
        return values.cast(target)
    local = values.cast(pa.timestamp("us"))
    return local.cast(target) if target.tz is None else _in_zone(local, target, zone)


def _in_zone(local: Any, target: pa.DataType, zone: str) -> Any:
    """Return local times as instants; an ambiguous time is the second of the two.

    See docs/reference/windows.md, Local times. A time that the clocks skip moves past the gap by the same
    distance.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="raise").cast(target)
    except pa.ArrowInvalid:
        return pa.array(times_of_one_kind(local.to_pylist(), zone, zoned=True), target)


def _as_days(values: Any, target: pa.DataType) -> Any:
    """Return days; also times without zone at midnight, since pandas has no days."""
    import pyarrow as pa
    import pyarrow.compute as pc

    source_type = values.type
    if pa.types.is_date(source_type):
        return values.cast(target)
    if not pa.types.is_timestamp(source_type):
        raise TypeError(type_words(source_type))
    if source_type.tz is not None:
        raise TypeError("times with a zone, and the column has days")
    days = values.cast(pa.date32(), safe=False)
    if not _are_all(pc.equal(days.cast(source_type), values)):
        raise ValueError("times within a day, and the column has days")
    return days.cast(target)


def _as_numbers(values: Any, target: pa.DataType) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    source_type = values.type
    if pa.types.is_float16(source_type):
        return of_arrow(values.cast(pa.float32()), target, "UTC")
    if pa.types.is_integer(source_type) and pa.types.is_decimal(target):
        return values.cast(pa.decimal128(20, 0)).cast(target)
    if pa.types.is_floating(source_type) and pa.types.is_decimal(target):
        return _as_shortest_text(values).cast(target)
    if pa.types.is_decimal(source_type) and pa.types.is_floating(target):
        converted = values.cast(target)
        if not _are_all(
            pc.equal(_as_shortest_text(converted).cast(pa.decimal128(38, source_type.scale)), values)
        ):
            raise ValueError(f"{type_words(target)} cannot hold all of their digits")
        return converted
    if pa.types.is_float64(source_type) and pa.types.is_float32(target):
        return _as_floats(values, target)
    return values.cast(target)


def _as_floats(values: Any, target: pa.DataType) -> Any:
    """Return doubles as 32-bit floats with the same digits, or the same value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    converted = values.cast(target)
    same = pc.or_(pc.equal(converted.cast(pa.float64()), values), pc.is_nan(values))
    digits = pc.if_else(pc.is_finite(converted), _as_shortest_text(converted), pa.scalar(None, pa.string()))
    if not _are_all(pc.or_(same, pc.coalesce(pc.equal(digits.cast(pa.float64()), values), same))):
        raise ValueError("a float cannot hold all of their digits")
    return converted


def _as_shortest_text(values: Any) -> Any:
    """Return numbers as the shortest texts that identify them."""
    import pyarrow as pa

    return values.cast(pa.string())


def _are_all(conditions: Any) -> bool:
    import pyarrow.compute as pc

    return pc.all(conditions).as_py() is not False
