"""Whatever a function of the user yields, as Arrow tables of one schema: Arrow, pandas, dict rows (docs/reference/python-functions.md, What it yields)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import SchemaError
from resources.sources.python.arrow_types import column_type
from resources.sources.python.values import of_arrow, of_python, own_array

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 1_000
"""Dict rows of one batch: a look that ends at the first row asks for no more of those that are yielded one by one."""

_DECIMALS = (38, 18)
"""Precision and scale of a column that is inferred from Python's decimals."""

Raw = Any
"""An Arrow table, or a list of dict rows: what they hold decides on their columns only beside a schema."""


class WrongYield(Exception):
    """What a function yields cannot be rows. The text says what was expected and found."""


def raw_batches(given: Any) -> Iterator[Raw]:
    """Return what a function returned or yielded, in batches.

    Raises:
        WrongYield: for anything that is no batch of rows.
    """
    if given is None:
        raise WrongYield(
            "expected rows to be yielded or returned, found None (a function without rows yields nothing, or returns an empty list)"
        )
    if _arrow(given) is not None or isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise WrongYield(f"expected batches of rows, found {_named(given)}")
    rows: list[Mapping[str, Any]] = []
    for each in given:
        is_row = isinstance(each, Mapping)
        if is_row:
            rows.append(dict(each))  # a function may fill the same object again for its next row
        if rows and (not is_row or len(rows) == MOST_ROWS):
            yield rows
            rows = []
        if is_row:
            continue
        table = _arrow(each)
        if table is not None:
            yield table
        else:
            yield from _cut(_rows(each))
    if rows:
        yield rows


def inferred_schema(batches: Sequence[Raw]) -> pa.Schema:
    """Return the schema of some batches.

    Raises:
        WrongYield: they have none in common, or nothing tells the type of a column.
    """
    import pyarrow as pa

    try:
        tables = [_inferred(batch) for batch in batches]
        schema = pa.unify_schemas([table.schema for table in tables], promote_options="permissive")
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise WrongYield(f"expected rows of one schema, found {error}. Declare source.schema") from None
    seen: dict[str, str] = {}
    for field in schema:
        if (other := seen.setdefault(field.name.casefold(), field.name)) != field.name:
            raise WrongYield(
                f"expected columns whose names differ in more than upper and lower case, found {other} and {field.name}"
            )
    return pa.schema([(field.name, _told(field)) for field in schema])


def _told(field: pa.Field) -> pa.DataType:
    """The type that a column of the first rows gets.

    Raises:
        WrongYield: no value tells it, or no table has such columns.
    """
    try:
        kind = column_type(field.type)
    except TypeError as error:
        raise WrongYield(f"expected values that a table can hold, found {field.name}: {error}") from None
    if kind is None:
        raise WrongYield(
            f"expected a value of {field.name} among the first rows, found none, so nothing tells its type. Declare source.schema"
        )
    return kind


def cast_to(batch: Raw, schema: pa.Schema, zone: str, *, ignore_unknown: bool = False) -> pa.Table:
    """Return a batch with exactly the columns of a schema, in its order.

    A dict row need not have each column: NULL stands for a missing one. Times without a zone are of ``zone`` if the column has one.

    Args:
        batch: from :func:`raw_batches`.
        schema: that is pinned.
        zone: name of the definition's.
        ignore_unknown: whether columns that the schema lacks are left out.

    Raises:
        SchemaError: a column is missing, unknown, or its values cannot be ones of the schema's type.
    """
    import pyarrow as pa

    if isinstance(batch, pa.Table) and not len(batch):
        return schema.empty_table()
    names = column_names(batch)
    if isinstance(batch, pa.Table) and len(names) < batch.num_columns:
        twice = next(name for name in batch.column_names if batch.column_names.count(name) > 1)
        raise SchemaError(
            f"expected each column once, found {twice} again", reason="incompatible_schema", field=twice
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
    """Return the columns of a batch: of those of a schema the schema's type if all values are of it, else, and of others, the values' own.

    Dict rows have all columns of the schema; a column without a value tells no type.

    Raises:
        SchemaError: nothing tells a type.
    """
    import pyarrow as pa

    names, fields = column_names(batch), list[pa.Field]()
    try:
        own = {field.name: column_type(field.type) for field in _inferred(batch).schema}
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
            fields.append(pa.field(field.name, own[field.name] or field.type))
        else:
            fields.append(field)
    known = set(schema.names)
    fields += [pa.field(name, kind) for name, kind in own.items() if name not in known and kind is not None]
    return pa.schema(fields)


def own_type(batch: Raw, name: str) -> pa.DataType:
    """Return the type of a column of a batch; that of NULL if it has none.

    Raises:
        SchemaError: its values have none in common.
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
    """Return the columns that a batch has; of dict rows those that any row has."""
    import pyarrow as pa

    return set(batch.column_names) if isinstance(batch, pa.Table) else {name for row in batch for name in row}


def row_count(batch: Raw) -> int:
    """Return how many rows a batch has."""
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


def _arrow(given: Any) -> pa.Table | None:
    """An Arrow or pandas batch as an Arrow table; None for anything else."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.RecordBatchReader):
        return None  # its batches come one by one
    if type(given).__module__.partition(".")[0] == "pandas":
        import pandas as pd

        if isinstance(given, pd.DataFrame):
            try:
                return _with_wide_decimals(_of_frame(given))
            except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
                raise WrongYield(
                    f"expected a frame whose columns hold values of one type each, found {error}"
                ) from None
    # Frames of Polars and others, which hand over their columns in Arrow's form.
    return pa.table(given) if hasattr(given, "__arrow_c_stream__") else None


def _of_frame(frame: Any) -> pa.Table:
    """A frame of pandas; its columns of objects as other values of Python, in which a NaN stands for no value."""
    import pyarrow as pa

    plain = frame.loc[:, [kind.kind != "O" for kind in frame.dtypes]]
    table = pa.Table.from_pandas(plain, preserve_index=False)
    if table.num_columns == frame.shape[1]:
        return table
    columns, arrays = iter(table.columns), list[Any]()
    for number, kind in enumerate(frame.dtypes):
        if kind.kind == "O":
            values = [
                None if isinstance(value, float) and value != value else value
                for value in frame.iloc[:, number]
            ]
            arrays.append(own_array(values, None))
        else:
            arrays.append(next(columns))
    return pa.Table.from_arrays(arrays, names=[str(name) for name in frame.columns])


def _rows(given: Any) -> list[Mapping[str, Any]]:
    if isinstance(given, list | tuple):
        odd = next((row for row in given if not isinstance(row, Mapping)), None)
        if odd is None:
            return list(given)
        raise WrongYield(f"expected a list of dict rows, found {_named(odd)} in it")
    raise WrongYield(
        f"expected Arrow tables or record batches, pandas frames, dict rows or lists of them, found {_named(given)}"
    )


def _cut(rows: Sequence[Mapping[str, Any]]) -> Iterator[Raw]:
    for first in range(0, len(rows), MOST_ROWS):
        yield rows[first : first + MOST_ROWS]


def _inferred(batch: Raw) -> pa.Table:
    import pyarrow as pa

    if isinstance(batch, pa.Table):
        return batch
    names = dict.fromkeys(name for row in batch for name in row)
    return _with_wide_decimals(
        pa.table({name: own_array([row.get(name) for row in batch], "UTC") for name in names})
    )


def _with_wide_decimals(table: pa.Table) -> pa.Table:
    """A table whose decimals have room: pyarrow takes their precision from the rows at hand, which say nothing of the others."""
    import pyarrow as pa

    fields = [pa.field(field.name, _wide(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)) if fields != list(table.schema) else table


def _wide(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return pa.decimal128(*_DECIMALS)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _wide(field.type)) for field in kind])
    return pa.list_(_wide(kind.value_type)) if pa.types.is_list(kind) else kind


def _named(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
