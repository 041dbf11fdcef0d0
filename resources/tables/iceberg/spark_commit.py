"""Commit an Iceberg table with Spark's own writer (docs/explanation/adr/0019).

Each commit is valid only on the snapshot in which its number was free. An append is one commit: an
overwrite of the rows of its own number, which must not exist in any snapshot since. Every other load is
made on a branch from that snapshot; readers get the branch if they still see that snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from partitions.loads import Append, ByKeys, Load, Replace, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.target import COMMIT_COLUMN
from resources.spark.frames import read_once
from resources.spark.settings import temporary_settings
from resources.tables.iceberg.branches import Branches
from resources.tables.iceberg.columns import check_types, commit_column, in_table_order, with_commit_column
from resources.tables.iceberg.delete_conditions import delete_conditions
from resources.tables.iceberg.fence import fence
from resources.tables.iceberg.layout import Layout
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.row_columns import written_columns
from resources.tables.rows.keyed_rows import initial_rows
from resources.tables.rows.merge_statement import delete_missing_rows, merge_rows
from resources.tables.rows.scd2 import scd2_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SUMMARY = "spark.sql.iceberg.snapshot-property."


@dataclass(frozen=True)
class SparkCommit:
    """Loads rows into an existing table.

    Attributes:
        commit: commit of the number.
        partition_by: partition columns once all rows are replaced.
    """

    commit: NumberedCommit
    partition_by: tuple[str, ...]

    def write(self, rows: DataFrame, load: Load, metadata: Metadata, *, without_branch: bool) -> None:
        """Load rows: in one commit without a branch, or on a branch that readers then get.

        Args:
            rows: rows of the slice, with the table's columns.
            load: load of the slice.
            metadata: metadata of the table in which the number was free.
            without_branch: whether the load, an append, needs no branch. A load into a table without a
                snapshot never needs one.
        """
        if metadata.current is None or without_branch:
            self._append(initial_rows(rows, load), metadata)
        else:
            work = partial(self._load, rows, load, metadata)
            Branches(self.commit.catalog, self.commit.tag).publish(rows.sparkSession, metadata, work)

    def _append(self, rows: DataFrame, metadata: Metadata) -> None:
        """Append in one commit that conflicts with files of the same number since the snapshot.

        An append without files does not take its number, so a fence follows.
        """
        from pyspark.sql import functions as F

        table_rows, name = (
            self.commit.with_table_columns(rows, metadata),
            self.commit.catalog.name(rows.sparkSession),
        )
        writer = table_rows.writeTo(name)
        writer = writer.option("isolation-level", "serializable")
        if metadata.current is not None:
            writer = writer.option("validate-from-snapshot-id", str(metadata.current.id))
        writer = self.commit.tag_writer(writer, Append())
        writer.overwrite(F.col(COMMIT_COLUMN) == F.lit(self.commit.value))
        newest = self.commit.catalog.newest()
        if newest is not None and not self.commit.is_taken(newest):
            is_next = metadata.current and newest.current and newest.current.parent == metadata.current.id
            fence(self.commit, rows.sparkSession, newest, metadata if is_next else newest)

    def _load(self, rows: DataFrame, load: Load, metadata: Metadata, branch: str) -> Iterator[None]:
        session, table = rows.sparkSession, self.commit.columns(metadata)
        if isinstance(load, ReplaceAll):
            self._replace_all(rows, metadata, branch)
            yield
            return
        check_types(written_columns(rows.schema, load), table, self.commit.table_name)
        match load:
            case Append():
                self._add(rows, load, metadata, branch)
            case Replace(where):
                yield from _delete_rows(session, branch, where)
                self._add(rows, load, metadata, branch, where)
            case _:
                yield from self._merge(rows, load, metadata, branch)
                return
        yield

    def _add(
        self,
        rows: DataFrame,
        load: Load,
        metadata: Metadata,
        branch: str,
        where: Predicate = EVERYTHING,
    ) -> None:
        table = self.commit.columns(metadata)
        writer = in_table_order(rows, table, commit_column(self.commit.value, where)).writeTo(branch)
        self.commit.tag_writer(writer, load, metadata).append()

    def _merge(self, rows: DataFrame, load: ByKeys, metadata: Metadata, branch: str) -> Iterator[None]:
        """Merge cached rows: Spark reads them twice, and a source may change in between.

        What the load clears is deleted by a commit of its own on the branch, which touches only its files.
        A MERGE that deletes unmatched rows would rewrite every file of the table.
        """
        session = rows.sparkSession
        if isinstance(load, Scd2):
            rows = read_once(scd2_changes(rows, session.table(branch).drop(COMMIT_COLUMN), load))
        rows = with_commit_column(rows, self.commit.value)
        if isinstance(load, Upsert) and load.where != NOTHING and not load.inserts_only:
            delete_missing_rows(rows, load, branch).merge()
            yield
        elif isinstance(load, Upsert | ReplaceKeys) and load.where != NOTHING:
            yield from _delete_rows(session, branch, load.where)
        merge_load = load if isinstance(load, Scd2) else replace(load, where=NOTHING)
        with _with_summary(session, self.commit.summary(load, metadata)):
            merge_rows(rows, merge_load, branch, self.commit.columns(metadata), (COMMIT_COLUMN,)).merge()
        yield

    def _replace_all(self, rows: DataFrame, metadata: Metadata, branch: str) -> None:
        from pyspark.sql import functions as F

        session = rows.sparkSession
        rows = with_commit_column(rows, self.commit.value)
        Layout(self.commit.catalog.name(session), metadata, self.partition_by).fit(session, rows.schema)
        writer = self.commit.tag_writer(rows.writeTo(branch), ReplaceAll(), metadata)
        writer.overwrite(F.lit(True))


def _delete_rows(session: SparkSession, branch: str, where: Predicate) -> Iterator[None]:
    """Delete rows of a branch; each statement is one commit."""
    for condition in delete_conditions(where):
        session.sql(f"DELETE FROM {branch} WHERE {condition}")  # noqa: S608 - names are quoted, values are literals
        yield


def _with_summary(session: SparkSession, summary: Mapping[str, str]) -> AbstractContextManager[None]:
    """Add a summary to the session's snapshots within the context, since SQL statements take no options."""
    return temporary_settings(session, {_SUMMARY + key: value for key, value in summary.items()})
