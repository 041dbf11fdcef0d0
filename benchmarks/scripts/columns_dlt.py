"""Loads a table of PostgreSQL into Delta with dlt's sql_database, incremental by ``at``.

Prints the seconds beyond imports, and the rows.
"""

import json
import sys
import time
from datetime import datetime
from pathlib import Path

import dlt
from dlt.sources.sql_database import sql_table

folder = Path(sys.argv[1])
started = time.monotonic()
orders = sql_table(
    credentials=sys.argv[2],
    table="orders",
    backend="pyarrow",
    chunk_size=50_000,
    incremental=dlt.sources.incremental(
        "at", initial_value=datetime.fromisoformat(sys.argv[3]), range_start="open"
    ),
)
pipeline = dlt.pipeline(
    "columns",
    pipelines_dir=str(folder / "pipelines"),
    destination=dlt.destinations.filesystem(str(folder / "lake")),
    dataset_name="bench",
)
pipeline.run(orders, table_format="delta", write_disposition="append")
seconds = time.monotonic() - started
trace = pipeline.last_trace
assert trace is not None
assert trace.last_normalize_info is not None
counts = trace.last_normalize_info.row_counts
print(json.dumps({"seconds": seconds, "rows": counts.get("orders", 0)}))
