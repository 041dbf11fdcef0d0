"""Loads by keys into a Delta table, each one MERGE (docs/loads.md).

Delta takes the tag and the text of a MERGE's commit from the session, and skips one whose number the table knows, like any other write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.errors import RowsRefused
from partitions.loads import ByKeys, Scd2
from resources.connections.places import Place
from resources.spark.frames import read_once
from resources.spark.settings import settings_for_a_while
from resources.sql import quoted
from resources.tables.contract.commits import Tag
from resources.tables.delta.commit import merge_settings
from resources.tables.rows.merge_statement import merge_rows
from resources.tables.rows.scd2 import scd2_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def merge(place: Place, rows: DataFrame, load: ByKeys, tag: Tag, text: str) -> None:
    """Merge rows into a table that is there, in one commit that carries the tag.

    Args:
        place: of the table.
        rows: of the slice; for an upsert each key once, for versions each key and time.
        load: how.
        tag: of the commit.
        text: its user metadata.

    Raises:
        RowsRefused: the table has other columns.
    """
    session = rows.sparkSession
    there = session.read.format("delta").load(place.spark_url)
    table = there.schema
    _check_columns(place, rows, table)
    if isinstance(load, Scd2):
        rows = scd2_changes(read_once(rows), there, load)
    with settings_for_a_while(session, merge_settings(tag, text)):
        merge_rows(rows, load, _name(place), table).merge()


def _check_columns(place: Place, rows: DataFrame, table: StructType) -> None:
    """Refuse what an append refuses: a MERGE would convert values, or leave columns out."""
    there = {field.name.lower(): field.dataType.simpleString() for field in table}
    for name, kind in rows.dtypes:
        if there.get(name.lower()) != kind:
            theirs = there.get(name.lower())
            expected = f"type {theirs}" if theirs else f"one of its columns ({', '.join(table.names)})"
            raise RowsRefused(f"table {place}: expected {expected}, found column {name} of type {kind}")


def _name(place: Place) -> str:
    return f"delta.{quoted(place.spark_url)}"
