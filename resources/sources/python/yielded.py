"""What a function yields or returns, in batches: Arrow, frames of pandas and Polars, dict rows.

See docs/reference/python-functions.md, What it yields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import isasyncgen, isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from resources.sources.python.arrow_types import widen_decimals
from resources.sources.python.values import own_array

if TYPE_CHECKING:
    import pyarrow as pa


class _Frame(Protocol):
    """A frame that hands over its columns in Arrow's form: of pyarrow, pandas, Polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class _RecordBatch(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> object: ...


class _Lazy(Protocol):
    """A frame that is made when it is needed."""

    @property
    def collect(self) -> Callable[..., Any]: ...


class _Dataset(Protocol):
    @property
    def to_batches(self) -> Callable[..., Iterable[Any]]: ...


Batch: TypeAlias = _Frame | _RecordBatch | _Lazy | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What a function yields, for type checkers; :func:`raw_batches` decides."""

Rows: TypeAlias = Batch | _Dataset | Iterable[Batch]
"""What a function returns."""

MAX_ROWS = 1_000
"""The most dict rows of one batch: a look that ends at the first row asks for no more of those that are yielded one by one."""

_ACCEPTED = "Arrow tables or record batches, frames of pandas or Polars, dict rows or lists of them"

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
    rows: list[Mapping[str, Any]] = []
    for batch in _iterable(yielded):
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


def _iterable(yielded: Any) -> Iterable[Any]:
    """Return the batches of what a function returned, as they come.

    Raises:
        InvalidYield: it is no rows.
    """
    if _is_of(yielded, "pyarrow._dataset", "Dataset"):
        batches: Iterable[Any] = yielded.to_batches()
        return batches
    if isinstance(yielded, Mapping) or (table := _arrow(yielded)) is not None:
        return [yielded if isinstance(yielded, Mapping) else table]
    if isinstance(yielded, Iterable) and not isinstance(yielded, str | bytes):
        return yielded
    raise InvalidYield(f"expected {_ACCEPTED}, found {_qualified_type(yielded)}{_remedy(yielded)}")


def _remedy(yielded: Any) -> str:
    """Return what to do about a value that is no rows, after a stop; empty if the types say all."""
    if not (isawaitable(yielded) or isasyncgen(yielded)):
        return ""
    if iscoroutine(yielded):
        yielded.close()  # or Python warns that nobody awaited it
    return ". Nothing awaits an async function: call asyncio.run in a plain one"


def _is_of(value: object, module: str, name: str) -> bool:
    """Return whether a value has a type of a library, which need not be imported, or one derived from it."""
    return any((base.__module__, base.__qualname__) == (module, name) for base in type(value).__mro__)


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
    if _is_of(yielded, "polars.lazyframe.frame", "LazyFrame"):
        yielded = yielded.collect(engine="streaming")
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
            arrays.append(array.cast(widen_decimals(array.type)))
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
    raise InvalidYield(f"expected {_ACCEPTED}, found {_qualified_type(yielded)}{_remedy(yielded)}")


def _split_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[Raw]:
    for first in range(0, len(rows), MAX_ROWS):
        yield rows[first : first + MAX_ROWS]


def _qualified_type(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
