"""Rows of a query as Arrow tables of texts, a few megabytes each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_BYTES = 4 * 2**20
_ROWS = 10_000


def tables_of_csv(lines: Iterable[Any], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of PostgreSQL's COPY in CSV, none of whose values is NULL.

    Args:
        lines: buffers with whole rows; the server sends one for each row.
        names: names of the columns.
    """
    block, size = list[Any](), 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= _BYTES:
            yield _of_csv(b"".join(block), names)
            block, size = [], 0
    if block:
        yield _of_csv(b"".join(block), names)


def tables_of_rows(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows of a driver's cursor, none of whose values is NULL."""
    import pyarrow as pa

    iterator = iter(rows)
    while chunk := list(islice(iterator, _ROWS)):
        columns = [pa.array(map(str, values), "string") for values in zip(*chunk, strict=True)]
        yield pa.table(columns, names=list(names))


def _of_csv(block: bytes, names: Sequence[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        pa.py_buffer(block),
        csv.ReadOptions(column_names=list(names), use_threads=False, block_size=len(block)),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )
