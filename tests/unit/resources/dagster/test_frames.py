"""Frames that read rows when they are asked for some: queries give what they give over rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pyarrow as pa
import pytest

from resources.dagster.frames import ARROW_FRAMES

ROWS = pa.table({"a": list(range(20)), "b": [number % 3 for number in range(20)], "c": ["x"] * 20})
FIRST = pl.col("b") == 0
QUERIES: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "a limit below a filter": lambda rows: rows.head(5).filter(FIRST),
    "a limit below a filter, of other columns": lambda rows: rows.head(5).filter(FIRST).select("a"),
    "a part below a filter": lambda rows: rows.slice(3, 4).filter(FIRST),
    "a filter below a limit": lambda rows: rows.filter(FIRST).head(3),
    "a filter, of other columns": lambda rows: rows.filter(FIRST).select("a"),
    "no row": lambda rows: rows.head(0),
    "the last rows": lambda rows: rows.tail(3),
    "a count": lambda rows: rows.filter(FIRST).select(pl.len()),
    "numbers of rows": lambda rows: rows.with_row_index().filter(FIRST),
    "groups": lambda rows: rows.group_by("b").agg(pl.col("a").sum()).sort("b"),
}


def _read(columns: Sequence[str] | None) -> pa.RecordBatchReader:
    rows = ROWS if columns is None else ROWS.select(columns)
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=4))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_of_polars_gives_the_rows_that_a_query_asks_for(query: str, engine: str) -> None:
    (lazy_frame,) = (frame for frame in ARROW_FRAMES if frame.name == "polars.LazyFrame")
    rows, in_memory = lazy_frame.read(_read, "input"), pl.from_arrow(ROWS)
    assert isinstance(in_memory, pl.DataFrame)
    result = QUERIES[query](rows).collect(engine=engine)  # type: ignore[call-overload]
    assert result.equals(QUERIES[query](in_memory.lazy()).collect())
