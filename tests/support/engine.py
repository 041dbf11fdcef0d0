"""One warm Spark for the whole test run: a Connect server that the tests' own process and their children share.

A process is either remote or embedded (pyspark marks it by an environment variable), so this process only ever connects;
embedded Spark is tested in processes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platform_assets.platform import CACHE
from resources.connect_server import connect_server
from resources.spark import SparkEngine

QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a JVM that lives for minutes and has two cores."""


@contextmanager
def warm(folder: Path) -> Iterator[SparkEngine]:
    """Start a server, and give an engine that connects to it."""
    server = SparkEngine(master="local[2]", conf=QUICK, cache=CACHE)
    with connect_server(server, folder / "connect.log") as url:
        yield SparkEngine(remote=url)
