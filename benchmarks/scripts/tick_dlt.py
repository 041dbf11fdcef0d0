"""Append new NDJSON files of a folder to a Delta table with dlt, incremental by modification date."""

import sys
from pathlib import Path

import dlt
from dlt.sources.filesystem import filesystem, read_jsonl

work = Path(sys.argv[1])
files = filesystem(bucket_url=(work / "landing").as_uri(), file_glob="**/*.ndjson")
files.apply_hints(incremental=dlt.sources.incremental("modification_date"))
pipeline = dlt.pipeline(
    "bench",
    pipelines_dir=str(work / "pipelines"),
    destination=dlt.destinations.filesystem(str(work / "lake")),
    dataset_name="bench",
)
pipeline.run((files | read_jsonl()).with_name("arrivals"), table_format="delta")
