"""The packages that a running Spark has, told by a class of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from resources.spark_runtime import (
    AVRO_PACKAGE,
    COMMITTERS_PACKAGE,
    DELTA_PACKAGE,
    HADOOP_AWS_PACKAGE,
    ICEBERG_PACKAGE,
    MARIADB_PACKAGE,
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


def missing_packages(session: SparkSession, packages: Sequence[str]) -> list[str]:
    """Return the packages whose classes a running Spark lacks.

    Only packages of ``CLASS_OF_PACKAGE`` are looked for. It does not matter how their jars came: as packages, as files, or in Spark's own folder.
    """
    classes = {package: CLASS_OF_PACKAGE[package] for package in packages if package in CLASS_OF_PACKAGE}
    missing = set(missing_classes(session, list(classes.values())))
    return [package for package, class_name in classes.items() if class_name in missing]


def missing_classes(session: SparkSession, classes: Sequence[str]) -> list[str]:
    """Return the Java classes that a running Spark lacks."""
    # Spark's own lookup, which sees the jars that were added to a server; NULL if there is no such class
    lookups = ", ".join(
        f"try_reflect('org.apache.spark.util.Utils', 'classForName', '{class_name}', false, false)"
        for class_name in classes
    )
    (answers,) = session.sql(f"SELECT {lookups}").collect()
    return [class_name for class_name, answer in zip(classes, answers, strict=True) if answer is None]
