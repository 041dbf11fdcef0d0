"""Reads one given file with bare Spark and appends it to a Delta table.

Prints the seconds beyond imports.
"""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from platform_assets.installation import cache_folder
from resources.spark.engine import SparkEngine

path, table, remote, mode = sys.argv[1:5]
if remote:
    import pyspark.sql.connect.session  # noqa: F401 - imports are not measured
    from pyspark.sql import SparkSession

    before = time.monotonic()
    spark = SparkSession.builder.remote(remote).create()
elif mode == "archive":
    before = time.monotonic()
    spark = SparkEngine(master="local[2]", cache=cache_folder()).session()
else:
    # As a user writes it: coordinates of the jar, no part of Strandline.
    os.environ["SPARK_SUBMIT_OPTS"] = ""
    from pyspark.sql import SparkSession

    before = time.monotonic()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", "io.delta:delta-spark_4.1_2.13:4.4.0")
        .config(
            "spark.jars.excludes",
            "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime",
        )
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
writer = spark.read.schema("id long, at timestamp, name string, value double").json(path).write
writer = writer.format("delta").mode("append")
if mode == "tagged":  # the tag that keeps a repeated write from landing twice
    writer = writer.option("txnAppId", "bare").option("txnVersion", time.time_ns())
writer.save(table)
print(json.dumps({"seconds": time.monotonic() - before}))
