"""The Delta tables in which Strandline itself changes rows by key, and their files.

See docs/explanation/adr/0034.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from partitions.loads import ByKeys, Load, Scd2
from resources.connections.places import Place
from resources.sql import quoted
from resources.tables.changed_rows import FILE_COLUMN, RewrittenFiles, find_changes
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.reading import (
    PLAIN_PATH,
    files_reader,
    is_spark_readable,
    read_with_file_names,
)
from resources.tables.delta.commit import file_name
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_change import OTHER_COLUMNS, BaseVersion, Removals
from resources.tables.delta.own_limits import has_same_columns, is_supported_location, unmet_demand
from resources.tables.row_columns import written_columns
from resources.tables.rows.history_columns import history_columns

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_MAX_FILES = 100
"""Most files of a table whose keys we look up: Spark checks the existence of each, which Delta's own writer need not."""


@dataclass(frozen=True)
class KeyedTable:
    """A table whose rows Strandline changes by key.

    Attributes:
        place: place of the table.
        base: version that was checked.
        schema: schema of the table.
        files: all of its files, as deltalake lists them, by name.
    """

    place: Place
    base: BaseVersion
    schema: StructType
    files: Mapping[str, Mapping[str, Any]]

    @classmethod
    def newest(cls, log: DeltaLog, rows: StructType, load: Load) -> KeyedTable:
        """Return the newest version of a table, whose rows our own commit can change by key.

        Raises:
            NeedsEngine: Delta's own writer must find the keys.
        """
        if not is_supported_location(log.place):
            raise NeedsEngine(UNSUPPORTED_LOCATION)
        table = log.table()
        if table is None:
            raise NeedsEngine("there is no table")
        return cls.of(table, log.place, rows, load)

    @classmethod
    def of(cls, table: DeltaTable, place: Place, rows: StructType, load: Load) -> KeyedTable:
        """Return a version of a table, whose rows our own commit can change by key.

        Args:
            table: version of the table.
            place: place of the table.
            rows: columns of the slice.
            load: keyed load.

        Raises:
            NeedsEngine: Delta's own writer must find the keys.
        """
        from pyspark.sql.types import StructType

        if unmet := unmet_demand(table, load):
            raise NeedsEngine(unmet)
        if table.metadata().partition_columns:
            raise NeedsEngine("the table is partitioned, and rows are changed by their keys")
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        if not has_same_columns(table, _with_history_columns(rows, load, schema.names)):
            raise NeedsEngine(OTHER_COLUMNS)
        base = BaseVersion.of(table)
        assert base is not None
        return cls(place, base, schema, _files(table, place))

    @property
    def all_paths(self) -> frozenset[str]:
        """Paths of all files, as the log has them."""
        return frozenset(file["path"] for file in self.files.values())

    def rewrite(self, rows: DataFrame, load: ByKeys, count: int | None) -> tuple[RewrittenFiles, Removals]:
        """Return the rows to write and the files that they replace.

        Args:
            rows: rows of the slice, cached.
            load: keyed load.
            count: number of rows in the slice, if known.

        Raises:
            NeedsEngine: the load needs a MERGE.
        """
        session = rows.sparkSession
        table_rows = read_with_file_names(session, self._urls(self.files.values()), self.schema, FILE_COLUMN)
        columns = [quoted(name) for name in self.schema.names]
        keyed_changes = find_changes(rows, load, table_rows, lambda frame: frame.select(*columns), count)
        files = [self.files[name] for name in keyed_changes.files]
        replaced_rows = files_reader(session, self.schema).parquet(*self._urls(files)) if files else None
        rewritten = keyed_changes.rewrite(replaced_rows, sum(file["num_records"] for file in files))
        return rewritten, Removals(partial_files=files)

    def _urls(self, files: Iterable[Mapping[str, Any]]) -> list[str]:
        return spark_urls(self.place, files)


UNSUPPORTED_LOCATION = "deltalake does not write to such an address"
"""Why Delta's own writer commits: neither a local folder nor S3, or characters that deltalake misreads."""


def spark_urls(place: Place, files: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the URLs at which Spark finds files of the log."""
    return [place.child(unquote(file["path"])).spark_url for file in files]


def _files(table: DeltaTable, place: Place) -> dict[str, Mapping[str, Any]]:
    import pyarrow as pa

    actions = pa.table(table.get_add_actions(flatten=True))
    if actions.num_rows > _MAX_FILES:
        raise NeedsEngine(f"the table has more than {_MAX_FILES} files to search for keys")
    files = actions.select(["path", "size_bytes", "num_records"]).to_pylist()
    by_name = {file_name(file["path"]): file for file in files}
    all_usable = all(
        file["num_records"] is not None
        and PLAIN_PATH.fullmatch(file["path"])
        and is_spark_readable(place.child(file["path"]).url)
        for file in files
    )
    if not all_usable or len(by_name) != len(files):
        raise NeedsEngine(
            "a file of the table has no row count in the log, or a name that Spark reads differently"
        )
    return by_name


def _with_history_columns(rows: StructType, load: Load, table_columns: Sequence[str]) -> StructType:
    """Return the columns that a load writes, with the history columns of the table if it is scd2."""
    from pyspark.sql.types import BooleanType, StructField, StructType

    written = written_columns(rows, load)
    if not isinstance(load, Scd2):
        return written
    flags = [name for name in history_columns(rows.names, load, table_columns) if name in load.names.flags]
    return StructType([*written.fields, *(StructField(name, BooleanType()) for name in flags)])
