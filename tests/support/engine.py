"""One warm Spark for the whole test run: a Connect server shared by the tests and their children.

A process is either remote or embedded (pyspark marks it by an environment variable), so this process only
ever connects;
embedded Spark is tested in processes of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platform_assets.installation import cache_folder
from platform_assets.project.project import SPARK_REMOTE
from resources.connections.places import Place
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.spark_runtime import AVRO_PACKAGE, ICEBERG_PACKAGE, MARIADB_PACKAGE, POSTGRESQL_PACKAGE

QUICK = {
    # For a JVM that lives for minutes, on two cores, and handles a few rows at a time: half the time of a commit goes
    # into compiling plans that run once. With one compiler Java would keep room for 48 MB of code, which thousands of sessions fill.
    # What a test leaves is collected in few large steps.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -Xmn1200m",
    "spark.driver.memory": "3g",
    # The state of a table of five files is one task's work, and Delta makes it anew for each of its commits.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Two processes of tests share it: one that waits in a write must not make the other wait, and each sees as many tasks as on two cores.
    "spark.default.parallelism": "2",
    # Each run of a test has a session of its own, and nobody looks at what it did.
    "spark.connect.session.manager.defaultSessionTimeout": "10m",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
}


@contextmanager
def spark_server(folder: Path) -> Iterator[str]:
    """Yield a server's address: STRANDLINE_SPARK_REMOTE, or a server that lives inside the block."""
    if running := os.environ.get(SPARK_REMOTE):
        yield running
        return
    spark = SparkEngine(
        master="local[4]",
        conf=QUICK,
        cache=cache_folder(),
        places=(Place("s3://any"),),
        drivers=(POSTGRESQL_PACKAGE, MARIADB_PACKAGE, AVRO_PACKAGE, ICEBERG_PACKAGE),
    )
    # The first time, S3A's jars are fetched: 640 MB.
    with connect_server(spark, folder / "connect.log", patience=600) as url:
        yield url
