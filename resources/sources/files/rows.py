"""Read the rows of files above a column watermark: Spark reads all files, and filters the rows.

Files have no index and no clock, and only Spark reads them. So callers without Spark, such as a sensor, go by
the listing (docs/reference/file-formats.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.column.source import SourceObservation
from partitions.dataflow import Dataflow
from partitions.errors import SchemaEvolved, StrandlineError
from partitions.instants import milliseconds
from partitions.last_look import SourceSnapshot
from partitions.loads import LackingColumn
from partitions.path.listing_positions import FromBeginning
from partitions.path.source import SourceFile
from partitions.predicate import NOTHING, Predicate, any_of
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.files.source import FileSource
from resources.sources.highest import as_value, highest_value
from resources.sources.schema import kinds, pinned_struct
from resources.sources.source import PinsRows, ReadsAbove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FileRows(PinsRows, ReadsAbove):
    """The files of one dataflow, as rows."""

    def __init__(
        self,
        dataflow: Dataflow,
        source: FileSource,
        spark: Callable[[], SparkSession],
        pinned: Callable[[], str | None],
        last_look: Callable[[], SourceSnapshot | None],
    ) -> None:
        """Store the parts; open nothing.

        Args:
            dataflow: the definition.
            source: the dataflow's files.
            spark: opens a session for questions that only a read answers.
            pinned: looks up the schema of the last commit; None before the first.
            last_look: looks up what the last successful run saw.
        """
        self._dataflow, self._source = dataflow, source
        self._spark, self._pinned, self._last_look = spark, pinned, last_look

    @property
    def remarks(self) -> Sequence[str]:
        """The warnings about the files."""
        return self._source.remarks

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Return the kinds of the columns, from the pinned schema or a sample of the files.

        ``now`` is the run's clock.
        """
        files = self._list_files()
        pinned = self._schema(files)
        if pinned is None:  # no file holds a row yet
            look = self._take_look(files, now, ())
            return SourceObservation(
                now, dict.fromkeys(columns, "text"), dict.fromkeys(columns), snapshot=look
            )
        struct = pinned_struct(pinned)
        column_kinds = kinds(struct)
        requested_kinds = {name: column_kinds[name] for name in columns if name in column_kinds}
        return SourceObservation(
            now,
            requested_kinds,
            {},
            snapshot=self._take_look(files, now, tuple(requested_kinds.values())),
            columns=struct.fieldNames(),
        )

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether a row matches; may read all files."""
        from pyspark.sql import functions as F

        return bool(
            self._answer(
                lambda frame: frame.where(predicate_sql(rows, SPARK)).select(F.lit(1)).limit(1).collect()
            )
        )

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column in matching rows; reads all files."""

        def ask(frame: DataFrame) -> Any:
            data_type = dict(frame.dtypes)[column]
            answer_rows = (
                frame.where(predicate_sql(rows, SPARK))
                .agg(highest_value(column, data_type).alias("highest"))
                .collect()
            )
            return as_value(answer_rows[0]["highest"], data_type)

        return self._answer(ask)

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """Read the current files in one scan.

        Raises:
            BadFile: the first file that Spark would not load exactly.
        """
        files = self._list_files() if parts else ()
        rows = self._source.read(spark, files, pinned)
        return rows.where(predicate_sql(any_of(parts) if parts else NOTHING, SPARK))

    def pin(self, spark: SparkSession) -> str | None:
        """Return the declared schema, or one inferred from a bounded sample; None if no file holds a row."""
        return self._source.pin(spark, self._list_files())

    @override
    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with the pinned schema."""
        self._source.check_schema(spark, pinned)

    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that some of the current files lack."""
        return self._source.lacking(spark, self._list_files(), pinned)

    def failure(self, error: Exception) -> StrandlineError | None:
        """Return the file that caused a Spark error, with the line of a bad record; None if no file did."""
        files = {file.path: file for file in self._list_files()}
        pinned = self._schema(tuple(files.values()))
        if pinned is None:
            return None
        return self._source.find_bad_file(self._spark(), files, pinned, error)

    def has_changed(self, now: datetime) -> bool:
        """Return whether the listing may hold more than the last run saw."""
        last_look = self._last_look()
        if last_look is None:
            return True
        look = self._take_look(self._list_files(), now, ())
        return last_look.may_hold_more(look.contents, look.settled, self._dataflow.column.zone)

    def contents(self) -> str:
        """Return a hash of the listing."""
        return _contents(self._list_files())

    def _take_look(
        self, files: Sequence[SourceFile], now: datetime, highest: Sequence[Any]
    ) -> SourceSnapshot:
        settled = milliseconds(now - self._dataflow.column.settle_time)
        newest = max((file.modified for file in files), default=0)
        return SourceSnapshot(_contents(files), newest, settled, tuple(highest))

    def _list_files(self) -> tuple[SourceFile, ...]:
        return self._source.list_above(FromBeginning()).listed.files

    def _schema(self, files: Sequence[SourceFile]) -> str | None:
        pinned = self._pinned()
        if pinned is not None:
            return pinned
        with self._source.staging.emptied():
            return self._source.pin(self._spark(), files)

    def _answer(self, ask: Callable[[DataFrame], Any]) -> Any:
        """Return the answer to a question about the rows of all files; None without files.

        Raises:
            BadFile: a file cannot be read.
        """
        files = self._list_files()
        pinned = self._schema(files) if files else None
        if pinned is None:
            return None
        with self._source.staging.emptied():
            return self._ask(ask, files, pinned)

    def _ask(self, ask: Callable[[DataFrame], Any], files: Sequence[SourceFile], pinned: str) -> Any:
        """Ask the rows, with the columns that they would be loaded with."""
        try:
            try:
                return ask(self._source.read(self._spark(), files, pinned))
            except StrandlineError:
                raise
            except Exception as error:
                by_path = {file.path: file for file in files}
                if (bad := self._source.find_bad_file(self._spark(), by_path, pinned, error)) is None:
                    raise
                raise bad from error
        except SchemaEvolved as evolved:
            return self._ask(ask, files, evolved.pinned)


def _contents(files: Sequence[SourceFile]) -> str:
    text = "\n".join(f"{file.path}\0{file.size}\0{file.version}" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
