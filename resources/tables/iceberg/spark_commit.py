"""Commits of an Iceberg table by Spark's own writer: each is valid only on the snapshot on which its number was free (docs/explanation/adr/0019).

An append is one commit: it overwrites the rows of its own number, of which there must be none, in no snapshot since. Every other load is made
on a branch that begins at that snapshot; the branch then becomes what readers see, if they still see that snapshot.
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
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark.frames import read_once
from resources.spark.settings import temporary_settings
from resources.tables.iceberg.branches import Branches
from resources.tables.iceberg.columns import check_types, commit_of, in_order_of, with_commit
from resources.tables.iceberg.fence import fence
from resources.tables.iceberg.layout import Layout
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.rows.merge_statement import delete_missing_rows, merge_rows
from resources.tables.rows.scd2 import scd2_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SUMMARY = "spark.sql.iceberg.snapshot-property."


@dataclass(frozen=True)
class SparkCommit:
    """Loads rows into a table that is there.

    Attributes:
        commit: of the number.
        partition_by: the columns that the table is partitioned by once all of its rows are replaced.
    """

    commit: NumberedCommit
    partition_by: tuple[str, ...]

    def write(self, rows: DataFrame, load: Load, metadata: Metadata, *, in_one: bool) -> None:
        """Load rows.

        Args:
            rows: of the slice, with the columns that the table takes.
            load: what becomes of the rows in the table.
            metadata: of the table as it was when the number was free.
            in_one: whether an append is one commit, without a branch.
        """
        if metadata.current is None or in_one:
            self._append(rows, metadata)
        else:
            work = partial(self._load, rows, load, metadata)
            Branches(self.commit.catalog, self.commit.tag).publish(rows.sparkSession, metadata, work)

    def _append(self, rows: DataFrame, metadata: Metadata) -> None:
        """Append in one commit, in which files of the same number since the snapshot are a conflict. One without files is no commit of it yet."""
        from pyspark.sql import functions as F

        placed, name = self.commit.placed(rows, metadata), self.commit.catalog.name(rows.sparkSession)
        writer = placed.writeTo(name)
        writer = writer.option("isolation-level", "serializable")
        if metadata.current is not None:
            writer = writer.option("validate-from-snapshot-id", str(metadata.current.id))
        writer = self.commit.tagged(writer, Append())
        writer.overwrite(F.col(COMMIT_COLUMN) == F.lit(self.commit.value))
        after = self.commit.catalog.newest()
        if after is not None and not self.commit.is_taken(after):
            is_next = metadata.current and after.current and after.current.parent == metadata.current.id
            fence(self.commit, rows.sparkSession, after, metadata if is_next else after)

    def _load(self, rows: DataFrame, load: Load, metadata: Metadata, branch: str) -> Iterator[None]:
        session, table = rows.sparkSession, self.commit.columns(metadata)
        if isinstance(load, ReplaceAll):
            self._replace_all(rows, metadata, branch)
            yield
            return
        check_types(rows.schema, table, self.commit.shown)
        match load:
            case Append():
                self._add(rows, load, metadata, branch)
            case Replace(where):
                yield from _deleted(session, branch, where)
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
        writer = in_order_of(rows, table, commit_of(self.commit.value, where)).writeTo(branch)
        self.commit.tagged(writer, load, metadata).append()

    def _merge(self, rows: DataFrame, load: ByKeys, metadata: Metadata, branch: str) -> Iterator[None]:
        """Merge rows that are kept: Spark looks first which files they touch, and a source may answer otherwise the second time.

        What the load clears is deleted by a commit of its own on the branch, which touches its files: a MERGE that deletes what it does not match
        writes each file of the table again.
        """
        session = rows.sparkSession
        if isinstance(load, Scd2):
            rows = read_once(scd2_changes(rows, session.table(branch).drop(COMMIT_COLUMN), load))
        rows = with_commit(rows, self.commit.value)
        if isinstance(load, Upsert) and load.where != NOTHING:
            delete_missing_rows(rows, load, branch).merge()
            yield
        elif isinstance(load, ReplaceKeys) and load.where != NOTHING:
            yield from _deleted(session, branch, load.where)
        merged = load if isinstance(load, Scd2) else replace(load, where=NOTHING)
        with _saying(session, self.commit.summary(load, metadata)):
            merge_rows(rows, merged, branch, self.commit.columns(metadata), (COMMIT_COLUMN,)).merge()
        yield

    def _replace_all(self, rows: DataFrame, metadata: Metadata, branch: str) -> None:
        from pyspark.sql import functions as F

        session = rows.sparkSession
        rows = with_commit(rows, self.commit.value)
        Layout(self.commit.catalog.name(session), metadata, self.partition_by).fit(session, rows.schema)
        writer = self.commit.tagged(rows.writeTo(branch), ReplaceAll(), metadata)
        writer.overwrite(F.lit(True))


def _deleted(session: SparkSession, branch: str, where: Predicate) -> Iterator[None]:
    """Delete rows of a branch in a commit."""
    session.sql(f"DELETE FROM {branch} WHERE {sql(where, SPARK)}")  # noqa: S608 - names are quoted, values are literals
    yield


def _saying(session: SparkSession, summary: Mapping[str, str]) -> AbstractContextManager[None]:
    """Within it, what the session writes says this in its snapshots: statements of SQL take no options."""
    return temporary_settings(session, {_SUMMARY + key: value for key, value in summary.items()})
