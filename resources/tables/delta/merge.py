"""Keyed loads (upsert, merge_overwrite, SCD2) into an existing Delta table, as one MERGE.

Delta takes the tag and the user metadata of the MERGE's commit from the session's settings. It skips a
number that the table has, as in any write. See docs/reference/loads.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.errors import RowsRefused
from partitions.loads import ByKeys, Scd2
from resources.connections.places import Place
from resources.spark.frames import read_once
from resources.spark.settings import temporary_settings
from resources.sql import quoted
from resources.tables.contract.commits import Tag
from resources.tables.delta.commit import tag_settings
from resources.tables.row_columns import written_columns
from resources.tables.rows.merge_statement import merge_rows
from resources.tables.rows.scd2 import scd2_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def merge(place: Place, rows: DataFrame, load: ByKeys, tag: Tag, user_metadata: str) -> None:
    """Merge rows into an existing table, in one commit that carries the tag.

    Args:
        place: place of the table.
        rows: rows of the slice; an upsert has each key once, SCD2 each key and time once.
        load: keyed load.
        tag: tag of the commit.
        user_metadata: user metadata of the commit.

    Raises:
        RowsRefused: the table has other columns.
    """
    session = rows.sparkSession
    table_rows = session.read.format("delta").load(place.spark_url)
    schema = table_rows.schema
    _check_columns(place, written_columns(rows.schema, load), schema)
    if isinstance(load, Scd2):
        rows = scd2_changes(read_once(rows), table_rows, load)
    with temporary_settings(session, tag_settings(tag, user_metadata)):
        merge_rows(rows, load, sql_name(place), schema).merge()


def _check_columns(place: Place, rows: StructType, schema: StructType) -> None:
    """Raise RowsRefused for columns that an append would refuse: a MERGE would convert values silently."""
    types_by_name = {field.name.lower(): field.dataType.simpleString() for field in schema}
    for name, data_type in ((field.name, field.dataType.simpleString()) for field in rows):
        if types_by_name.get(name.lower()) != data_type:
            table_type = types_by_name.get(name.lower())
            expected_text = (
                f"type {table_type}" if table_type else f"one of its columns ({', '.join(schema.names)})"
            )
            raise RowsRefused(
                f"table {place}: expected {expected_text}, found column {name} of type {data_type}"
            )


def sql_name(place: Place) -> str:
    """Return the name of a table in SQL."""
    return f"delta.{quoted(place.spark_url)}"
