"""Convert the batches that a function yields to Arrow tables of one schema.

See docs/reference/python-functions.md, What it yields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from partitions.errors import SchemaError
from resources.sources.python.arrow_ddl import type_words
from resources.sources.python.arrow_types import column_type, widen_decimals
from resources.sources.python.values import of_arrow, of_python, own_array
from resources.sources.python.yielded import InvalidYield, Raw

if TYPE_CHECKING:
    import pyarrow as pa


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
            f"column {field.name}: expected values of type {type_words(field.type)}, found others: {error}",
            reason="incompatible_schema",
            field=field.name,
        ) from None


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

    fields = [pa.field(field.name, widen_decimals(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)) if fields != list(table.schema) else table
