"""Replace the days in one commit with bare Spark; print the seconds beyond the start of Spark."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from platform_assets.installation import cache_folder
from resources.spark.engine import SparkEngine

spark = SparkEngine(master="local[2]", cache=cache_folder()).session()
days = "at >= '2024-01-01T00:00:00Z' AND at < '2024-04-10T00:00:00Z'"


def load() -> None:
    frame = spark.read.format("delta").load(f"{sys.argv[1]}/lake/raw/events").where(days)
    frame.write.format("delta").mode("overwrite").option("replaceWhere", days).save(f"{sys.argv[2]}/table")


load()
before = time.monotonic()
load()
print(json.dumps({"seconds": time.monotonic() - before}))
