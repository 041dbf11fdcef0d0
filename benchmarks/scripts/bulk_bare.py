"""Load the files with bare Spark from a given list; print the seconds beyond the start of Spark."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from platform_assets.installation import cache_folder
from resources.spark.engine import SparkEngine

spark = SparkEngine(master="local[2]", cache=cache_folder()).session()
spark.range(1).collect()
before = time.monotonic()
files = [str(path) for path in sorted(Path(sys.argv[1]).rglob("*.ndjson"))]
frame = (
    spark.read.schema("id long, at timestamp, name string, value double, date string")
    .option("basePath", sys.argv[1])
    .json(files)
)
frame.write.format("delta").mode("append").save(f"{sys.argv[2]}/table")
seconds = time.monotonic() - before
print(json.dumps({"seconds": seconds, "files": len(files)}))
