"""Count the rows of each text of a column, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_PER_MERGE = 1_000_000
"""Number of unmerged rows after which counts are merged."""


def no_texts() -> pa.Table:
    """Return the counts of no text: the columns ``text`` and ``rows`` without a row."""
    import pyarrow as pa

    return pa.table({"text": pa.array([], pa.string()), "rows": pa.array([], pa.int64())})


def count_texts(batches: Iterable[pa.RecordBatch | pa.Table], column: str) -> pa.Table:
    """Return each text of a column with its number of rows, as the columns ``text`` and ``rows``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts, waiting = [no_texts()], 0
    for batch in batches:
        texts = pc.drop_null(pc.cast(batch.column(column), pa.string()))
        parts.append(pa.table({"text": texts, "rows": pa.repeat(pa.scalar(1, pa.int64()), len(texts))}))
        waiting += len(texts)
        if waiting >= _ROWS_PER_MERGE:
            parts, waiting = [_merge(parts)], 0
    return _merge(parts)


def _merge(parts: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    summed = pa.concat_tables(parts).group_by("text").aggregate([("rows", "sum")])
    return pa.table({"text": summed["text"], "rows": summed["rows_sum"]})
