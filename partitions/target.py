"""The table that a dataflow writes, and how, as a user declares it (docs/reference/project-files.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from partitions.evolution import SchemaMode
from partitions.history import DEFAULT_NAMES, ColumnName, HistoryNames, OpenEnd
from partitions.model import Duration, Flag, Model
from partitions.refusal import Refusal
from partitions.retention import Retention
from partitions.schema_merging import RESCUED_DATA
from partitions.sources.table import TableName

INGESTED_AT = "_ingested_at"
"""The column with the time of the run that loaded a row."""

RUN_COLUMNS = (INGESTED_AT, "_run_id")
ORIGIN_COLUMNS = ("_source_file", *RUN_COLUMNS)
"""The file and run that a row came from; they are no part of the row's own data."""

DATAFLOW_COLUMN = "_dataflow"
"""The column of a shared table with the dataflow that owns the row."""

HELPER_PREFIX = "_strandline_"
"""The prefix of columns that exist only within a query."""

DELETES_COLUMN = f"{HELPER_PREFIX}deletes_key"
"""The boolean column of a slice's rows: whether the row deletes its key. No table has it."""

BEGINS_COLUMN = f"{HELPER_PREFIX}begins"
"""The column of a slice's rows with the start of their version, if it is not the effective time. No table has it."""

ABSENT_COLUMN = f"{HELPER_PREFIX}absent"
"""The column of a slice's rows with the names, in lower case, of the columns that a row's record lacks. No table has it."""

COMMIT_COLUMN = "_commit"
"""The column of an Iceberg table with the app id and number of the commit that wrote the row."""

ICEBERG_COLUMNS = (
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
)
"""Metadata columns that every Iceberg table offers beside its own columns."""


_MAX_CLUSTERED = 4
_MAX_DELETED = "20%"


def _percentage(value: Any) -> Any:
    if not isinstance(value, str) or not _PERCENTAGE.fullmatch(value) or Fraction(value[:-1]) > 100:
        raise ValueError("expected a percentage from 0% to 100%, such as 20%")
    return value


_PERCENTAGE = re.compile(r"\d{1,3}(\.\d+)?%", re.ASCII)
Percentage = Annotated[str, BeforeValidator(_percentage)]
"""A share such as ``20%``, from 0% to 100%."""


def _in_lower_case(text: Any) -> Any:
    """Return the load in lower case; ``full_load`` means ``overwrite``."""
    word = text.strip().lower() if isinstance(text, str) else text
    return "overwrite" if word == "full_load" else word


class Target(Model):
    """The table that a dataflow writes, and how.

    Attributes:
        table: ``<layer>/<name>`` in the lake; by default the dataflow's own layer and name.
        load: ``append`` adds rows; ``overwrite`` (or ``full_load``) replaces all rows; ``merge_upsert``
        updates rows by their keys and adds the others; ``merge_overwrite`` deletes the rows with the keys
        of the slice, and adds the slice; ``scd2`` keeps a version of a row for each change.
        merge_keys: columns whose values identify a row.
        replace_by_watermark: beside ``merge_overwrite``: the commit deletes exactly the range that was
        read, whatever its keys. Of several rows of a slice with the same keys only the latest stays.
        effective_column: beside ``scd2``: the column with the time from which a row holds.
        track: beside ``scd2``: the columns whose changes make a new version; None: all but ``ignore``.
        ignore: beside ``scd2``: columns whose changes alone make no new version.
        names: beside ``scd2``: the names of the columns that the table adds.
        open_end: beside ``scd2``: the end of a current version, such as ``9999-12-31``; None: NULL.
        insert_only: beside ``merge_upsert``: whether rows whose key the table has are left out.
        immutable: beside ``merge_upsert``: columns that keep their first value that is not NULL.
        missing_columns: beside ``merge_upsert``: ``keep`` leaves the columns that a record lacks as they
        are; ``null`` sets them to NULL.
        delete_when: beside a load by keys: a condition in Spark's SQL over the rows after ``sql`` or
        ``transform``. A row for which it is true deletes its key.
        on_missing: beside ``source.complete``: what becomes of keys that the newest read lacks. ``delete``
        takes them out of the table, ``retire`` ends their versions, ``keep`` leaves them.
        max_deleted: the highest share of keys that one run may remove so, such as ``20%``; None: the default.
        keep_tombstones: how long a table beside the target remembers deleted keys, so that older rows of
        them stay away; None: it does not.
        partition_by: columns whose values have folders of their own, from the table's first commit on.
        cluster_by: columns by which ``maintenance.optimize`` groups rows in files.
        origin_columns: whether rows carry ``_source_file``, ``_ingested_at`` and ``_run_id``.
        retention: how long rows stay; older ones go, and later loads do not bring them back.
        shared: whether other dataflows may load the same table. Its rows then carry ``_dataflow``, and
        each dataflow deletes, updates and counts only its own.
    """

    load: Annotated[
        Literal["append", "overwrite", "merge_upsert", "merge_overwrite", "scd2"],
        BeforeValidator(_in_lower_case),
    ] = "append"
    merge_keys: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    replace_by_watermark: Flag = False
    effective_column: Annotated[str, Field(min_length=1)] | None = None
    track: Annotated[tuple[ColumnName, ...], Field(min_length=1)] | None = None
    ignore: Annotated[tuple[ColumnName, ...], Field(min_length=1)] | None = None
    names: HistoryNames = DEFAULT_NAMES
    open_end: OpenEnd | None = None
    insert_only: Flag = False
    missing_columns: Literal["keep", "null"] = "null"
    immutable: Annotated[tuple[ColumnName, ...], Field(min_length=1)] | None = None
    delete_when: Annotated[str, Field(min_length=1)] | None = None
    on_missing: Literal["delete", "retire", "keep"] | None = None
    max_deleted: Percentage | None = None
    keep_tombstones: Duration | None = None
    table: TableName | None = None
    format: Literal["delta", "iceberg", "parquet"] = "delta"
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    schema_mode: SchemaMode = "strict"
    origin_columns: Flag = True
    shared: Flag = False
    retention: Retention | None = None

    @property
    def way(self) -> str:
        """The word for how rows go into the table: ``load``, or ``replace_by_watermark``."""
        replaces = self.load == "merge_overwrite" and self.replace_by_watermark
        return "replace_by_watermark" if replaces else self.load

    @property
    def keeps_missing_columns(self) -> bool:
        """Whether an update leaves the columns that a record lacks as they are."""
        return self.load == "merge_upsert" and self.missing_columns == "keep"

    @property
    def removes_missing(self) -> bool:
        """Whether keys that the newest read lacks are removed."""
        return self.on_missing in ("delete", "retire")

    @property
    def may_delete(self) -> bool:
        """Whether its loads may delete keys, or end their versions."""
        return self.delete_when is not None or self.removes_missing

    @property
    def max_deleted_share(self) -> Fraction:
        """The highest share of keys that one run may remove, of 1."""
        return Fraction(self.max_deleted_text.removesuffix("%")) / 100

    @property
    def max_deleted_text(self) -> str:
        """The same, as a percentage."""
        return self.max_deleted or _MAX_DELETED

    @property
    def only_adds(self) -> bool:
        """Whether a load changes no row of the table, and looks none up."""
        return self.load == "append"

    @property
    def merges(self) -> bool:
        """Whether a load looks up rows of the table by their keys."""
        by_keys = self.load == "merge_overwrite" and not self.replace_by_watermark
        return by_keys or self.load in ("merge_upsert", "scd2")

    @property
    def added(self) -> tuple[str, ...]:
        """The names of the columns that loading adds to the records of files."""
        rescued = (RESCUED_DATA,) if self.schema_mode == "rescue" else ()
        return (*(ORIGIN_COLUMNS if self.origin_columns else ()), *rescued)

    @property
    def names_folders(self) -> tuple[str, ...]:
        """The columns whose values become folder names, which cannot hold bytes.

        Iceberg keeps the values beside its files, so it has none.
        """
        return () if self.format == "iceberg" else self.partition_by

    def history_columns(self, *, records_deletes: bool) -> tuple[str, ...]:
        """Return the columns that the load adds to each version; none unless it is scd2.

        Args:
            records_deletes: whether rows of the source can delete their key.
        """
        if self.load != "scd2":
            return ()
        return self.names.all if records_deletes else self.names.of_versions

    @property
    def format_columns(self) -> dict[str, str]:
        """The column names that the format reserves, each with the key that names the format."""
        names = (COMMIT_COLUMN, *ICEBERG_COLUMNS) if self.format == "iceberg" else ()
        return dict.fromkeys(names, "format: iceberg")

    def reserved(self, *, records_deletes: bool) -> dict[str, str]:
        """Return the column names in lower case that rows may not have, each with the key that reserves it.

        Args:
            records_deletes: whether rows of the source can delete their key.
        """
        deletes_by = "delete_when" if self.delete_when else "on_missing" if self.may_delete else "load: scd2"
        return {
            **{
                name.lower(): deletes_by if name == self.names.is_deleted else "load: scd2"
                for name in self.history_columns(records_deletes=records_deletes)
            },
            **({DATAFLOW_COLUMN: "shared: true"} if self.shared else {}),
            **self.format_columns,
        }

    def reserved_of_runs(self, *, reads_tables: bool) -> dict[str, str]:
        """Return the column names that identify a row's run, each with the key that adds it.

        Rows may not have them, unless they come from a table of the lake: there they name an earlier run,
        and this run's values replace them.

        Args:
            reads_tables: whether rows come from a table of the lake.
        """
        is_refused = self.origin_columns and not reads_tables
        return dict.fromkeys(RUN_COLUMNS, "origin_columns: true") if is_refused else {}

    def refusals(self, *, pairs_changes: bool = False) -> Iterator[Refusal]:
        """Yield keys that the load cannot use, or lacks.

        Args:
            pairs_changes: whether ``merge_keys`` tell which rows of an added change belong together.
        """
        if self.merges and not self.merge_keys:
            instead = " or replace_by_watermark: true" if self.load == "merge_overwrite" else ""
            yield Refusal(
                ("target", "merge_keys"),
                "nothing",
                f"the columns that identify a row, beside load: {self.load}{instead and f',{instead}'}",
            )
        if self.merge_keys and not pairs_changes and (self.only_adds or self.load == "overwrite"):
            yield Refusal(
                ("target", "merge_keys"),
                ", ".join(self.merge_keys),
                f"no such key beside load: {self.load} (it compares nothing), or load: merge_upsert",
            )
        if self.retention is not None and self.load == "scd2":
            yield Refusal(
                ("target", "retention"),
                "a retention beside load: scd2",
                "no such key (the versions of a row follow each other, so no single version can go)",
            )
        yield from self._history_refusals()
        yield from self._cluster_refusals()
        if self.shared and (why := self._why_alone) is not None:
            yield Refusal(
                ("target", "shared"),
                f"true beside load: {self.load}",
                f"append, merge_upsert, or merge_overwrite with replace_by_watermark: true ({why}); or a table of its own",
            )

    @property
    def _why_alone(self) -> str | None:
        """Why other dataflows cannot load the same table; None if they can."""
        if self.load == "overwrite":
            return "an overwrite replaces the whole table, with the rows of other dataflows"
        if self.load == "scd2":
            return (
                "the versions of a key must follow each other, and a dataflow cannot ensure this for keys of "
                "another one"
            )
        if self.load == "merge_overwrite" and not self.replace_by_watermark:
            return "a key that moved to another dataflow would stay in the rows of the first one"
        return None

    def _cluster_refusals(self) -> Iterator[Refusal]:
        key, columns = ("target", "cluster_by"), ", ".join(self.cluster_by)
        if self.format != "delta" or not self.cluster_by:
            return
        if self.partition_by:
            yield Refusal(
                key,
                f"{columns} beside partition_by: {', '.join(self.partition_by)}",
                "one of the two (a clustered Delta table has no partitions)",
            )
        if len(self.cluster_by) > _MAX_CLUSTERED:
            yield Refusal(
                key, f"{len(self.cluster_by)} columns", f"at most {_MAX_CLUSTERED}, which is Delta's limit"
            )

    def _history_refusals(self) -> Iterator[Refusal]:
        key, effective = ("target", "effective_column"), self.effective_column
        if self.load == "scd2" and effective is None:
            yield Refusal(key, "nothing", "the column that says from when a row is valid, beside load: scd2")
        if self.load != "scd2" and effective is not None:
            yield Refusal(key, effective, f"no such key beside load: {self.load}, or load: scd2")
        if effective is not None and effective.lower() in {name.lower() for name in self.merge_keys}:
            yield Refusal(
                key,
                f"{effective}, which is also in merge_keys",
                "a column that is not in merge_keys (all versions of a row have the same keys)",
            )
