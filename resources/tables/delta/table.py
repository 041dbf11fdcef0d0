"""A Delta table of the lake, as the contract has it. What each method needs is in the modules beside this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.errors import (
    RowsRefused,
    SourceError,
    TargetError,
    WriteConflict,
    in_one_line,
)
from partitions.evolution import Evolution, SchemaMode
from partitions.load import Append, ByKeys, Load, Replace, ReplaceAll, Scd2, within
from partitions.predicate import EVERYTHING, Among, Predicate, all_of, columns_of
from partitions.schema_types import all_nullable
from partitions.target import DATAFLOW_COLUMN, HISTORY_COLUMNS
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark.process import said
from resources.sql import literal, quoted
from resources.tables.contract.adopting import Adopted
from resources.tables.contract.appends import Appended, Appends, Mark
from resources.tables.contract.commits import (
    MOST_ROWS,
    OthersFirst,
    TableCommit,
    TableHead,
    Tag,
    TaggedCommit,
    Version,
)
from resources.tables.contract.maintenance import Cared, WrongStatistics
from resources.tables.contract.spans import FileSpan
from resources.tables.delta.appends import appends, rows_of_appends
from resources.tables.delta.conflicts import is_conflict
from resources.tables.delta.file_reads import read_files
from resources.tables.delta.head import compared, tip_of
from resources.tables.delta.history import adopted
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.maintenance import optimize, vacuum
from resources.tables.delta.merge import merge
from resources.tables.delta.own_commit import OwnCommit
from resources.tables.delta.own_limits import fits
from resources.tables.delta.rows import (
    count_rows,
    distinct_rows,
    file_counts,
    file_maxima,
    file_spans,
    highest_values,
    holds_any,
    missing,
)
from resources.tables.delta.statistics import can_write, distrust, wrong_files
from resources.tables.folder_values import kept_by_folders
from resources.tables.removal import remove_files
from resources.tables.row_columns import taken_columns, with_columns_of, with_times, with_types_of
from resources.tables.rows.counted import kept_and_counted
from resources.tables.rows.replacement import OUTSIDE
from resources.tables.rows.scd2 import first_versions
from resources.tables.user_metadata import commit_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TRIES = 20
"""Commits of other writers that may come first, one after another, before a load by keys is left to Delta's own."""
_MOST_TEXTS = 100_000_000
"""Of a column: more than the files that a dataflow has ever loaded."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that Delta takes in a column's name only with column mapping."""


class DeltaLakeTable:
    """One Delta table; it need not exist."""

    def __init__(
        self,
        place: Place,
        partition_by: Sequence[str] = (),
        *,
        dataflow: str | None = None,
        schema_mode: SchemaMode = "strict",
    ) -> None:
        """Use the table at a place, which the first write makes, partitioned as given; for all, or for one of the dataflows that share it."""
        self._place = place
        self._dataflow = dataflow
        self._schema_mode = schema_mode
        self._partition_by = tuple(partition_by)
        self._log = DeltaLog(place)
        self._wrote_by_delta = False

    def share_of(self, dataflow: str) -> DeltaLakeTable:
        """Return the table as one of the dataflows that share it sees it."""
        return DeltaLakeTable(
            self._place, self._partition_by, dataflow=dataflow, schema_mode=self._schema_mode
        )

    def taking_columns(self, mode: SchemaMode) -> DeltaLakeTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return DeltaLakeTable(self._place, self._partition_by, dataflow=self._dataflow, schema_mode=mode)

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self._place

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with what was recorded of it."""
        return compared(self._log, recorded, app_id, self._dataflow)

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now."""
        return tip_of(self._log, app_id)

    def adopted(self, app_id: str | None = None) -> Adopted | None:
        """Return the state that the commits tell which the table's rows go back to."""
        return adopted(self._log, app_id, self._dataflow)

    def exists(self) -> bool:
        """Return whether there is a Delta log."""
        return self._log.exists()

    def has_data(self) -> bool:
        """Return whether the table holds rows or remembers a tag. A file without statistics counts as rows."""
        table = self._log.table()
        if table is None:
            return False
        if (own := self._own_rows()) != EVERYTHING:
            tagged = any(commit.ours.get("dataflow") == self._dataflow for commit in self._log.commits(None))
            return tagged or holds_any(self._log, table.version(), own)
        if any(count is None or count > 0 for count in file_counts(table)):
            return True
        return any(commit.tags for commit in self._log.commits(None))

    def counted(self, commit: TaggedCommit, before: int) -> TaggedCommit:
        """Return the commit with all of its counts. One that only deletes does not count rows: the table before and after it tells.

        If the version before was cleaned from the log, the watermark log's own count stands in for it.
        """
        if not commit.uncounted:
            return commit
        version = int(commit.version)
        try:
            before, after = count_rows(self._log, version - 1), count_rows(self._log, version)
        except TargetError:
            after = self.count_rows()
        return replace(commit, removed=max(0, before + commit.rows - after), uncounted=False)

    def count_rows(self) -> int:
        """Return the number of rows, from the files' statistics if they all have some; a table that is shared is scanned for the dataflow's."""
        return count_rows(self._log, rows=self._own_rows())

    def count_bytes(self) -> int:
        """Return the bytes of the data files, as the log has them."""
        table = self._log.table()
        sizes: Any = table.get_add_actions().column("size_bytes").to_pylist() if table else ()
        return sum(sizes)

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        table = self._log.table()
        return [field.name for field in table.schema().fields] if table else []

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON."""
        table = self._log.table()
        return (table.version(), table.schema().to_json()) if table else None

    def identity(self) -> str | None:
        """Return the id that its metadata has."""
        table = self._log.table()
        return str(table.metadata().id) if table else None

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Ask for them, without Spark."""
        if self._is_of_others():
            return dict.fromkeys(columns)
        asked = all_of((self._own_rows(), EVERYTHING if rows is None else rows))
        return highest_values(self._log, columns, None if version is None else int(version), asked)

    def texts(self, column: str) -> set[str]:
        """Return all texts of a column."""
        if column not in self.columns() or self._is_of_others():
            return set()
        if self._own_rows() == EVERYTHING:
            distinct = self.distinct_rows([column], _MOST_TEXTS)
        else:
            both = self.distinct_rows([column, DATAFLOW_COLUMN], _MOST_TEXTS)
            distinct = (row for row in both if row[DATAFLOW_COLUMN] == self._dataflow)
        return {row[column] for row in distinct if row[column] is not None}

    def distinct_rows(self, columns: Sequence[str], most: int = MOST_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of some columns."""
        return distinct_rows(self._log, columns, most)

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Ask for one row."""
        return holds_any(self._log, int(version), rows)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return what the table's log says of its files."""
        return file_maxima(self._log, int(version), column)

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return what the table's log says of its files."""
        return file_spans(self._log, int(version), group, column)

    def newest_version(self) -> Version:
        """Return the newest version. Starts no Spark."""
        try:
            versions = self._log.versions(None)
        except TargetError as error:
            raise SourceError(error.message) from error
        if not versions:
            raise missing(self._place)
        return versions[-1]

    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows of a version: of some rows from the few files that may hold them, else through Delta."""
        if rows != EVERYTHING:
            pruned = read_files(self._log, spark, int(version), rows)
            if pruned is not None:
                return pruned
        with suppress(TargetError):  # Spark says what is wrong with a version that is gone
            distrust(spark, self._log.table(int(version)))
        return spark.read.format("delta").option("versionAsOf", str(version)).load(self._place.spark_url)

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit; of a table that several dataflows share, whichever of them has made it."""
        first = base is None and (self._dataflow is None or not self.exists())
        try:
            self._write(rows, self._within_share(rows, load), tag, state, first=first)
        except Exception as error:
            # Another dataflow may have made the table just now.
            if is_conflict(error) or (first and self._dataflow is not None and self.exists()):
                raise WriteConflict(
                    f"table {self._place}: another writer committed first: {in_one_line(said(error))}. Nothing is lost: the next run tries"
                    " again"
                ) from error
            raise

    def _write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, first: bool) -> None:
        """Load rows: Strandline's own commit where it can, else Delta's, which skips one whose tag the table knows."""
        own = self._own(tag, state)
        if isinstance(load, ByKeys | Replace):
            distrust(rows.sparkSession, self._log.table())
        evolution = None if first or isinstance(load, ReplaceAll) else self._evolution(rows, load)
        if isinstance(load, ByKeys) and not first:
            self._write_by_keys(rows, load, tag, own, evolution)
            return
        rows = first_versions(rows, load) if isinstance(load, Scd2) else rows
        if isinstance(load, Replace) and evolution is not None and self._must_come_first(load.where):
            # Delta looks for the rows to delete before it takes new columns.
            self._wrote_by_delta = True
            rows = self._evolved_before(rows, evolution, ())
            evolution = None
        changes = evolution is not None and evolution.action != "none"
        if evolution is not None:
            rows = with_types_of(rows, evolution.schema)
        if changes or not own.write(rows, load, self._partition_by, first=first):
            with kept_by_folders(rows, self._layout(load, first=first), self._place) as kept:
                self._commit(kept, load, tag, own.text, first=first, evolution=evolution)

    def _write_by_keys(
        self,
        rows: DataFrame,
        load: ByKeys,
        tag: Tag,
        own: OwnCommit,
        evolution: Evolution | None,
    ) -> None:
        if evolution is not None:
            made = HISTORY_COLUMNS if isinstance(load, Scd2) else ()
            rows = self._evolved_before(rows, evolution, made)
        if (begun := own.may_change(rows.schema, load)) is not None:
            rows, count = kept_and_counted(rows)
            for _ in range(_TRIES):
                with suppress(OthersFirst):
                    if own.change(rows, load, begun, count):
                        return
                    break
        self._wrote_by_delta = True
        with kept_by_folders(rows, self._layout(load, first=False), self._place) as kept:
            merge(self._place, kept, load, tag, own.text)

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Append no row. The table's own columns fit whatever the definition has become."""
        own = self._own(tag, state)
        if first_rows is None and own.give_up():
            return
        first = first_rows is not None and (self._dataflow is None or not self.exists())
        rows = first_rows() if first_rows else self._rows(spark).limit(0)
        self._commit(rows, Append(), tag, own.text, first=first)

    def _own(self, tag: Tag, state: str) -> OwnCommit:
        return OwnCommit(self._log, tag, commit_text(self._place, tag, state, self._dataflow))

    def _own_rows(self) -> Predicate:
        """The rows that the dataflow deletes, updates and counts: all, unless the table is shared by now."""
        if self._dataflow is None or DATAFLOW_COLUMN not in self.columns():
            return EVERYTHING
        return Among(DATAFLOW_COLUMN, (self._dataflow,))

    def _within_share(self, rows: DataFrame, load: Load) -> Load:
        """Return the load that leaves rows of others as they are. Where there are none, other columns may take the place of the table's."""
        table = self._log.table() if self._dataflow is not None and isinstance(load, ReplaceAll) else None
        if table is not None and not fits(table, rows.schema) and self._is_alone():
            return load
        return within(load, self._own_rows())

    def _is_alone(self) -> bool:
        """Whether no row is another dataflow's."""
        return DATAFLOW_COLUMN in self.columns() and all(
            row[DATAFLOW_COLUMN] == self._dataflow for row in self.distinct_rows([DATAFLOW_COLUMN])
        )

    def _is_of_others(self) -> bool:
        """Whether a table that is to be shared still is that of one dataflow, whose rows tell nothing of this one's."""
        columns = self.columns() if self._dataflow is not None else []
        return bool(columns) and DATAFLOW_COLUMN not in columns

    def _rows(self, spark: SparkSession) -> DataFrame:
        return spark.read.format("delta").load(self._place.spark_url)

    def _evolution(self, rows: DataFrame, load: Load) -> Evolution | None:
        """Return what the table's columns become with these rows; None in mode strict, in which the writer compares them.

        In mode rescue they get ``_rescued_data`` and nothing else, which the writer compares, too.

        Raises:
            RowsRefused: the mode does not accept them.
        """
        described = self.schema() if self._schema_mode in ("merge", "rescue") else None
        if described is None:
            return None
        known, incoming = json.loads(described[1]), all_nullable(with_times(rows.schema, load).jsonValue())
        return taken_columns(known, incoming, self._schema_mode, self._place)

    def _evolved_before(self, rows: DataFrame, evolution: Evolution, made: Sequence[str]) -> DataFrame:
        """Give the table the columns of rows that are merged, which a MERGE takes as they are; return the rows with all of its columns.

        A commit of its own, before the tagged one, which changes no row; done twice it does no harm.

        Args:
            rows: of the slice.
            evolution: of the table's columns.
            made: columns that the load makes, which the rows do not get here.
        """
        if evolution.action == "merge":
            self._prepare(rows, evolution)
            columns = type(rows.schema).fromJson(dict(evolution.schema))
            no_rows = with_columns_of(rows.limit(0), columns).write.format("delta").mode("append")
            no_rows.option("mergeSchema", "true").save(self._place.spark_url)
        there = self._rows(rows.sparkSession).schema
        return with_columns_of(rows, type(there)([field for field in there.fields if field.name not in made]))

    def _must_come_first(self, where: Predicate) -> bool:
        """Whether the table lacks a column of a condition, and takes new ones."""
        if self._schema_mode != "merge":
            return False
        known = {name.casefold() for name in self.columns()}
        return any(name.casefold() not in known for name in columns_of(where))

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
        tags: dict[str, Any] = {"txnAppId": tag.app_id, "txnVersion": tag.number, "userMetadata": text}
        writer = rows.write.format("delta").options(**tags)
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
        if first and any(_NEEDS_MAPPING & set(name) for name in rows.columns):
            writer = writer.option("delta.columnMapping.mode", "name")
        self._wrote_by_delta = True
        writer.save(self._place.spark_url)

    def _layout(self, load: Load, *, first: bool) -> Sequence[str]:
        """The columns that folders stand for when rows are written."""
        if self._partition_by and (first or isinstance(load, ReplaceAll)):
            return self._partition_by
        table = self._log.table()
        return table.metadata().partition_columns if table is not None else ()

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused. Delta shows the condition of ``replaceWhere`` as a constraint without a name of its own."""
        if isinstance(error, RowsRefused):
            return error.code == OUTSIDE
        return "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in str(error) and "EXPRESSION(" in str(error)

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> Cared:
        """Join small files."""
        return optimize(self._log, session, cluster_by)

    def wrong_statistics(self) -> WrongStatistics:
        """Compare bounds of decimals with the files' footers. Starts no Spark."""
        table = self._log.table()
        if table is None:
            return WrongStatistics((), can_be_written=True)
        return WrongStatistics(wrong_files(self._log, table), can_write(self._log, table))

    def vacuum(self, session: Callable[[], SparkSession]) -> Cared:
        """Delete what is older than the table's retention."""
        return vacuum(self._log, session)

    def appends(self, since: Mark | None, until: int | None = None) -> Appends:
        """Return what each version appends. Starts no Spark."""
        self.newest_version()  # which says that there is none
        return appends(self._log, since, until)

    def version_of(self, mark: Mark) -> Version:
        """Return its number."""
        return mark.version

    def mark_of(self, version: Version) -> Mark:
        """Return its number; of its id a version says nothing."""
        return Mark(int(version))

    def rows_of_appends(self, spark: SparkSession, appended: Sequence[Appended]) -> DataFrame:
        """Return the rows of these versions, from their files."""
        return rows_of_appends(self._log, spark, appended)

    def remove(self, session: Callable[[], SparkSession]) -> None:  # noqa: ARG002 - files are all there is
        """Remove its folder."""
        remove_files(self)

    def prepare_next(self, spark: SparkSession) -> None:
        """Make the engine know the table's state, which Delta keeps until the next commit.

        Delta's own writer looks there for its tag, and makes the state first if it is not known. Of what only reads, the details of a
        table are what Delta takes out of it. Where the last write was a commit of ours, so is the next one, as a rule, which needs no engine.
        """
        if not self._wrote_by_delta:
            return
        spark.sql(f"DESCRIBE DETAIL delta.{quoted(self._place.spark_url)}").collect()

    def _allow(self, df: DataFrame, more: Mapping[str, str] | None = None) -> None:
        """Give a table what columns need that it may not have had: Delta gives it to new tables by itself.

        A commit of its own, before the tagged one, which changes no row; done twice it does no harm.

        Args:
            df: the rows.
            more: properties that are needed beside.
        """
        needed = dict(more or {})
        if any(_NEEDS_MAPPING & set(name) for name in df.columns):
            needed["delta.columnMapping.mode"] = "name"
        if any("timestamp_ntz" in kind for _, kind in df.dtypes):
            needed["delta.feature.timestampNtz"] = "supported"
        if needed:
            given = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in needed.items())
            df.sparkSession.sql(
                f"ALTER TABLE delta.{quoted(self._place.spark_url)} SET TBLPROPERTIES ({given})"
            ).collect()
