"""Write a Delta table: by our own commit if possible, otherwise by Delta's writer.

See docs/explanation/adr/0016.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import WriteConflict, shorten_to_line
from partitions.evolution import Evolution, SchemaMode
from partitions.loads import Append, ByKeys, Load, Replace, ReplaceAll, Scd2, restrict_load
from partitions.predicate import Predicate, columns_of
from partitions.schema_types import all_nullable, field_names
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.spark.process import error_line
from resources.sql import literal, quoted
from resources.tables.contract.commits import Tag
from resources.tables.delta.commit import tag_options
from resources.tables.delta.conflicts import is_conflict
from resources.tables.delta.inexact_statistics import disable_data_skipping
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.merge import merge, sql_name
from resources.tables.delta.own_commit import DeltaOwnCommit
from resources.tables.delta.own_limits import has_same_columns
from resources.tables.delta.share import DeltaShare
from resources.tables.folder_values import check_folder_values
from resources.tables.row_columns import (
    evolve_columns,
    fit_to_table,
    with_columns_of,
    with_types_of,
    written_columns,
)
from resources.tables.rows.keyed_rows import initial_rows
from resources.tables.user_metadata import commit_text, with_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAPPED_CHARACTERS = frozenset(" ,;{}()\n\t=")
"""Characters that Delta accepts in a column name only with column mapping."""
_MAPPED = {"delta.columnMapping.mode": "name"}
"""Properties of a table with such names."""


class DeltaWrites:
    """The writes of one Delta table; it need not exist."""

    def __init__(
        self, log: DeltaLog, share: DeltaShare, partition_by: Sequence[str], schema_mode: SchemaMode
    ) -> None:
        """Bind the writes to a table; write nothing yet.

        Args:
            log: log of the table.
            share: the dataflow's share of the rows.
            partition_by: partition columns of a new table.
            schema_mode: how writes change the table's columns.
        """
        self._log, self._share = log, share
        self._partition_by, self._schema_mode = tuple(partition_by), schema_mode

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, creates_table: bool) -> bool:
        """Load rows as the contract says; return whether Delta's own writer committed.

        See :meth:`resources.tables.contract.table.Table.write`.

        Args:
            rows: rows of the slice.
            load: load of the slice.
            tag: tag of the commit.
            state: sentinel JSON text of the watermark after the commit.
            creates_table: whether the write creates the table.

        Raises:
            WriteConflict, RowsRefused, TargetError: as the contract says.
        """
        try:
            return self._write(rows, self._within_share(rows, load), tag, state, creates_table=creates_table)
        except WriteConflict:
            raise
        except Exception as error:
            # Another dataflow may just have created the table.
            if is_conflict(error) or (
                creates_table and self._share.dataflow is not None and self._log.exists()
            ):
                raise WriteConflict(
                    f"table {self._log.place}: another writer committed first: "
                    f"{shorten_to_line(error_line(error))}. No data is lost: the next run tries again"
                ) from error
            raise

    def give_up(
        self,
        spark: SparkSession,
        tag: Tag,
        state: str,
        first_rows: Callable[[], DataFrame] | None,
        *,
        creates_table: bool,
    ) -> None:
        """Fence a number by an append of no rows; create the table if ``creates_table``.

        An existing table's own columns are used, so that a changed definition does not matter.
        """
        own_commit = self._own_commit(tag, state)
        reason: str | None = "the table is created"
        if first_rows is None:
            reason = own_commit.give_up()
            if reason is None:
                return
        rows = first_rows() if first_rows else self._rows(spark).limit(0)
        self._commit(
            rows, Append(), tag, _written_by_spark(own_commit.text, reason), creates_table=creates_table
        )

    def _write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, creates_table: bool) -> bool:
        own_commit = self._own_commit(tag, state)
        if isinstance(load, ByKeys | Replace):
            disable_data_skipping(rows.sparkSession, self._log.table())
        evolution = None if creates_table or isinstance(load, ReplaceAll) else self._evolution(rows, load)
        if isinstance(load, ByKeys) and not creates_table:
            return self._write_by_keys(rows, load, tag, own_commit, evolution)
        rows = initial_rows(rows, load)
        if isinstance(load, Replace) and evolution is not None and self._must_evolve_first(load.where):
            # Delta finds the rows to delete before it adds new columns.
            rows = self._evolve_first(rows, evolution, load)
            evolution = None
        if evolution is not None:
            rows = with_types_of(rows, evolution.schema)
        if evolution is not None and evolution.action != "none":
            reason: str | None = "the table gets new columns or types"
        else:
            reason = own_commit.write(rows, load, self._partition_by, creates_table=creates_table)
        if reason is None:
            return False
        with check_folder_values(
            rows, self._layout(load, creates_table=creates_table), self._log.place
        ) as kept_rows:
            self._commit(
                kept_rows,
                load,
                tag,
                _written_by_spark(own_commit.text, reason),
                creates_table=creates_table,
                evolution=evolution,
            )
        return True

    def _write_by_keys(
        self, rows: DataFrame, load: ByKeys, tag: Tag, own_commit: DeltaOwnCommit, evolution: Evolution | None
    ) -> bool:
        """Change rows by key; return whether Delta's own writer committed.

        If another writer came before our own commit, use a MERGE at once: Delta commits it beside their
        appends.
        """
        if isinstance(load, Scd2):
            self._add_deleted_column(rows, load)
        if evolution is not None:
            rows = self._evolve_first(rows, evolution, load)
        rows, reason = own_commit.change(rows, load)
        if reason is None:
            return False
        with check_folder_values(rows, self._layout(load, creates_table=False), self._log.place) as kept_rows:
            merge(self._log.place, kept_rows, load, tag, _written_by_spark(own_commit.text, reason))
        return True

    def _own_commit(self, tag: Tag, state: str) -> DeltaOwnCommit:
        text = commit_text(self._log.place, tag, state, self._share.dataflow)
        return DeltaOwnCommit(self._log, tag, text)

    def _within_share(self, rows: DataFrame, load: Load) -> Load:
        """Restrict a load to the dataflow's rows.

        If all rows are the dataflow's, a load with other columns may replace the whole table.
        """
        may_replace_columns = self._share.dataflow is not None and isinstance(load, ReplaceAll)
        table = self._log.table() if may_replace_columns else None
        if table is not None and not has_same_columns(table, rows.schema) and self._share.is_alone:
            return load
        return restrict_load(load, self._share.rows)

    def _rows(self, spark: SparkSession) -> DataFrame:
        return spark.read.format("delta").load(self._log.place.spark_url)

    def _evolution(self, rows: DataFrame, load: Load) -> Evolution | None:
        """Return how these rows change the table's columns; None unless the mode is merge or rescue.

        In the other modes the writer compares the columns. In mode rescue the table only gains
        ``_rescued_data``, and the writer compares the rest.

        Raises:
            RowsRefused: the mode does not accept the rows' columns.
        """
        table = self._log.table() if self._schema_mode in ("merge", "rescue") else None
        if table is None:
            return None
        table_schema = json.loads(table.schema().to_json())
        incoming = all_nullable(written_columns(rows.schema, load).jsonValue())
        return evolve_columns(table_schema, incoming, self._schema_mode, self._log.place)

    def _evolve_first(self, rows: DataFrame, evolution: Evolution, load: Load) -> DataFrame:
        """Add new columns to the table before its rows change; return the rows with all of its columns.

        A MERGE does not change columns, and Delta finds rows to delete before it adds columns. So a commit
        before the tagged one adds them, which changes no row and can safely be repeated.

        Args:
            rows: rows of the slice.
            evolution: change of the table's columns.
            load: load of the slice; the rows do not get the columns here that it adds.
        """
        if evolution.action == "merge":
            self._prepare_evolution(rows, evolution)
            columns = type(rows.schema).fromJson(dict(evolution.schema))
            no_rows = with_columns_of(rows.limit(0), columns).write.format("delta").mode("append")
            no_rows.option("mergeSchema", "true").save(self._log.place.spark_url)
        return fit_to_table(rows, self._rows(rows.sparkSession).schema, load)

    def _add_deleted_column(self, rows: DataFrame, load: Scd2) -> None:
        """Give a table that was loaded without deletes the column that records them.

        A commit before the tagged one, which changes no row and can safely be repeated.
        """
        table = self._log.table() if load.deletes is not None else None
        name = load.names.is_deleted
        if table is not None and name not in [field.name for field in table.schema().fields]:
            if any(_MAPPED_CHARACTERS & set(column) for column in load.names.all):
                self._enable_features(rows, _MAPPED)
            added = f"{quoted(name)} BOOLEAN"
            rows.sparkSession.sql(f"ALTER TABLE {sql_name(self._log.place)} ADD COLUMNS ({added})").collect()

    def _must_evolve_first(self, where: Predicate) -> bool:
        """Return whether the table lacks a column of a condition, and takes new ones."""
        if self._schema_mode != "merge":
            return False
        table_columns = {name.casefold() for name in self._share.columns}
        return any(name.casefold() not in table_columns for name in columns_of(where))

    def _prepare_evolution(self, rows: DataFrame, evolution: Evolution) -> None:
        """Enable the table features that new columns and wider types need."""
        properties = {"delta.enableTypeWidening": "true"} if any(c.widens for c in evolution.changes) else {}
        self._enable_features(rows, properties)

    def _commit(
        self,
        rows: DataFrame,
        load: Load,
        tag: Tag,
        text: str,
        *,
        creates_table: bool,
        evolution: Evolution | None = None,
    ) -> None:
        """Write with Delta's writer in one commit.

        The first commit creates the table, and fails if another writer created it meanwhile.
        """
        writer = rows.write.format("delta").options(**tag_options(tag, text))
        if evolution is not None:
            if evolution.action == "merge":
                self._prepare_evolution(rows, evolution)
            writer = writer.option("mergeSchema", "true")
        match load:
            case Replace(where) if not creates_table:
                writer = writer.mode("overwrite").option("replaceWhere", predicate_sql(where, SPARK))
            case ReplaceAll() if not creates_table:
                self._enable_features(rows)
                # Override the session: a dynamic overwrite would keep partitions that are not written.
                overwrite_options = {"overwriteSchema": "true", "partitionOverwriteMode": "static"}
                writer = writer.mode("overwrite").options(**overwrite_options)
            case _:
                writer = writer.mode("error" if creates_table else "append")
        if self._partition_by and (creates_table or isinstance(load, ReplaceAll)):
            writer = writer.partitionBy(*self._partition_by)
        if creates_table and _needs_mapping(rows):
            writer = writer.option("delta.columnMapping.mode", "name")
        writer.save(self._log.place.spark_url)

    def _layout(self, load: Load, *, creates_table: bool) -> Sequence[str]:
        """Return the partition columns of the written files."""
        if self._partition_by and (creates_table or isinstance(load, ReplaceAll)):
            return self._partition_by
        table = self._log.table()
        return table.metadata().partition_columns if table is not None else ()

    def _enable_features(self, rows: DataFrame, extra_properties: Mapping[str, str] | None = None) -> None:
        """Enable the table features that the rows' columns need, as Delta does for new tables.

        A commit before the tagged one, which changes no row and can safely be repeated.

        Args:
            rows: rows to write.
            extra_properties: other properties to set.
        """
        properties = dict(extra_properties or {})
        if _needs_mapping(rows):
            properties |= _MAPPED
        if any("timestamp_ntz" in data_type for _, data_type in rows.dtypes):
            properties["delta.feature.timestampNtz"] = "supported"
        if properties:
            assignments = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
            rows.sparkSession.sql(
                f"ALTER TABLE delta.{quoted(self._log.place.spark_url)} SET TBLPROPERTIES ({assignments})"
            ).collect()


def _needs_mapping(rows: DataFrame) -> bool:
    """Return whether a column name, at any depth, has a character that needs column mapping."""
    return any(_MAPPED_CHARACTERS & set(name) for name in field_names(rows.schema.jsonValue()))


def _written_by_spark(text: str, reason: str | None) -> str:
    """Return the user metadata of a commit by Delta's own writer, with the reason."""
    return with_writer(text, f"Spark: {reason}")
