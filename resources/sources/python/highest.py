"""The highest value of a column, in Arrow rows or from the user's function ``highest``.

See docs/reference/python-functions.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.predicate import NOTHING
from partitions.sources import PythonSource
from partitions.unit_values import fit_value
from partitions.watermark import compare_values
from resources.sources.python.call import FunctionCaller
from resources.sources.python.schema import FunctionSchema
from resources.sources.python.values import of_python, own_array

if TYPE_CHECKING:
    import pyarrow as pa


def higher(highest: Any, table: pa.Table, column: str) -> Any:
    """Return the highest of a value and a column's values; NULL, infinity and NaN are ignored."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.column(column)
    if pa.types.is_floating(values.type):
        values = values.filter(pc.is_finite(values))
    value = pc.max(values).as_py() if len(values) else None
    if value is None or highest is None:
        return highest if value is None else value
    return value if compare_values(value, highest) > 0 else highest


def call_highest(
    caller: FunctionCaller, dataflow: Dataflow, source: PythonSource, schema: FunctionSchema, column: str
) -> Any:
    """Return a column's highest value from the function ``highest``; None if it returns none.

    Args:
        caller: the function's caller.
        dataflow: the definition.
        source: the source's definition.
        schema: the rows' schema; the value gets the column's type.
        column: the watermark's column.

    Raises:
        SourceError: the function fails, or returns no value of the column.
    """
    import pyarrow as pa

    highest, zone_name = caller.highest(caller.request(), column), schema.zone_name
    kind = schema.declared.get(column)
    try:
        type_ = schema.type_of(column, NOTHING)
        array = own_array([highest], zone_name) if type_ is None else of_python([highest], type_, zone_name)
        value = array[0].as_py()
        return value if kind is None else fit_value(value, kind, dataflow.zone)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise SourceError(
            f"dataflow {dataflow.name}: function {source.highest}: expected the highest value of {column}, or None: {error}",
            code="function_yield",
        ) from None
