"""A real REST catalog of Iceberg tables: Iceberg's own test server, over SQLite, as a process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.places import Place
from resources.spark.connect_server import free_port
from resources.spark.processes import stop_processes
from resources.spark_runtime import find_java, spark_jars
from scripts.jars import class_path
from tests.support.ready import answers, wait_until_ready

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READY_SECONDS = 120
_ICEBERG = "1.10.0"
"""The newest whose fixtures are published."""
SERVER = (
    f"org.apache.iceberg:iceberg-open-api:{_ICEBERG}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{_ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{_ICEBERG}:tests",
    "org.eclipse.jetty:jetty-servlet:11.0.26",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)


@contextmanager
def rest_catalog(
    folder: Path, place: Place | None = None, spark: SparkSession | None = None
) -> Iterator[RestCatalogServer]:
    """Run a server that keeps its catalog in a folder.

    Args:
        folder: an empty folder.
        place: the bucket of the tables; None: local folders.
        spark: a session with S3A's jars, which the server uses, too.
    """
    port, log = free_port(), folder / "server.log"
    (folder / "core-site.xml").write_text(_site(place))
    process = subprocess.Popen(
        _command(folder, _jars_of_s3(spark) if spark else []),
        env=os.environ | _settings(folder, port),
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        server = RestCatalogServer(f"http://127.0.0.1:{port}")
        wait_until_ready(lambda: answers(f"{server.uri}/v1/config"), process, log, _READY_SECONDS)
        yield server
    finally:
        stop_processes([process])


def _command(folder: Path, more: list[Path]) -> list[str]:
    java, jars = find_java(), spark_jars()
    assert java is not None
    assert jars is not None
    # The fixtures hold an older S3A: ours comes first.
    files = [folder, *more, *jars.glob("hadoop-client-*.jar"), *class_path(SERVER)]
    files += [*jars.glob("commons-*.jar"), *jars.glob("jcl-over-slf4j-*.jar"), *jars.glob("slf4j-api-*.jar")]
    return [
        str(java.home / "bin" / "java"),
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xmx256m",
        "-cp",
        os.pathsep.join(map(str, files)),
        "org.apache.iceberg.rest.RESTCatalogServer",
    ]


def _jars_of_s3(spark: SparkSession) -> list[Path]:
    files = [Path(unquote(urlsplit(file).path)) for file in (spark.conf.get("spark.jars") or "").split(",")]
    return [file for file in files if "hadoop-aws" in file.name or "awssdk" in file.name]


def _settings(folder: Path, port: int) -> dict[str, str]:
    """Return the server's environment: ``_`` stands for a dot, ``__`` for a hyphen."""
    return {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:{folder / 'catalog.db'}",
        "CATALOG_CLIENTS": "1",
        "CATALOG_WAREHOUSE": str(folder / "unused"),
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
    }


def _site(place: Place | None) -> str:
    settings = {
        "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        **(place.spark_conf if place else {}),
    }
    named = (
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    return f"<configuration>{''.join(named)}</configuration>"
