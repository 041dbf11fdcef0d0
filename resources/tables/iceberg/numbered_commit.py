"""The commit of one number of an Iceberg table: whether it is taken, its column value and its summary.

Everything here is common to our own commits and Spark's; no row is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError, WriteConflict
from partitions.loads import Load
from partitions.target import COMMIT_COLUMN
from resources.connections.places import Place
from resources.tables.contract.commits import Tag
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.columns import check_types, commit_column, in_table_order
from resources.tables.iceberg.commit import commit_value, summary_of
from resources.tables.iceberg.commit_column import hides_commit_column, owns_commit_column
from resources.tables.iceberg.conflicts import conflict_error, is_conflict
from resources.tables.iceberg.head import read_tip
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.own_commit import replaced_table_error
from resources.tables.user_metadata import with_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class NumberedCommit:
    """The commit of one number.

    Attributes:
        catalog: catalog of the table.
        place: place of the table.
        tag: tag of the commit.
        text: user metadata of the commit.
    """

    catalog: Catalog
    place: Place
    tag: Tag
    text: str

    def with_writer(self, writer: str) -> NumberedCommit:
        """Return the same commit, with the name of its writer."""
        return replace(self, text=with_writer(self.text, writer))

    @property
    def table_name(self) -> str:
        """Name of the table, for people."""
        return str(self.place)

    @property
    def value(self) -> str:
        """Value that the commit's rows carry."""
        return commit_value(self.tag.app_id, self.tag.number)

    def is_taken(self, metadata: Metadata | None) -> bool:
        """Return whether the number is taken."""
        return metadata is not None and read_tip(metadata, self.tag.app_id).highest_tag >= self.tag.number

    def missing_table_error(self, newest: Metadata | None) -> TargetError:
        """Return the error of a write whose table is gone."""
        return replaced_table_error(self.table_name, f"that number {self.tag.number} was planned on", newest)

    @contextmanager
    def raising_conflicts(self) -> Iterator[None]:
        """Raise WriteConflict within the context for errors caused by another writer's commit."""
        try:
            yield
        except WriteConflict:
            raise
        except Exception as error:
            if is_conflict(error):
                raise conflict_error(self.table_name, self.tag.number, error) from error
            raise

    def columns(self, metadata: Metadata) -> StructType:
        """Return the table's columns; raise if the commit's column is not among them."""
        from pyspark.sql.types import StructType

        if not owns_commit_column(metadata):
            if hides_commit_column(metadata):
                raise TargetError(
                    f"table {self.table_name}: expected the column {COMMIT_COLUMN}, which prevents double "
                    "loads, found none: another writer dropped or converted it. No data is lost. Run "
                    "`state reset --replace`, which reloads all rows with the column"
                )
            raise RowsRefused(
                f"table {self.table_name}: expected a table that Strandline created, with a column "
                f"{COMMIT_COLUMN}, found another writer's table. Without the column a run could load rows "
                "twice. Choose another target.table"
            )
        return StructType.fromJson(spark_schema(metadata.schema))

    def with_table_columns(self, rows: DataFrame, metadata: Metadata) -> DataFrame:
        """Return rows with the table's columns and the commit's; raise if they do not fit."""
        table = self.columns(metadata)
        check_types(rows.schema, table, self.table_name)
        return in_table_order(rows, table, commit_column(self.value))

    def summary(self, load: Load | None, base: Metadata | None) -> Mapping[str, str]:
        """Return the summary of the commit's snapshot; ``base`` is the start of its branch."""
        return summary_of(self.tag, self.text, load, base.current.id if base and base.current else None)

    def tag_writer(
        self, writer: DataFrameWriterV2, load: Load | None, base: Metadata | None = None
    ) -> DataFrameWriterV2:
        """Return a writer whose snapshot gets the commit's summary; ``base`` is the start of its branch."""
        for key, value in self.summary(load, base).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer
