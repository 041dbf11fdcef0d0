"""Convert whatever a function yields to Arrow tables of one schema: Arrow, pandas, dict rows.

See docs/reference/python-functions.md, What it yields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from partitions.errors import SchemaError
from resources.sources.python.arrow_types import column_type
from resources.sources.python.values import of_arrow, of_python, own_array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 1_000
"""The most dict rows of one batch: a look that ends at the first row asks for no more of those that are yielded one by one."""

_DECIMALS = (38, 18)
"""Precision and scale of a column that is inferred from Python's decimals."""

Raw = Any
"""An Arrow table, or a list of dict rows: what they hold decides on their columns only beside a schema."""


class InvalidYield(Exception):
    """A yielded value that is no rows; the text says what was expected and found."""


def raw_batches(yielded: Any) -> Iterator[Raw]:
    """Yield what a function returned or yielded, in batches.

    Raises:
        InvalidYield: a value is no batch of rows.
    """
    if yielded is None:
        raise InvalidYield(
            "expected rows to be yielded or returned, found None (a function without rows yields nothing, or returns an empty list)"
        )
    if _arrow(yielded) is not None or isinstance(yielded, Mapping):
        yielded = [yielded]
    if not isinstance(yielded, Iterable) or isinstance(yielded, str | bytes):
        raise InvalidYield(f"expected batches of rows, found {_qualified_type(yielded)}")
    rows: list[Mapping[str, Any]] = []
    for batch in yielded:
        is_row = isinstance(batch, Mapping)
        if is_row:
            rows.append(dict(batch))  # a function may fill the same object again for its next row
        if rows and (not is_row or len(rows) == MAX_ROWS):
            yield rows
            rows = []
        if is_row:
            continue
        table = _arrow(batch)
        if table is not None:
            yield table
        else:
            yield from _split_rows(_rows(batch))
    if rows:
        yield rows


def inferred_schema(
    batches: Sequence[Raw],
    known_types: Mapping[str, pa.DataType] = MappingProxyType({}),
    remedy: str = "Declare source.schema",
) -> pa.Schema:
    """Return the common schema of some batches.

    Args:
        batches: the batches.
        known_types: the types of columns without a value, by their names in lower case.
        remedy: what to do about rows without a schema, for an error.

    Raises:
        InvalidYield: they have none, or the type of a column is unknown.
    """
    import pyarrow as pa

    try:
        tables = [_inferred(batch) for batch in batches]
        schema = pa.unify_schemas([table.schema for table in tables], promote_options="permissive")
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise InvalidYield(f"expected rows of one schema, found {error}. {remedy}") from None
    spellings: dict[str, str] = {}
    for field in schema:
        if (earlier_name := spellings.setdefault(field.name.casefold(), field.name)) != field.name:
            raise InvalidYield(
                f"expected columns whose names differ in more than upper and lower case, found {earlier_name} and {field.name}"
            )
    return pa.schema([(field.name, _inferred_type(field, known_types, remedy)) for field in schema])


def _inferred_type(field: pa.Field, known_types: Mapping[str, pa.DataType], remedy: str) -> pa.DataType:
    """Return the type that a column gets from the first rows.

    Raises:
        InvalidYield: it has no value, or no table can hold such columns.
    """
    try:
        data_type = column_type(field.type)
    except TypeError as error:
        raise InvalidYield(f"expected values that a table can hold, found {field.name}: {error}") from None
    if data_type is None:
        data_type = known_types.get(field.name.casefold())
    if data_type is None:
        raise InvalidYield(
            f"expected a value of {field.name} among the first rows, found none, so its type is unknown. {remedy}"
        )
    return data_type


def cast_to(batch: Raw, schema: pa.Schema, zone: str, *, ignore_unknown: bool = False) -> pa.Table:
    """Return a batch with exactly the columns of a schema, in its order.

    A dict row may lack columns, which become NULL. Times without a zone are in ``zone`` if the column has
    one.

    Args:
        batch: from :func:`raw_batches`.
        schema: the pinned schema.
        zone: the name of the definition's zone.
        ignore_unknown: whether columns that the schema lacks are dropped.

    Raises:
        SchemaError: a column is missing, unknown, or cannot hold its values.
    """
    import pyarrow as pa

    if isinstance(batch, pa.Table) and not len(batch):
        return schema.empty_table()
    names = column_names(batch)
    if isinstance(batch, pa.Table) and len(names) < batch.num_columns:
        repeated_name = next(name for name in batch.column_names if batch.column_names.count(name) > 1)
        raise SchemaError(
            f"expected each column once, found {repeated_name} again",
            reason="incompatible_schema",
            field=repeated_name,
        )
    unknown = sorted(names - set(schema.names))
    if unknown and not ignore_unknown:
        raise SchemaError(
            f"expected the columns {', '.join(schema.names)}, found also {', '.join(unknown)} (`unknown_fields: ignore` at the top level of the dataflow leaves them out)",
            reason="unknown_field",
            field=unknown[0],
        )
    missing = [name for name in schema.names if name not in names]
    if missing and isinstance(batch, pa.Table):
        raise SchemaError(
            f"expected the columns {', '.join(schema.names)}, found no {', '.join(missing)}",
            reason="missing_column",
            field=missing[0],
        )
    columns = [_column(batch, field, zone, ignore_unknown=ignore_unknown) for field in schema]
    return pa.table(columns, schema=schema)


def fitting_schema(batch: Raw, schema: pa.Schema, zone: str) -> pa.Schema:
    """Return the batch's schema: columns keep their type in ``schema`` if all values fit.

    Other columns get the type of their values. Dict rows have all columns of the schema; a column without
    a value keeps its type.

    Raises:
        SchemaError: a column has no single type.
    """
    import pyarrow as pa

    names, fields = column_names(batch), list[pa.Field]()
    try:
        inferred_types = {field.name: column_type(field.type) for field in _inferred(batch).schema}
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise SchemaError(
            f"expected values of one type in each column, found {error}", reason="incompatible_schema"
        ) from None
    for field in schema:
        if field.name not in names and isinstance(batch, pa.Table):
            continue
        try:
            _column(batch, field, zone)
        except SchemaError:
            fields.append(pa.field(field.name, inferred_types[field.name] or field.type))
        else:
            fields.append(field)
    schema_names = set(schema.names)
    fields += [
        pa.field(name, data_type)
        for name, data_type in inferred_types.items()
        if name not in schema_names and data_type is not None
    ]
    return pa.schema(fields)


def own_type(batch: Raw, name: str) -> pa.DataType:
    """Return the type of a batch's column; the null type if it is missing.

    Raises:
        SchemaError: its values have no common type.
    """
    import pyarrow as pa

    if isinstance(batch, pa.Table):
        return batch.schema.field(name).type if name in batch.column_names else pa.null()
    try:
        return own_array([row.get(name) for row in batch], "UTC").type
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise SchemaError(
            f"column {name}: expected values of one type, found others: {error}",
            reason="incompatible_schema",
            field=name,
        ) from None


def column_names(batch: Raw) -> set[str]:
    """Return the columns of a batch; for dict rows those that any row has."""
    import pyarrow as pa

    return set(batch.column_names) if isinstance(batch, pa.Table) else {name for row in batch for name in row}


def row_count(batch: Raw) -> int:
    """Return the number of rows in a batch."""
    return len(batch)


def _column(batch: Raw, field: pa.Field, zone: str, *, ignore_unknown: bool = False) -> Any:
    import pyarrow as pa

    try:
        if isinstance(batch, pa.Table):
            return of_arrow(batch.column(field.name), field.type, zone, ignore_unknown=ignore_unknown)
        return of_python(
            [row.get(field.name) for row in batch], field.type, zone, ignore_unknown=ignore_unknown
        )
    except SchemaError as error:
        raise SchemaError(
            f"column {field.name}: {error.message}", reason=error.reason, field=field.name
        ) from None
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise SchemaError(
            f"column {field.name}: expected values of type {field.type}, found others: {error}",
            reason="incompatible_schema",
            field=field.name,
        ) from None


def _arrow(yielded: Any) -> pa.Table | None:
    """Return an Arrow or pandas batch as an Arrow table; None for anything else."""
    import pyarrow as pa

    if isinstance(yielded, pa.Table):
        return yielded
    if isinstance(yielded, pa.RecordBatch):
        return pa.Table.from_batches([yielded])
    if isinstance(yielded, pa.RecordBatchReader):
        return None  # its batches come one by one
    if type(yielded).__module__.partition(".")[0] == "pandas":
        import pandas as pd

        if isinstance(yielded, pd.DataFrame):
            try:
                return _of_frame(yielded)
            except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
                raise InvalidYield(
                    f"expected a frame whose columns hold values of one type each, found {error}"
                ) from None
    if not hasattr(yielded, "__arrow_c_stream__"):
        return None
    try:  # frames of Polars and others, which hand over their columns in Arrow's form
        return pa.table(yielded)
    except pa.ArrowException as error:
        raise InvalidYield(
            f"expected a frame whose columns Arrow can hold, found one that it cannot: {error}"
        ) from None


def _of_frame(frame: Any) -> pa.Table:
    """Return a pandas frame as an Arrow table; in columns of objects NaN means NULL."""
    import pandas as pd
    import pyarrow as pa

    frame = _with_index(frame)
    has_objects = [kind.kind == "O" and not isinstance(kind, pd.ArrowDtype) for kind in frame.dtypes]
    typed_columns = frame.loc[:, [not objects for objects in has_objects]]
    table = pa.Table.from_pandas(typed_columns, preserve_index=False)
    if table.num_columns == frame.shape[1]:
        return table
    columns, arrays = iter(table.columns), list[Any]()
    for number, objects in enumerate(has_objects):
        if objects:
            values = [
                None if isinstance(value, float) and value != value else value
                for value in frame.iloc[:, number]
            ]
            array = own_array(values, None)
            arrays.append(array.cast(_widen_decimals(array.type)))
        else:
            arrays.append(next(columns))
    return pa.Table.from_arrays(arrays, names=[str(name) for name in frame.columns])


def _with_index(frame: Any) -> Any:
    """Return a frame with the named levels of its index as columns.

    An index without a name that numbers the rows is left out.

    Raises:
        ValueError: the index has other values without a name, or the name of a column with other values.
    """
    index, named = frame.index, []
    for number, name in enumerate(index.names):
        values = index.get_level_values(number)
        if name is None and len(values) and values.dtype.kind not in "iu":
            raise ValueError(
                f"an index without a name, with values such as {values[0]}. Make it a column with "
                "rename_axis('NAME').reset_index(), or leave it out with reset_index(drop=True)"
            )
        if name in frame.columns and not values.equals(type(values)(frame[name])):
            raise ValueError(
                f"an index and a column of the name {name}, with other values. Rename one of them"
            )
        if name is not None and name not in frame.columns:
            named.append(number)
    return frame.reset_index(level=named) if named else frame


def _rows(yielded: Any) -> list[Mapping[str, Any]]:
    if isinstance(yielded, list | tuple):
        wrong_row = next((row for row in yielded if not isinstance(row, Mapping)), None)
        if wrong_row is None:
            return list(yielded)
        raise InvalidYield(f"expected a list of dict rows, found {_qualified_type(wrong_row)} in it")
    raise InvalidYield(
        f"expected Arrow tables or record batches, pandas frames, dict rows or lists of them, found {_qualified_type(yielded)}"
    )


def _split_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[Raw]:
    for first in range(0, len(rows), MAX_ROWS):
        yield rows[first : first + MAX_ROWS]


def _inferred(batch: Raw) -> pa.Table:
    import pyarrow as pa

    if isinstance(batch, pa.Table):
        return batch
    names = dict.fromkeys(name for row in batch for name in row)
    return _with_wide_decimals(
        pa.table({name: own_array([row.get(name) for row in batch], "UTC") for name in names})
    )


def _with_wide_decimals(table: pa.Table) -> pa.Table:
    """Return a table with wide decimals: pyarrow infers their precision from these rows only."""
    import pyarrow as pa

    fields = [pa.field(field.name, _widen_decimals(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)) if fields != list(table.schema) else table


def _widen_decimals(data_type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_decimal(data_type):
        return pa.decimal128(*_DECIMALS)
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, _widen_decimals(field.type)) for field in data_type])
    return pa.list_(_widen_decimals(data_type.value_type)) if pa.types.is_list(data_type) else data_type


def _qualified_type(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
