"""Writes of a Delta table: by Strandline's own commit where it can, else by Delta's writer, with the same tag (docs/adr/0016)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import WriteConflict, in_one_line
from partitions.evolution import Evolution, SchemaMode
from partitions.loads import Append, ByKeys, Load, Replace, ReplaceAll, Scd2, within
from partitions.predicate import Predicate, columns_of
from partitions.schema_types import all_nullable, field_names
from partitions.target import HISTORY_COLUMNS
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark.process import said
from resources.sql import literal, quoted
from resources.tables.contract.commits import Tag
from resources.tables.delta.commit import write_options
from resources.tables.delta.conflicts import is_conflict
from resources.tables.delta.inexact_statistics import distrust
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.merge import merge
from resources.tables.delta.own_commit import OwnCommit
from resources.tables.delta.own_limits import fits
from resources.tables.delta.share import Share
from resources.tables.folder_values import check_folder_values
from resources.tables.row_columns import evolve_columns, with_columns_of, with_types_of, with_validity
from resources.tables.rows.scd2 import scd2_initial_rows
from resources.tables.user_metadata import commit_text, with_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAPPED = frozenset(" ,;{}()\n\t=")
"""Characters that Delta takes in a column's name only with column mapping."""


class DeltaWrites:
    """The writes of one Delta table; it need not exist."""

    def __init__(
        self, log: DeltaLog, share: Share, partition_by: Sequence[str], schema_mode: SchemaMode
    ) -> None:
        """Write to a table.

        Args:
            log: of the table.
            share: the rows that are the dataflow's.
            partition_by: columns of a table that is made.
            schema_mode: what becomes of the table's columns if rows come with others.
        """
        self._log, self._share = log, share
        self._partition_by, self._schema_mode = tuple(partition_by), schema_mode

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, first: bool) -> bool:
        """Load rows as :meth:`resources.tables.contract.table.Table.write`; return whether Delta's own writer committed.

        Args:
            rows: of the slice.
            load: what becomes of the rows in the table.
            tag: of the commit.
            state: sentinel JSON text of the watermark after it.
            first: whether the write makes the table.
        """
        try:
            return self._write(rows, self._within_share(rows, load), tag, state, first=first)
        except WriteConflict:
            raise
        except Exception as error:
            # Another dataflow may have made the table just now.
            if is_conflict(error) or (first and self._share.dataflow is not None and self._log.exists()):
                raise WriteConflict(
                    f"table {self._log.place}: another writer committed first: {in_one_line(said(error))}. Nothing is lost: the next run tries"
                    " again"
                ) from error
            raise

    def give_up(
        self,
        spark: SparkSession,
        tag: Tag,
        state: str,
        first_rows: Callable[[], DataFrame] | None,
        *,
        first: bool,
    ) -> None:
        """Append no row; ``first``: and make the table. Its own columns fit whatever the definition has become."""
        own = self._own(tag, state)
        reason: str | None = "the table is made"
        if first_rows is None:
            reason = own.give_up()
            if reason is None:
                return
        rows = first_rows() if first_rows else self._rows(spark).limit(0)
        self._commit(rows, Append(), tag, _by_spark(own.text, reason), first=first)

    def _write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, first: bool) -> bool:
        own = self._own(tag, state)
        if isinstance(load, ByKeys | Replace):
            distrust(rows.sparkSession, self._log.table())
        evolution = None if first or isinstance(load, ReplaceAll) else self._evolution(rows, load)
        if isinstance(load, ByKeys) and not first:
            return self._write_by_keys(rows, load, tag, own, evolution)
        rows = scd2_initial_rows(rows, load) if isinstance(load, Scd2) else rows
        if isinstance(load, Replace) and evolution is not None and self._must_come_first(load.where):
            # Delta looks for the rows to delete before it takes new columns.
            rows = self._evolved_before(rows, evolution, ())
            evolution = None
        if evolution is not None:
            rows = with_types_of(rows, evolution.schema)
        if evolution is not None and evolution.action != "none":
            reason: str | None = "the table takes new columns or types"
        else:
            reason = own.write(rows, load, self._partition_by, first=first)
        if reason is None:
            return False
        with check_folder_values(rows, self._layout(load, first=first), self._log.place) as kept_rows:
            self._commit(kept_rows, load, tag, _by_spark(own.text, reason), first=first, evolution=evolution)
        return True

    def _write_by_keys(
        self, rows: DataFrame, load: ByKeys, tag: Tag, own: OwnCommit, evolution: Evolution | None
    ) -> bool:
        """Change rows by their keys.

        If others were faster than Strandline's own commit, a MERGE does it at once: beside their appends Delta lets it through.
        """
        if evolution is not None:
            added = HISTORY_COLUMNS if isinstance(load, Scd2) else ()
            rows = self._evolved_before(rows, evolution, added)
        rows, reason = own.change(rows, load)
        if reason is None:
            return False
        with check_folder_values(rows, self._layout(load, first=False), self._log.place) as kept_rows:
            merge(self._log.place, kept_rows, load, tag, _by_spark(own.text, reason))
        return True

    def _own(self, tag: Tag, state: str) -> OwnCommit:
        text = commit_text(self._log.place, tag, state, self._share.dataflow)
        return OwnCommit(self._log, tag, text)

    def _within_share(self, rows: DataFrame, load: Load) -> Load:
        """Return the load that leaves rows of others as they are. Where there are none, other columns may take the place of the table's."""
        shared = self._share.dataflow is not None and isinstance(load, ReplaceAll)
        table = self._log.table() if shared else None
        if table is not None and not fits(table, rows.schema) and self._share.is_alone:
            return load
        return within(load, self._share.rows)

    def _rows(self, spark: SparkSession) -> DataFrame:
        return spark.read.format("delta").load(self._log.place.spark_url)

    def _evolution(self, rows: DataFrame, load: Load) -> Evolution | None:
        """Return what the table's columns become with these rows; None in mode strict, in which the writer compares them.

        In mode rescue they get ``_rescued_data`` and nothing else, which the writer compares, too.

        Raises:
            RowsRefused: the mode does not accept them.
        """
        table = self._log.table() if self._schema_mode in ("merge", "rescue") else None
        if table is None:
            return None
        table_schema = json.loads(table.schema().to_json())
        incoming = all_nullable(with_validity(rows.schema, load).jsonValue())
        return evolve_columns(table_schema, incoming, self._schema_mode, self._log.place)

    def _evolved_before(
        self, rows: DataFrame, evolution: Evolution, load_columns: Sequence[str]
    ) -> DataFrame:
        """Give the table the columns of rows that are merged, which a MERGE takes as they are; return the rows with all of its columns.

        A commit of its own, before the tagged one, which changes no row; done twice it does no harm.

        Args:
            rows: of the slice.
            evolution: of the table's columns.
            load_columns: columns that the load makes, which the rows do not get here.
        """
        if evolution.action == "merge":
            self._prepare(rows, evolution)
            columns = type(rows.schema).fromJson(dict(evolution.schema))
            no_rows = with_columns_of(rows.limit(0), columns).write.format("delta").mode("append")
            no_rows.option("mergeSchema", "true").save(self._log.place.spark_url)
        table_schema = self._rows(rows.sparkSession).schema
        own_fields = [field for field in table_schema.fields if field.name not in load_columns]
        return with_columns_of(rows, type(table_schema)(own_fields))

    def _must_come_first(self, where: Predicate) -> bool:
        """Whether the table lacks a column of a condition, and takes new ones."""
        if self._schema_mode != "merge":
            return False
        table_columns = {name.casefold() for name in self._share.columns}
        return any(name.casefold() not in table_columns for name in columns_of(where))

    def _prepare(self, rows: DataFrame, evolution: Evolution) -> None:
        """Give the table what new columns and wider types need."""
        needed = {"delta.enableTypeWidening": "true"} if any(c.widens for c in evolution.changes) else {}
        self._allow(rows, needed)

    def _commit(
        self,
        rows: DataFrame,
        load: Load,
        tag: Tag,
        text: str,
        *,
        first: bool,
        evolution: Evolution | None = None,
    ) -> None:
        """Have Delta's own writer write in one commit. The first one makes the table, and has nothing to delete; Delta refuses it beside a table that came since."""
        writer = rows.write.format("delta").options(**write_options(tag, text))
        if evolution is not None:
            if evolution.action == "merge":
                self._prepare(rows, evolution)
            writer = writer.option("mergeSchema", "true")
        match load:
            case Replace(where) if not first:
                writer = writer.mode("overwrite").option("replaceWhere", sql(where, SPARK))
            case ReplaceAll() if not first:
                self._allow(rows)
                # Whatever the session says: a dynamic overwrite would leave the partitions that are not written.
                static = {"overwriteSchema": "true", "partitionOverwriteMode": "static"}
                writer = writer.mode("overwrite").options(**static)
            case _:
                writer = writer.mode("error" if first else "append")
        if self._partition_by and (first or isinstance(load, ReplaceAll)):
            writer = writer.partitionBy(*self._partition_by)
        if first and _needs_mapping(rows):
            writer = writer.option("delta.columnMapping.mode", "name")
        writer.save(self._log.place.spark_url)

    def _layout(self, load: Load, *, first: bool) -> Sequence[str]:
        """The columns that folders stand for when rows are written."""
        if self._partition_by and (first or isinstance(load, ReplaceAll)):
            return self._partition_by
        table = self._log.table()
        return table.metadata().partition_columns if table is not None else ()

    def _allow(self, df: DataFrame, more: Mapping[str, str] | None = None) -> None:
        """Give a table what columns need that it may not have had: Delta gives it to new tables by itself.

        A commit of its own, before the tagged one, which changes no row; done twice it does no harm.

        Args:
            df: the rows.
            more: properties that are needed beside.
        """
        needed = dict(more or {})
        if _needs_mapping(df):
            needed["delta.columnMapping.mode"] = "name"
        if any("timestamp_ntz" in kind for _, kind in df.dtypes):
            needed["delta.feature.timestampNtz"] = "supported"
        if needed:
            properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in needed.items())
            df.sparkSession.sql(
                f"ALTER TABLE delta.{quoted(self._log.place.spark_url)} SET TBLPROPERTIES ({properties})"
            ).collect()


def _needs_mapping(df: DataFrame) -> bool:
    """Return whether a name of the columns, at any depth, has a letter for which Delta maps names."""
    return any(_MAPPED & set(name) for name in field_names(df.schema.jsonValue()))


def _by_spark(text: str, reason: str | None) -> str:
    """Return the user metadata of a commit that Delta's own writer makes, with the reason why."""
    return with_writer(text, f"Spark: {reason}")
