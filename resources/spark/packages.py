"""The jars that a Spark Connect server needs, and which of them it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from resources.spark.engine import SparkEngine
from resources.spark.log_store import log_store_settings
from resources.spark.settings import TIME_ZONE
from resources.spark_runtime import (
    AVRO_PACKAGE,
    COMMITTERS_PACKAGE,
    DELTA_PACKAGE,
    HADOOP_AWS_PACKAGE,
    ICEBERG_PACKAGE,
    MARIADB_PACKAGE,
    PACKAGES_KEY,
    POSTGRESQL_PACKAGE,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS_OF_PACKAGE: Mapping[str, str] = {
    DELTA_PACKAGE: "io.delta.sql.DeltaSparkSessionExtension",
    ICEBERG_PACKAGE: "org.apache.iceberg.spark.SparkCatalog",
    HADOOP_AWS_PACKAGE: "org.apache.hadoop.fs.s3a.S3AFileSystem",
    COMMITTERS_PACKAGE: "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    POSTGRESQL_PACKAGE: "org.postgresql.Driver",
    MARIADB_PACKAGE: "org.mariadb.jdbc.Driver",
    AVRO_PACKAGE: "org.apache.spark.sql.v2.avro.AvroDataSourceV2",
}
"""A class of each package, by which a running Spark tells whether it has the package."""

_SERVER_SETTINGS = (
    "spark.jars.packages",
    "spark.jars.excludes",
    "spark.jars",
    PACKAGES_KEY,
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.codegen.cache.maxEntries",
    TIME_ZONE,
)


def server_settings(engine: SparkEngine) -> dict[str, str]:
    """Return the settings that a Connect server must be started with, by their names.

    Addresses and credentials of buckets are not among them.

    Args:
        engine: an engine for all places and formats that sessions of the server will read and write.
    """
    settings = SparkEngine(
        places=engine.places,
        drivers=engine.drivers,
        shared=engine.shared,
        conf={key: value for key, value in engine.conf.items() if key == "spark.jars.packages"},
    ).settings()
    log_store = log_store_settings(engine.conf) if engine.commits_to_s3 else {}
    return {key: settings[key] for key in _SERVER_SETTINGS if key in settings} | log_store


def missing_packages(session: SparkSession, packages: Sequence[str]) -> list[str]:
    """Return the packages whose classes a running Spark lacks.

    Only packages of ``CLASS_OF_PACKAGE`` are looked for. It does not matter how their jars came: as packages, as files, or in Spark's own folder.
    """
    known_packages = [package for package in packages if package in CLASS_OF_PACKAGE]
    # Spark's own lookup, which sees the jars that were added to a server; NULL if there is no such class
    lookups = ", ".join(
        f"try_reflect('org.apache.spark.util.Utils', 'classForName', '{CLASS_OF_PACKAGE[package]}', false, false)"
        for package in known_packages
    )
    (answers,) = session.sql(f"SELECT {lookups}").collect()
    return [package for package, answer in zip(known_packages, answers, strict=True) if answer is None]


def as_properties(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a file for ``spark-submit --properties-file``."""
    return "".join(f"{key} {value}\n" for key, value in settings.items())
