"""Find which values of some columns the rows have that a commit added or removed, through Arrow alone.

The answer may have values of rows that did not change, never the other way round. It is exact if all
changed files can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from partitions.errors import SourceError
from partitions.target import RUN_COLUMNS
from resources.tables.contract.changed_file import CAME, CHANGE_TYPE, ChangedFile
from resources.tables.parquet.files import FileMoved, open_file, raising_read_errors

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_COMPARED_BYTES = 256 * 2**20
"""Above it the rows of changed files are not compared: all of their values count as changed."""
_MAX_NESTED_ROWS = 200_000
"""The most rows with nested columns that are compared."""
_BATCH_ROWS, _MINUTE = 2**17, 60_000
_MANY = 100_000
"""Above this number of different times, minutes are told apart, not milliseconds."""
_SIGN = "_strandline_sign"


class DistinctValues(NamedTuple):
    """Distinct rows of some columns.

    Attributes:
        rows: the rows; instants are in UTC, without a zone.
        step: the milliseconds to which the times of the first column are floored.
    """

    rows: pa.Table
    step: int


def changed_values(files: Sequence[ChangedFile], columns: Sequence[str]) -> DistinctValues | None:
    """Return the distinct values of columns in rows that one commit changed; None if nothing tells them.

    Times of the first column are floored to the millisecond, or to the minute if there are many.

    Args:
        files: the files that the commit added, removed, or gave other deletes.
        columns: names of the table's columns, the one with a row's time first.

    Raises:
        FileMoved: a file is missing.
        SourceError: a file cannot be read.
    """
    import pyarrow as pa

    if len({file.sign for file in files}) > 1 or any(file.sign == 0 for file in files):
        values = _net_values(files, columns)
        if values is not None:
            return _as_few(values)
    with suppress(pa.ArrowException):  # the files have a column in types that do not fit each other
        return _as_few(_distinct(_values_of(file, columns) for file in files))
    return None


def _as_few(values: pa.Table | None) -> DistinctValues | None:
    """Return values with times by the minute if they are many."""
    if values is None or values.num_rows <= _MANY:
        return None if values is None else DistinctValues(values, 1)
    floored = _floored(values, "minute")
    return DistinctValues(floored.group_by(floored.column_names).aggregate([]), _MINUTE)


def _net_values(files: Sequence[ChangedFile], columns: Sequence[str]) -> pa.Table | None:
    """Return the values of rows whose number a commit changed; None if the rows cannot be compared."""
    import pyarrow as pa

    if not all(file.is_exact for file in files) or sum(file.size for file in files) > _MAX_COMPARED_BYTES:
        return None
    try:
        return _net_of(pa.concat_tables(map(_signed_rows, files), promote_options="permissive"), columns)
    except FileMoved:
        raise
    except (pa.ArrowException, SourceError, TypeError, KeyError):
        return None


def _net_of(rows: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """Return the distinct values of columns in rows whose signs do not add up to zero."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = {name.casefold(): name for name in rows.column_names}
    valued = [names[column.casefold()] for column in columns]
    compared = [name for name in rows.column_names if name != _SIGN]
    keys = {f"k{number}": _exact(rows.column(name)) for number, name in enumerate(compared)}
    values = {f"v{number}": rows.column(name) for number, name in enumerate(valued)}
    groups = (
        pa.table({**keys, **values, _SIGN: rows.column(_SIGN)})
        .group_by(list(keys))
        .aggregate([(_SIGN, "sum"), *[(name, "one") for name in values]])
    )
    changed = groups.filter(pc.not_equal(groups.column(f"{_SIGN}_sum"), 0))
    selected = {column: changed.column(f"v{number}_one") for number, column in enumerate(columns)}
    return _distinct([pa.table(selected)] if changed.num_rows else [])


def _signed_rows(file: ChangedFile) -> pa.Table:
    """Return all rows of a file with 1 or -1, without the columns that are no difference."""
    import pyarrow as pa
    import pyarrow.compute as pc

    (rows,) = _read(file, None) or (None,)
    if rows is None:
        raise KeyError(file.path)
    if file.sign == 0:
        came = pc.is_in(rows.column(CHANGE_TYPE), pa.array(CAME))
        sign = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        rows = rows.drop_columns([CHANGE_TYPE])
    else:
        sign = pa.array([file.sign] * rows.num_rows, pa.int64())
    ignored = [name for name in rows.column_names if name.casefold() in RUN_COLUMNS]
    compared = rows.drop_columns(ignored)
    texts = {name: _as_text(compared.column(name)) for name in compared.column_names}
    return pa.table(texts).append_column(_SIGN, sign)


def _as_text(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return nested values as texts that are the same if and only if the values are."""
    import pyarrow as pa

    if not pa.types.is_nested(values.type):
        return values
    if len(values) > _MAX_NESTED_ROWS:
        raise TypeError(f"{len(values):,} rows of {values.type}")
    return pa.array(
        [None if value is None else repr(value) for value in values.to_pylist()], pa.large_string()
    )


def _plain(rows: pa.Table) -> pa.Table:
    """Return rows with one type for texts and one for bytes: writers have several."""
    import pyarrow as pa

    for index, field in enumerate(rows.schema):
        data_type = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(data_type) or pa.types.is_string_view(data_type):
            data_type = pa.large_string()
        elif pa.types.is_binary(data_type) or pa.types.is_binary_view(data_type):
            data_type = pa.large_binary()
        if data_type != field.type:
            rows = rows.set_column(index, field.name, rows.column(index).cast(data_type))
    return rows


def _exact(values: pa.ChunkedArray) -> pa.Array:
    """Return values that Arrow groups if and only if they are the same, bit by bit."""
    import pyarrow as pa

    data_type, whole = values.type, values.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], data_type)
    if pa.types.is_floating(data_type):
        return whole.view(pa.int64() if data_type == pa.float64() else pa.int32())
    return whole


def _values_of(file: ChangedFile, columns: Sequence[str]) -> pa.Table | None:
    """Return distinct values of columns in a file; None if the file lacks one."""
    batches = _read(file, columns)
    return None if batches is None else _distinct(batches)


def _read(file: ChangedFile, columns: Sequence[str] | None) -> list[pa.Table] | None:
    """Return the rows of a file that the table has, under the table's names; None if it lacks a column.

    Args:
        file: the file.
        columns: the columns to read, as distinct values; None: all columns, in one table.
    """
    import pyarrow as pa

    if not file.is_parquet:
        return None
    with raising_read_errors(file.place, file.path), open_file(file.place, file.path) as parquet:
        schema = parquet.schema_arrow
        names = file.names(schema)
        indexes = _indexes(names, columns, file)
        if indexes is None:
            return None
        deleted = frozenset(file.deleted()) if file.deleted else frozenset()
        if columns is None:
            named = {index: name for index, name in enumerate(names) if name is not None}
            rows = _without_deleted(_plain(parquet.read()), 0, deleted).select(list(named))
            return [_with_constants(rows.rename_columns(list(named.values())), file, None)]
        if not indexes:
            return [_with_constants(pa.table({_SIGN: [1]}), file, columns)]
        tables, position = list[pa.Table](), 0
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=[schema.names[index] for index in indexes]):
            rows = _without_deleted(_plain(pa.Table.from_batches([batch])), position, deleted)
            position += batch.num_rows
            rows = rows.rename_columns([names[schema.names.index(name)] for name in rows.column_names])
            if (values := _distinct([_with_constants(rows, file, columns)])) is not None:
                tables.append(values)
        return tables


def _indexes(
    names: Sequence[str | None], columns: Sequence[str] | None, file: ChangedFile
) -> list[int] | None:
    """Return the positions of columns in a file; None if it lacks one."""
    by_name = {name.casefold(): index for index, name in enumerate(names) if name is not None}
    constants = {name.casefold() for name in file.constants}
    missing = [name for name in columns or () if name.casefold() not in {*by_name, *constants}]
    if missing:
        return None
    return [by_name[name.casefold()] for name in columns or () if name.casefold() in by_name]


def _without_deleted(rows: pa.Table, position: int, deleted: frozenset[int]) -> pa.Table:
    """Return rows without the deleted ones; ``position`` is that of the first row in the file."""
    import numpy as np
    import pyarrow as pa

    indexes = [number - position for number in deleted if position <= number < position + rows.num_rows]
    if not indexes:
        return rows
    remaining = np.ones(rows.num_rows, dtype=bool)
    remaining[indexes] = False
    return rows.filter(pa.array(remaining))


def _with_constants(rows: pa.Table, file: ChangedFile, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa

    existing = {name.casefold(): name for name in rows.column_names}
    for name, value in file.constants.items():
        if name.casefold() not in existing and (columns is None or name in columns):
            rows = rows.append_column(name, pa.array([value] * rows.num_rows))
    if columns is None:
        return rows
    existing = {name.casefold(): name for name in rows.column_names}
    return rows.select([existing[name.casefold()] for name in columns]).rename_columns(list(columns))


def _distinct(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    """Return the distinct rows of tables, the first column by the millisecond; None if a table is None."""
    import pyarrow as pa

    parts = list[pa.Table]()
    for table in tables:
        if table is None:
            return None
        parts.append(_floored(_in_utc(table), "millisecond"))
    if not parts:
        return pa.table({})
    rows = pa.concat_tables(parts, promote_options="permissive")
    return rows.group_by(rows.column_names).aggregate([]) if rows.num_columns else rows


def _in_utc(rows: pa.Table) -> pa.Table:
    """Return rows with times by the microsecond, as Spark has them, and instants in UTC without a zone."""
    import pyarrow as pa

    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            local = rows.column(index).cast(pa.timestamp(field.type.unit))  # the instant in UTC
            rows = rows.set_column(index, field.name, local.cast(pa.timestamp("us"), safe=False))
    return rows


def _floored(rows: pa.Table, unit: str) -> pa.Table:
    """Return rows with the times of the first column floored; those of others may tell a unit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not rows.num_columns or not pa.types.is_timestamp(rows.schema.field(0).type):
        return rows
    return rows.set_column(0, rows.column_names[0], pc.floor_temporal(rows.column(0), unit=unit))
