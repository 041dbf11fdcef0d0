"""Iceberg tables as other writers see them: a catalog of the tests' own, in any session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable
    from pyspark.sql import SparkSession


def foreign_table(spark: SparkSession, folder: Path) -> str:
    """Return the SQL name of the table in a folder, in a catalog that Strandline does not know."""
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


def iceberg_rows(folder: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return these columns of all rows, as pyiceberg reads them."""
    rows: list[dict[str, Any]] = (
        newest_table(folder).scan(selected_fields=tuple(columns)).to_arrow().to_pylist()
    )
    return rows


def iceberg_history(folder: Path, columns: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return these columns of all rows, for each snapshot that was once the newest, oldest first."""
    table = newest_table(folder)
    return [
        table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(columns)).to_arrow().to_pylist()
        for snapshot in table.history()
    ]


def newest_table(folder: Path) -> StaticTable:
    """Return the table as its newest metadata has it."""
    from pyiceberg.table import StaticTable

    newest = max(
        (folder / "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name[1:].partition(".")[0])
    )
    return StaticTable.from_metadata(str(newest))
