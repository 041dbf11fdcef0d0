"""Iceberg tables as other writers see them: a catalog of the tests' own, in the same session or in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def foreign_table(spark: SparkSession, folder: Path) -> str:
    """The name in SQL of the table in a folder, in a catalog that Strandline does not know."""
    warehouse = folder.parent.parent
    catalog = f"foreign_{crc32(str(warehouse).encode()):08x}"
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": str(warehouse),
        ".cache-enabled": "false",
        ".hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        ".hadoop.fs.file.impl.disable.cache": "true",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
    return f"{catalog}.`{folder.parent.name}`.`{folder.name}`"
