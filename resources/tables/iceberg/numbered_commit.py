"""The commit of one number of an Iceberg table: whether its number is taken, what its rows carry, and what its snapshot says of itself.

Here is what every way to commit needs, Strandline's own or one of Spark's; no row is written here.
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
from resources.tables.iceberg.columns import check_types, commit_of, in_order_of
from resources.tables.iceberg.commit import commit_value, summary_of
from resources.tables.iceberg.conflicts import conflict_of, is_conflict
from resources.tables.iceberg.head import tip_of
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.own_commit import table_gone
from resources.tables.iceberg.rows import hides_commit_column, owns_commit_column
from resources.tables.user_metadata import with_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class NumberedCommit:
    """The commit of one number.

    Attributes:
        catalog: of the table.
        place: of the table.
        tag: of the commit.
        text: what it says of itself.
    """

    catalog: Catalog
    place: Place
    tag: Tag
    text: str

    def with_writer(self, writer: str) -> NumberedCommit:
        """Return the same commit, which says who makes it."""
        return replace(self, text=with_writer(self.text, writer))

    @property
    def shown(self) -> str:
        """The table's name, for people."""
        return str(self.place)

    @property
    def value(self) -> str:
        """What the commit's rows carry."""
        return commit_value(self.tag.app_id, self.tag.number)

    def is_taken(self, metadata: Metadata | None) -> bool:
        """Return whether the number is taken."""
        return metadata is not None and tip_of(metadata, self.tag.app_id).highest_tag >= self.tag.number

    def gone(self, now: Metadata | None) -> TargetError:
        """Return the error of a write whose table is not there any more."""
        return table_gone(self.shown, f"that number {self.tag.number} was planned on", now)

    @contextmanager
    def telling_conflicts(self) -> Iterator[None]:
        """Raise WriteConflict for errors within it that tell of another writer's commit."""
        try:
            yield
        except WriteConflict:
            raise
        except Exception as error:
            if is_conflict(error):
                raise conflict_of(self.shown, self.tag.number, error) from error
            raise

    def columns(self, metadata: Metadata) -> StructType:
        """Return the table's columns, with that of the commit, which must be there."""
        from pyspark.sql.types import StructType

        if not owns_commit_column(metadata):
            if hides_commit_column(metadata):
                raise TargetError(
                    f"table {self.shown}: lacks the column {COMMIT_COLUMN}, by which no number is written twice: another writer has dropped or converted it."
                    " Nothing is lost. Run `state reset --replace`, which loads all rows again, with the column"
                )
            raise RowsRefused(
                f"table {self.shown}: expected a table that Strandline has made, with a column {COMMIT_COLUMN}, found another writer's:"
                " without the column a number could be written twice. Load into another target.table"
            )
        return StructType.fromJson(spark_schema(metadata.schema))

    def placed(self, rows: DataFrame, metadata: Metadata) -> DataFrame:
        """Return rows with the table's columns and that of their commit, which are checked to fit."""
        table = self.columns(metadata)
        check_types(rows.schema, table, self.shown)
        return in_order_of(rows, table, commit_of(self.value))

    def summary(self, load: Load | None, base: Metadata | None) -> Mapping[str, str]:
        """Return what the snapshot of a load says of itself; ``base`` is what its branch begins at."""
        return summary_of(self.tag, self.text, load, base.current.id if base and base.current else None)

    def tagged(
        self, writer: DataFrameWriterV2, load: Load | None, base: Metadata | None = None
    ) -> DataFrameWriterV2:
        """Return a writer whose snapshot is the commit; ``base`` is what its branch begins at."""
        for key, value in self.summary(load, base).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer
