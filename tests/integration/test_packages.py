"""``strandline packages``: a Connect server that is started with its settings has all that a project needs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from platform_assets.installation import cache_folder
from resources.spark.connect_server import connect_server, free_port
from resources.spark.engine import SparkEngine
from resources.spark.loaded_packages import CLASS_OF_PACKAGE
from resources.spark.packages import server_settings
from resources.spark.processes import start_process, stop_processes
from resources.spark_runtime import (
    DELTA_PACKAGE,
    ICEBERG_PACKAGE,
    JAR_EXCLUDES,
    java_environment,
    spark_home,
)
from tests.support.feed import NAME, Feed
from tests.support.ready import wait_until_ready


@pytest.mark.full
@pytest.mark.remedy("configuration", "packages")
def test_doctor_names_jars_that_a_server_lacks_and_packages_brings_them(tmp_path: Path) -> None:
    with connect_server(SparkEngine(cache=cache_folder()), tmp_path / "bare.log") as bare:
        feed = Feed(tmp_path / "project", SparkEngine(remote=bare), {"target": {"format": "iceberg"}})
        answer = feed.cli("doctor")
        (jars,) = [check for check in answer.json["checks"] if check["check"] == "jars"]
        assert (answer.code, jars["ok"], jars["todo"]) == (1, False, "strandline packages")
        assert f"it lacks {ICEBERG_PACKAGE}." in jars["found"]
    settings = tmp_path / "spark.conf"
    settings.write_text(feed.text("packages"))
    with _server_of(settings, tmp_path / "server.log") as remote:
        feed.engine = SparkEngine(remote=remote)
        feed.put("1.ndjson", 1, 2)
        assert feed.command("doctor").code == 0
        assert feed.command("run", NAME).code == 0
        assert sorted(row["id"] for row in feed.command("show", NAME).json["rows"]) == [1, 2]


def test_each_package_has_a_class_to_tell_it_by() -> None:
    import resources.spark_runtime as runtime

    coordinates = {value for name, value in vars(runtime).items() if name.endswith("_PACKAGE")}
    assert set(CLASS_OF_PACKAGE) == coordinates


def test_the_settings_of_a_server_name_all_jars_and_what_must_not_come_with_them() -> None:
    settings = server_settings(SparkEngine(drivers=(ICEBERG_PACKAGE,)))
    assert settings["spark.jars.packages"].split(",") == [DELTA_PACKAGE, ICEBERG_PACKAGE]
    assert settings["spark.jars.excludes"].split(",") == list(JAR_EXCLUDES)
    assert "IcebergSparkSessionExtensions" in settings["spark.sql.extensions"]


@contextmanager
def _server_of(settings: Path, log: Path) -> Iterator[str]:
    """Start a server with spark-submit and a file of settings, as deploy/README.md shows it."""
    port = free_port()
    command = [
        str(spark_home() / "bin" / "spark-submit"),
        *("--properties-file", str(settings)),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        "spark-internal",
    ]
    process = start_process(command, log, os.environ | {"SPARK_HOME": str(spark_home())} | java_environment())

    def accepts() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        wait_until_ready(accepts, process, log, 240)
        yield f"sc://127.0.0.1:{port}"
    finally:
        stop_processes([process])
