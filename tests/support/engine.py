"""One warm Spark for the whole test run: a Connect server that the tests' own process and its children share.

A process is either remote or embedded (pyspark marks it by an environment variable), so this process only ever connects;
embedded Spark is tested in processes of its own.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platform_assets.platform import CACHE
from platform_assets.project.project import SPARK_REMOTE
from resources.connect_server import connect_server
from resources.spark import SparkEngine
from resources.spark_runtime import POSTGRESQL_PACKAGE

QUICK = {
    # For a JVM that lives for minutes, on two cores, and handles a few rows at a time: half the time of a commit goes
    # into compiling plans that run once.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def warm(folder: Path) -> Iterator[SparkEngine]:
    """An engine that connects to a server: to that of STRANDLINE_SPARK_REMOTE, or to one that lives as long as the block."""
    if running := os.environ.get(SPARK_REMOTE):
        yield SparkEngine(remote=running)
        return
    server = SparkEngine(master="local[2]", conf=QUICK, cache=CACHE, drivers=(POSTGRESQL_PACKAGE,))
    with connect_server(server, folder / "connect.log") as url:
        try:
            yield SparkEngine(remote=url)
        finally:
            _disconnect()


def _disconnect() -> None:
    """At exit pyspark has a question for the server of every session that is open, and asks one that is gone for ten minutes."""
    from pyspark.sql.connect.client import SparkConnectClient

    for client in [one for one in gc.get_objects() if type(one) is SparkConnectClient]:
        client.close()
