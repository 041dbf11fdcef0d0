"""Rows of tables with widened columns, through Arrow: deltalake's queries do not know such tables, while its file lists and Arrow's reader do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, in_one_line
from partitions.predicate import Predicate
from resources.connections.places import Place
from resources.dialects.arrow import expression

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})


def needs_arrow(table: DeltaTable) -> bool:
    """Return whether columns of a table may have got wider types."""
    return bool(_WIDENING & set(table.protocol().reader_features or ()))


def holds_any(table: DeltaTable, place: Place, rows: Predicate) -> bool:
    """Return whether there is at least one of these rows."""
    try:
        found = _dataset(table)
        return bool(found.scanner(columns=[], filter=expression(rows, found.schema)).head(1).num_rows)
    except Exception as error:
        raise unreadable(place, error) from error


def highest_values(
    table: DeltaTable, place: Place, columns: Sequence[str], rows: Predicate
) -> dict[str, Any]:
    """Return the highest value of columns; None: no row has a value. Infinity and NaN are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        highest: dict[str, Any] = dict.fromkeys(columns)
        found = _dataset(table)
        condition = expression(rows, found.schema)
        for batch in found.scanner(columns=list(columns), filter=condition).to_batches():
            for name in columns:
                values = batch.column(name)
                if pa.types.is_floating(values.type):
                    values = values.filter(pc.less_equal(pc.abs(values), sys.float_info.max))
                value = pc.max(values).as_py() if len(values) else None
                if value is not None and (highest[name] is None or _above(value, highest[name])):
                    highest[name] = value
    except Exception as error:
        raise unreadable(place, error) from error
    return highest


def distinct(table: DeltaTable, place: Place, columns: Sequence[str], most: int) -> list[pa.RecordBatch]:
    """Return the distinct rows of columns, sorted by these, NULLs first; so many at most."""
    import pyarrow as pa

    try:
        found: pa.Table | None = None
        for batch in _dataset(table).scanner(columns=list(columns)).to_batches():
            both = pa.Table.from_batches([batch])
            both = both if found is None else pa.concat_tables([found, both])
            found = both.group_by(list(columns)).aggregate([]).select(list(columns))
            if found.num_rows > most:
                break
        if found is None:
            return []
        order = [(name, "ascending", "at_start") for name in columns]
        batches: list[pa.RecordBatch] = found.sort_by(order).slice(0, most).to_batches()
    except Exception as error:
        raise unreadable(place, error) from error
    return batches


def count(table: DeltaTable, place: Place, rows: Predicate) -> int:
    """Return the number of these rows."""
    try:
        found = _dataset(table)
        return int(found.count_rows(filter=expression(rows, found.schema)))
    except Exception as error:
        raise unreadable(place, error) from error


def unreadable(place: Place, error: Exception) -> SourceError:
    """Return the error for a table whose rows cannot be read."""
    why = in_one_line(str(error)) or type(error).__name__
    return SourceError(f"table {place}: cannot be read: {why}")


def _above(value: Any, other: Any) -> bool:
    """Compare two values; texts by their bytes."""
    if isinstance(value, str):
        return value.encode() > str(other).encode()
    return bool(value > other)


def _dataset(table: DeltaTable) -> ds.Dataset:
    """The rows of a version, whose files Arrow casts to the table's types.

    Of what the log says of a file only the values of its partitions count: deltalake takes a bound that is missing for NULL, and one of a long decimal may
    leave rows out.
    """
    import pyarrow.dataset as ds

    protocol = table.protocol()
    features = [name for name in protocol.reader_features or () if name not in _WIDENING]
    plain = copy(table)
    # Deltalake refuses the feature before it looks at the files, which it lists and reads like any others.
    setattr(plain, "protocol", lambda: protocol._replace(reader_features=features or None))  # noqa: B010 - a method of one object
    found = plain.to_pyarrow_dataset()
    partitions = table.metadata().partition_columns
    fragments = [_without_bounds(fragment, found, partitions) for fragment in found.get_fragments()]
    return ds.FileSystemDataset(fragments, found.schema, found.format, found.filesystem)


def _without_bounds(fragment: Any, found: ds.FileSystemDataset, partitions: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    values = ds.get_partition_keys(fragment.partition_expression)
    parts = [
        pc.field(name).is_null()
        if values.get(name) is None
        else pc.field(name) == pa.scalar(values[name], found.schema.field(name).type)
        for name in partitions
    ]
    where = reduce(lambda above, below: above & below, parts, pc.scalar(True))
    return found.format.make_fragment(fragment.path, filesystem=found.filesystem, partition_expression=where)
