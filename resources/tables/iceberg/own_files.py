"""What a manifest says of a data file that Spark has written: its columns' bounds, as Iceberg knows them (docs/explanation/adr/0032)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.written import WrittenFile
from resources.tables.iceberg.plain_table import PlainTable

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData, Statistics
    from pyiceberg.io.pyarrow import StatisticsCollector
    from pyiceberg.manifest import DataFile

DATA = "data"
"""The folder of a table's files."""


def data_file(file: WrittenFile, table: PlainTable) -> DataFile:
    """Return what a manifest says of a file.

    Raises:
        NeedsEngine: it does not hold the table's columns as Iceberg reads them.
    """
    from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata, parquet_path_to_id_mapping
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    if not table.holds(file.footer):
        raise NeedsEngine("the session writes columns or times otherwise than Iceberg reads them")
    ids = parquet_path_to_id_mapping(table.schema)
    try:
        statistics = data_file_statistics_from_parquet_metadata(
            file.footer, _plan(file.footer, table, ids), ids
        ).to_serialized_dict()
    except (ValueError, OverflowError) as error:  # a year after 9999, a text that is no UTF-8
        raise NeedsEngine("Python has no word for a bound of a column") from error
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.metadata.table_location}/{DATA}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=table.layout.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics,
    )


def _plan(footer: FileMetaData, table: PlainTable, ids: Mapping[str, int]) -> dict[int, StatisticsCollector]:
    """Return what the manifest says of each column: of one whose bounds the footer does not tell, only how many values there are.

    Raises:
        ValueError: Python has no word for a bound.
        OverflowError: likewise.
    """
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode, compute_statistics_plan

    plan = compute_statistics_plan(table.schema, dict(table.metadata.properties))
    for number in range(footer.num_columns):
        groups = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
        if not all(_tells_bounds(group.statistics) for group in groups):
            id_ = ids[groups[0].path_in_schema]
            plan[id_] = replace(plan[id_], mode=MetricsMode(MetricModeTypes.COUNTS))
    return plan


def _tells_bounds(group: Statistics | None) -> bool:
    """Return whether a row group's statistics bound all its values. Long texts have no bounds; NaN hides others."""
    if group is None:
        return False
    if not group.has_min_max:
        return bool(group.num_values == 0)
    return bool(group.min == group.min and group.max == group.max)
