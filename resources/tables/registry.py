"""The table formats, each with its package, and how to find the format of a table."""

from collections.abc import Callable, Mapping, Sequence

from partitions.errors import ConfigurationError, SourceError, TargetError
from partitions.evolution import SchemaMode
from resources.connections.places import Place
from resources.spark_runtime import ICEBERG_PACKAGE
from resources.tables.contract.table import Table
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.iceberg.table import IcebergTable
from resources.tables.parquet.table import ParquetTable

FORMATS: Mapping[str, Callable[[Place, Sequence[str]], Table]] = {
    "delta": DeltaLakeTable,
    "iceberg": IcebergTable,
    "parquet": ParquetTable,
}
"""By the word of ``target.format``; the first is the default."""

DEFAULT_FORMAT = next(iter(FORMATS))
"""The format of tables that nobody has chosen one for."""


PACKAGES: Mapping[str, tuple[str, ...]] = {"iceberg": (ICEBERG_PACKAGE,)}
"""Maven coordinates that Spark needs for a format beyond the packages of every session."""


def open_table(
    table_format: str, place: Place, partition_by: Sequence[str] = (), schema_mode: SchemaMode = "strict"
) -> Table:
    """Return the table of a format at a place; it need not exist.

    Args:
        table_format: word of ``target.format``.
        place: place of the table.
        partition_by: columns that a new table is partitioned by.
        schema_mode: how the table's columns change if rows have other columns.
    """
    return FORMATS[table_format](place, partition_by).with_schema_mode(schema_mode)


def refuse_other_formats(table_format: str, place: Place) -> None:
    """Raise if a table of another format lies at the place of a new table.

    Readers of the folder could see either table.

    Raises:
        ConfigurationError: code ``other_format``.
        TargetError: the place cannot be listed.
    """
    for other_format, make in FORMATS.items():
        if other_format != table_format and make(place, ()).exists():
            raise ConfigurationError(
                f"table {place}: expected a table of format {table_format} or no table, found one of format {other_format}. Set target.format: {other_format};"
                " choose another target.table; or move the table away",
                code="other_format",
            )


def find_table(place: Place) -> Table:
    """Return the existing table at a place, whatever its format.

    If there is no table, return one of the default format, whose reads raise SourceError.

    Raises:
        SourceError: the place holds tables of several formats, or cannot be listed.
    """
    return FORMATS[find_format(place) or DEFAULT_FORMAT](place, ())


def find_format(place: Place) -> str | None:
    """Return the format of the table at a place; None if there is none.

    Raises:
        SourceError: as :func:`find_table`.
    """
    try:
        formats = [table_format for table_format, make in FORMATS.items() if make(place, ()).exists()]
    except TargetError as error:
        raise SourceError(error.message) from error
    if len(formats) > 1:
        raise SourceError(
            f"table {place}: expected a table of one format, found tables of {' and '.join(formats)}. Move the unwanted ones away"
        )
    return formats[0] if formats else None
