"""Files under a root as a source: list, pin the schema, check and read them (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, StrandlineError
from partitions.loads import LackingColumn
from partitions.path.bad_files import FILE_VANISHED
from partitions.path.listing_positions import FromBeginning, ListingStart
from partitions.path.skipped import SkippedNames, merge_skipped, skip_warnings
from partitions.path.source import SourceFile
from resources import listing
from resources.connections.places import Place
from resources.listing import Budget, Listing
from resources.sources.files.checked import BadRecord
from resources.sources.files.checker import FileChecker, find_unreadable_file
from resources.sources.files.encodings import check_encoding
from resources.sources.files.evolving import SchemaFollower
from resources.sources.files.failures import BAD_RECORD
from resources.sources.files.formats.registry import open_format
from resources.sources.files.judging import FileJudge
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.pinning import SchemaPinner, sample_of
from resources.sources.files.plain_rows import plain_rows
from resources.sources.files.reader import FilesReader
from resources.sources.files.spark_failures import find_bad_file
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_LOOK_AT_FOLDERS = 100
"""The most folders that are opened to see whether a source holds a file."""


class FileSource:
    """The files of one dataflow."""

    def __init__(self, root: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the root and the definition; open nothing.

        Args:
            root: the folder or bucket below which the files lie.
            dataflow: the definition.
            staging: a place for rows that Spark cannot read where they lie.
        """
        self.root, self.staging = root, staging
        self._dataflow = dataflow
        self._definition = dataflow.files
        self._format = open_format(root, dataflow, staging)
        self._reader, self._pinner = FilesReader(self._format, dataflow), SchemaPinner(self._format, dataflow)
        self._checker = FileChecker(self._format, self._reader, dataflow)
        self._follower = SchemaFollower(self._format, self._checker, dataflow)
        self._judge = FileJudge(self._format, self._checker, self._follower, dataflow)
        self._skipped: tuple[SkippedNames, ...] = ()
        self.explain_missing: Callable[[], AbstractContextManager[None]] = nullcontext
        """Adds to the error of a missing source what was loaded from it."""

    @property
    def remarks(self) -> Sequence[str]:
        """The warnings about the files read so far and about skipped names, each once."""
        return (*self._format.remarks, *self._pinner.remarks, *skip_warnings(self._skipped))

    def list_above(
        self,
        position: ListingStart,
        *,
        folder: str = "",
        budget: Budget | None = None,
        resume: str | None = None,
    ) -> Listing:
        """List the files above a position, below a folder of the root (:func:`resources.listing.list_above`).

        Each listing also reports the names that earlier listings skipped, so that a run warns once about all of
        them.
        """
        root = self.root.child(folder) if folder else self.root
        with self.explain_missing():
            step = listing.list_above(root, position, self._definition.endings, budget=budget, resume=resume)
        self._skipped = merge_skipped(
            self._skipped, (skipped.in_folder(folder) for skipped in step.listed.skipped)
        )
        return replace(step, listed=replace(step.listed, skipped=self._skipped))

    def holds_files(self) -> bool:
        """Return whether a short listing from the beginning finds a file, or cannot tell that there is none.

        Raises:
            SourceError: as for a listing.
        """
        budget = Budget(pages=1 if self.root.local is None else _LOOK_AT_FOLDERS)
        with self.explain_missing():
            step = listing.list_above(self.root, FromBeginning(), self._definition.endings, budget=budget)
        return bool(step.listed.files) or not step.complete

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the records of all files, ordered by path."""
        files = sorted(self.list_above(FromBeginning()).listed.files, key=lambda file: file.path)
        return plain_rows(self.root, self._definition, files, columns)

    def find_files(self, paths: Sequence[str]) -> dict[str, SourceFile]:
        """Return the current state of the files at these paths; files that no longer exist are missing.

        Raises:
            SourceError: as for a listing.
        """
        return listing.stat_files(self.root, paths) if paths else {}

    def check_unchanged(self, files: Sequence[SourceFile]) -> None:
        """Raise BadFile if a file's size or version differs from the listing.

        Raises:
            BadFile: ``file_vanished`` or ``file_changed``.
            SourceError: as for a listing.
        """
        listing.check_unchanged(self.root, files)

    def pin(
        self, spark: SparkSession, files: Sequence[SourceFile], skipped_files: Sequence[SourceFile] = ()
    ) -> str | None:
        """Return the declared schema, or one inferred from a bounded sample, as text.

        None if no file of the sample has a row, or if no column has a type yet and the table has no column of its
        own.

        A file that is passed over gives no type: it may never be loaded. A file that only stops the run does, since
        somebody repairs it.

        Args:
            spark: a session.
            files: the files that are loaded.
            skipped_files: the files that are not loaded. If there are no others, their folders name the columns;
                otherwise no later file would be accepted.

        Raises:
            BadFile: a file of the sample cannot be read; or it cannot be loaded, and the dataflow quarantines bad
                files.
            ConfigurationError: Spark does not know the encoding in the options.
        """
        check_encoding(spark, self._definition.options, self._dataflow.name)
        pinned = self._pin(spark, files, skipped_files)
        is_inferred = self._definition.schema_ is None
        if pinned is not None and is_inferred and self._dataflow.on_bad_file == "quarantine":
            self._judge.refuse_first_bad(spark, sample_of(files), PinnedSchema.of(pinned.to_text()))
        has_columns = pinned is not None and (pinned.struct.fields or self._dataflow.target.origin_columns)
        return pinned.to_text() if pinned is not None and has_columns else None

    def _pin(
        self, spark: SparkSession, files: Sequence[SourceFile], skipped_files: Sequence[SourceFile]
    ) -> PinnedSchema | None:
        try:
            return self._pinner.pin(spark, files, skipped_files)
        except StrandlineError:
            raise
        except Exception as error:
            bad = self._bad_file(error, (file.path for file in files))
            if bad is None and self._format.HAS_TYPES:
                bad = find_unreadable_file(
                    [file for file in files if file.size > 0],
                    error,
                    lambda file: self._pinner.pin(spark, [file]),
                    may_rescue=self._format.rules.may_rescue,
                )
            if bad is None:
                raise
            raise bad from error

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if ``source.schema`` differs from the pinned schema."""
        self._pinner.check_schema(spark, PinnedSchema.of(pinned), self._dataflow.name)

    def read(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str, *, origin: bool | None = None
    ) -> DataFrame:
        """Return the rows of exactly these files, with the pinned columns.

        All files are checked first, so values that their columns do not hold exactly are never read.

        Args:
            spark: a session.
            files: the files to read.
            pinned: the schema as text.
            origin: whether rows get ``_source_file``; None: if the target has that column.

        Raises:
            SchemaError: a folder names a column that the pinned schema lacks.
            SchemaEvolved: the pinned schema gets new columns from these files.
            BadFile: the first file that cannot be loaded exactly, or whose columns the schema mode refuses.
        """
        schema = PinnedSchema.of(pinned)
        origin = self._dataflow.target.origin_columns if origin is None else origin
        for bad in self.bad_files(spark, files, pinned):
            raise bad
        bad_texts = self._checker.check(spark, files, schema).bad_texts
        return self._reader.read(spark, files, schema, origin=origin, bad_texts=bad_texts)

    def lacking(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str
    ) -> Sequence[LackingColumn]:
        """Return the pinned columns that some of the files lack, as far as their headers or records show."""
        names = PinnedSchema.of(pinned).data.fieldNames()
        names_by_path = (
            self._format.columns.names_of(spark, [file for file in files if file.size > 0], names) or {}
        )
        columns: list[LackingColumn] = []
        for name in names:
            paths_without = frozenset(
                path for path, own_names in names_by_path.items() if name.casefold() not in own_names
            )
            if paths_without:
                columns.append(
                    LackingColumn(name, None if len(paths_without) == len(names_by_path) else paths_without)
                )
        return columns

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the rows that :meth:`read` returns; None if only Spark knows them."""
        origin = self._dataflow.target.origin_columns
        return self._reader.columns(PinnedSchema.of(pinned), origin=origin)

    def bad_files(self, spark: SparkSession, files: Sequence[SourceFile], pinned: str) -> Sequence[BadFile]:
        """Return the files that cannot be loaded exactly, in their order.

        Raises:
            SchemaEvolved: files that load give the pinned schema new columns, wider types or first types.
        """
        return self._judge.bad_files(spark, files, PinnedSchema.of(pinned))

    def find_bad_file(
        self, spark: SparkSession, files: Mapping[str, SourceFile], pinned: str, error: Exception
    ) -> BadFile | None:
        """Return the file that caused a Spark error, with the line of a bad record; None if no file did.

        Args:
            spark: a session.
            files: the files that were read, by path.
            pinned: the schema that they were read with, as text.
            error: the error of the read, or of the write of its rows.

        Raises:
            SchemaEvolved: a record does not parse because a number needs a wider type, which the schema mode
                accepts.
        """
        bad = self._bad_file(error, files)
        if bad is None and "TASK_WRITE_FAILED" in str(error):
            why = self._read_failure(spark, tuple(files.values()), pinned)
            bad = self._bad_file(why, files) if why else None
        if bad is None or bad.code == FILE_VANISHED:
            return bad
        closer = self._format.find_exact_error(spark, files[bad.path], PinnedSchema.of(pinned)) or bad
        if closer.code == BAD_RECORD:
            self._follower.check_bad_record(spark, tuple(files.values()), PinnedSchema.of(pinned))
        return closer

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the records that do not fit, which :meth:`read` leaves out, in the order of the files.

        Raises:
            SchemaEvolved: a record does not fit because a number needs a wider type, which the schema mode accepts.
            BadFile: the file of the first record beyond ``max_bad_records``.
        """
        for bad in self.bad_files(spark, files, pinned):
            raise bad
        return self._checker.check(spark, files, PinnedSchema.of(pinned)).bad_records

    def _bad_file(self, error: Exception, paths: Iterable[str]) -> BadFile | None:
        return find_bad_file(error, paths, may_rescue=self._format.rules.may_rescue)

    def _read_failure(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str
    ) -> Exception | None:
        """Return the error of a read without a write; None if the read succeeds.

        A Connect server keeps only the first line of an error if one of its causes has no text.
        """
        try:
            self.read(spark, files, pinned).write.format("noop").mode("overwrite").save()
        except Exception as error:  # noqa: BLE001 - it is what was asked for
            return error
        return None

    def find_similar(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str, bad: BadFile | None
    ) -> Sequence[BadFile]:
        """Return the files that are bad, as far as one check shows; with ``bad``, those for the same reason.

        Empty if ``max_bad_records`` lets files with bad records load.
        """
        if bad is not None and bad.code == BAD_RECORD and self._dataflow.max_bad_records:
            return ()
        _, bad_files = self._judge.judge(spark, files, PinnedSchema.of(pinned))
        return [candidate for candidate in bad_files if bad is None or candidate.code == bad.code]
