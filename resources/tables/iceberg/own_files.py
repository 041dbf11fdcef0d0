"""Describe a data file that Spark wrote in a manifest: sizes, counts and bounds.

See docs/explanation/adr/0032.
"""

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
    """Return the manifest's description of a file.

    Raises:
        NeedsEngine: the file does not hold the table's columns as Iceberg reads them.
    """
    from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata, parquet_path_to_id_mapping
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    if not table.matches_footer(file.footer):
        raise NeedsEngine("the session writes columns or times in a form that Iceberg does not read")
    ids = parquet_path_to_id_mapping(table.schema)
    try:
        statistics = data_file_statistics_from_parquet_metadata(
            file.footer, _statistics_plan(file.footer, table, ids), ids
        ).to_serialized_dict()
    except (ValueError, OverflowError) as error:  # a year after 9999, or a text that is not UTF-8
        raise NeedsEngine("Python cannot represent a minimum or maximum of a column") from error
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.metadata.table_location}/{DATA}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=table.partition_spec.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics,
    )


def _statistics_plan(
    footer: FileMetaData, table: PlainTable, ids: Mapping[str, int]
) -> dict[int, StatisticsCollector]:
    """Return the statistics that the manifest gets of each column; only counts if the footer lacks bounds.

    Raises:
        ValueError: Python cannot represent a bound.
        OverflowError: likewise.
    """
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode, compute_statistics_plan

    plan = compute_statistics_plan(table.schema, dict(table.metadata.properties))
    for number in range(footer.num_columns):
        groups = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
        if not all(_bounds_all_values(group.statistics) for group in groups):
            id_ = ids[groups[0].path_in_schema]
            plan[id_] = replace(plan[id_], mode=MetricsMode(MetricModeTypes.COUNTS))
    return plan


def _bounds_all_values(group: Statistics | None) -> bool:
    """Return whether a row group's statistics bound all its values.

    Long texts have no bounds, and NaN hides other values.
    """
    if group is None:
        return False
    if not group.has_min_max:
        return bool(group.num_values == 0)
    return bool(group.min == group.min and group.max == group.max)
