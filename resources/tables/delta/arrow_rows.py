"""Read rows of tables with widened columns through Arrow.

deltalake refuses to query such tables, but it lists their files, and Arrow reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, shorten_to_line
from partitions.predicate import Predicate
from resources.connections.places import Place
from resources.dialects.arrow import arrow_expression
from resources.tables.text_counts import count_texts

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})


def needs_arrow(table: DeltaTable) -> bool:
    """Return whether a table may have widened columns."""
    return bool(_WIDENING & set(table.protocol().reader_features or ()))


def holds_any(table: DeltaTable, place: Place, rows: Predicate) -> bool:
    """Return whether a table has a row that meets a condition."""
    try:
        dataset = _dataset(table)
        return bool(
            dataset.scanner(columns=[], filter=arrow_expression(rows, dataset.schema)).head(1).num_rows
        )
    except Exception as error:
        raise unreadable_error(place, error) from error


def first_rows(table: DeltaTable, place: Place, limit: int, rows: Predicate) -> pa.Table:
    """Return at most ``limit`` rows that meet a condition."""
    try:
        dataset = _dataset(table)
        return dataset.scanner(filter=arrow_expression(rows, dataset.schema)).head(limit)
    except Exception as error:
        raise unreadable_error(place, error) from error


def select_rows(
    table: DeltaTable, place: Place, rows: Predicate, columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Return columns of the rows that meet a condition."""
    import pyarrow as pa

    with raising_unreadable(place):
        dataset = _dataset(table)
        condition = arrow_expression(rows, dataset.schema)
        batches = dataset.scanner(columns=list(columns), filter=condition).to_batches()
    return reader_of(place, pa.schema([dataset.schema.field(name) for name in columns]), batches)


def reader_of(place: Place, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Return batches as a reader that raises SourceError at a batch that cannot be read."""
    import pyarrow as pa

    def read() -> Iterator[pa.RecordBatch]:
        with raising_unreadable(place):
            yield from batches

    return pa.RecordBatchReader.from_batches(schema, read())


@contextmanager
def raising_unreadable(place: Place) -> Iterator[None]:
    """Turn errors of a read within the context into a SourceError."""
    try:
        yield
    except Exception as error:
        raise unreadable_error(place, error) from error


def highest_values(
    table: DeltaTable, place: Place, columns: Sequence[str], rows: Predicate
) -> dict[str, Any]:
    """Return the highest value of each column; None if no row has a value. Infinity and NaN do not count."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        highest: dict[str, Any] = dict.fromkeys(columns)
        dataset = _dataset(table)
        condition = arrow_expression(rows, dataset.schema)
        for batch in dataset.scanner(columns=list(columns), filter=condition).to_batches():
            for name in columns:
                values = batch.column(name)
                if pa.types.is_floating(values.type):
                    values = values.filter(pc.less_equal(pc.abs(values), sys.float_info.max))
                value = pc.max(values).as_py() if len(values) else None
                if value is not None and (highest[name] is None or _is_higher(value, highest[name])):
                    highest[name] = value
    except Exception as error:
        raise unreadable_error(place, error) from error
    return highest


def distinct_values(
    table: DeltaTable, place: Place, columns: Sequence[str], max_rows: int
) -> list[pa.RecordBatch]:
    """Return at most ``max_rows`` distinct rows of columns, sorted by them, NULLs first."""
    import pyarrow as pa

    try:
        distinct_table: pa.Table | None = None
        for batch in _dataset(table).scanner(columns=list(columns)).to_batches():
            unmerged_values = pa.Table.from_batches([batch])
            unmerged_values = (
                unmerged_values
                if distinct_table is None
                else pa.concat_tables([distinct_table, unmerged_values])
            )
            distinct_table = unmerged_values.group_by(list(columns)).aggregate([]).select(list(columns))
            if distinct_table.num_rows > max_rows:
                break
        if distinct_table is None:
            return []
        order = [(name, "ascending", "at_start") for name in columns]
        batches: list[pa.RecordBatch] = distinct_table.sort_by(order).slice(0, max_rows).to_batches()
    except Exception as error:
        raise unreadable_error(place, error) from error
    return batches


def text_counts(table: DeltaTable, place: Place, column: str, rows: Predicate) -> pa.Table:
    """Return each text of a column with its number of rows that meet a condition."""
    try:
        dataset = _dataset(table)
        condition = arrow_expression(rows, dataset.schema)
        return count_texts(dataset.scanner(columns=[column], filter=condition).to_batches(), column)
    except Exception as error:
        raise unreadable_error(place, error) from error


def count(table: DeltaTable, place: Place, rows: Predicate) -> int:
    """Return the number of rows that meet a condition."""
    try:
        dataset = _dataset(table)
        return int(dataset.count_rows(filter=arrow_expression(rows, dataset.schema)))
    except Exception as error:
        raise unreadable_error(place, error) from error


def unreadable_error(place: Place, error: Exception) -> SourceError:
    """Return the error for a table whose rows cannot be read."""
    reason = shorten_to_line(str(error)) or type(error).__name__
    return SourceError(f"table {place}: cannot be read: {reason}")


def _is_higher(first_value: Any, second_value: Any) -> bool:
    """Return whether the first value is higher; texts compare by bytes."""
    if isinstance(first_value, str):
        return first_value.encode() > str(second_value).encode()
    return bool(first_value > second_value)


def _dataset(table: DeltaTable) -> ds.Dataset:
    """Return the rows of a version as a dataset whose files Arrow casts to the table's types.

    Only the partition values are taken from the log: deltalake reads a missing bound as NULL, and the
    bound of a long decimal may leave rows out.
    """
    import pyarrow.dataset as ds

    protocol = table.protocol()
    features = [name for name in protocol.reader_features or () if name not in _WIDENING]
    readable_table = copy(table)
    # deltalake refuses the feature by its name, though it lists and reads the files like any others.
    setattr(readable_table, "protocol", lambda: protocol._replace(reader_features=features or None))  # noqa: B010 - a method of one object
    # Spark's default type of times counts nanoseconds, which end in 2262.
    in_microseconds = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    dataset = readable_table.to_pyarrow_dataset(parquet_read_options=in_microseconds)
    partitions = table.metadata().partition_columns
    fragments = [_without_bounds(fragment, dataset, partitions) for fragment in dataset.get_fragments()]
    return ds.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)


def _without_bounds(fragment: Any, dataset: ds.FileSystemDataset, partitions: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    values = ds.get_partition_keys(fragment.partition_expression)
    conditions = [
        pc.field(name).is_null()
        if values.get(name) is None
        else pc.field(name) == pa.scalar(values[name], dataset.schema.field(name).type)
        for name in partitions
    ]
    partition_condition = reduce(lambda above, below: above & below, conditions, pc.scalar(True))
    return dataset.format.make_fragment(
        fragment.path, filesystem=dataset.filesystem, partition_expression=partition_condition
    )
