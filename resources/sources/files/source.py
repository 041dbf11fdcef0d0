"""Files under a root as a source: what lies there, their schema, their rows, and which of them are bad (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, StrandlineError
from partitions.loads import Lacking
from partitions.path.bad_files import FILE_VANISHED
from partitions.path.listing_positions import FromBeginning, ListingStart
from partitions.path.skipped import Skipped, joined, skip_warnings
from partitions.path.source import SourceFile
from resources import listing
from resources.connections.places import Place
from resources.listing import Budget, Listing
from resources.sources.files.checked import BadRecord
from resources.sources.files.checker import FileChecker, first_unreadable
from resources.sources.files.encodings import check_encoding
from resources.sources.files.evolving import SchemaFollower
from resources.sources.files.failures import BAD_RECORD
from resources.sources.files.formats.registry import open_format
from resources.sources.files.judging import FileJudge
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.pinning import SchemaPinner, sample_of
from resources.sources.files.plain_rows import plain_rows
from resources.sources.files.reader import FilesReader
from resources.sources.files.spark_failures import bad_file
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class FileSource:
    """The files of one dataflow."""

    def __init__(self, root: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Use a root, and what the definition says of its files; nothing is opened yet. ``staging`` takes rows that Spark cannot read there."""
        self.root, self.staging = root, staging
        self._dataflow = dataflow
        self._definition = dataflow.files
        self._format = open_format(root, dataflow, staging)
        self._reader, self._pinner = FilesReader(self._format, dataflow), SchemaPinner(self._format, dataflow)
        self._checker = FileChecker(self._format, self._reader, dataflow)
        self._follower = SchemaFollower(self._format, self._checker, dataflow)
        self._judge = FileJudge(self._format, self._checker, self._follower, dataflow)
        self._skipped: tuple[Skipped, ...] = ()

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should hear of the files that were read so far, and of names that were passed over, each once."""
        return (*self._format.remarks, *skip_warnings(self._skipped))

    def list_above(
        self,
        position: ListingStart,
        *,
        folder: str = "",
        budget: Budget | None = None,
        resume: str | None = None,
    ) -> Listing:
        """List the files above a position, relative to a folder of the root; see :func:`resources.listing.list_above`.

        What was passed over by the listings before is told with each, so that a run says it once.
        """
        root = self.root.child(folder) if folder else self.root
        step = listing.list_above(root, position, self._definition.endings, budget=budget, resume=resume)
        self._skipped = joined(self._skipped, (skipped.below(folder) for skipped in step.listed.skipped))
        return replace(step, listed=replace(step.listed, skipped=self._skipped))

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The records of all files, file by file in the order of their paths."""
        files = sorted(self.list_above(FromBeginning()).listed.files, key=lambda file: file.path)
        return plain_rows(self.root, self._definition, files, columns)

    def look(self, paths: Sequence[str]) -> dict[str, SourceFile]:
        """Return the files of these paths as they are now, without those that are gone.

        Raises:
            SourceError: as for a listing.
        """
        return listing.stat_files(self.root, paths) if paths else {}

    def check_unchanged(self, files: Sequence[SourceFile]) -> None:
        """Compare size and version of files with what was listed.

        Raises:
            BadFile: ``file_vanished`` or ``file_changed``.
            SourceError: as for a listing.
        """
        listing.check_unchanged(self.root, files)

    def pin(
        self, spark: SparkSession, files: Sequence[SourceFile], passed_over: Sequence[SourceFile] = ()
    ) -> str | None:
        """Return the schema as text: declared, or inferred from a bounded sample; None if no file of it holds a row, or no column has a type yet and the table has none of its own.

        A file that is passed over tells no type. One that stops the run is mended, and does.

        Args:
            spark: a session.
            files: that are loaded.
            passed_over: that are not. If no other file is there, their folders name the columns: without these no later file would be accepted.

        Raises:
            BadFile: a file of the sample cannot be read; or it cannot be loaded, and is to be passed over.
            ConfigurationError: Spark does not know the encoding that options name.
        """
        check_encoding(spark, self._definition.options, self._dataflow.name)
        pinned = self._pin(spark, files, passed_over)
        is_inferred = self._definition.schema_ is None
        if pinned is not None and is_inferred and self._dataflow.on_bad_file == "quarantine":
            self._judge.refuse_first_bad(spark, sample_of(files), PinnedSchema.of(pinned.to_text()))
        has_columns = pinned is not None and (pinned.struct.fields or self._dataflow.target.origin_columns)
        return pinned.to_text() if pinned is not None and has_columns else None

    def _pin(
        self, spark: SparkSession, files: Sequence[SourceFile], passed_over: Sequence[SourceFile]
    ) -> PinnedSchema | None:
        try:
            return self._pinner.pin(spark, files, passed_over)
        except StrandlineError:
            raise
        except Exception as error:
            bad = self._bad_file(error, (file.path for file in files))
            if bad is None and self._format.TELLS_TYPES:
                bad = first_unreadable(
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
        """Return the rows of exactly these files, with the pinned columns, and with ``_source_file`` if the target has it or ``origin`` says so.

        All of them are looked through first: what their columns do not hold exactly is never read.

        Raises:
            SchemaError: the folders of a file name a column that the pinned schema does not have.
            SchemaEvolved: the files have columns that the pinned schema gets.
            BadFile: the first file that cannot be loaded exactly, or that has columns which the schema mode does not accept.
        """
        schema = PinnedSchema.of(pinned)
        origin = self._dataflow.target.origin_columns if origin is None else origin
        for bad in self.bad_files(spark, files, pinned):
            raise bad
        without = self._checker.check(spark, files, schema).left_out
        return self._reader.read(spark, files, schema, origin=origin, without=without)

    def lacking(self, spark: SparkSession, files: Sequence[SourceFile], pinned: str) -> Sequence[Lacking]:
        """Return the pinned columns that some of the files do not have, as far as their headers or records tell."""
        names = PinnedSchema.of(pinned).data.fieldNames()
        names_by_path = (
            self._format.columns.names_of(spark, [file for file in files if file.size > 0], names) or {}
        )
        columns: list[Lacking] = []
        for name in names:
            without = frozenset(
                path for path, own_names in names_by_path.items() if name.casefold() not in own_names
            )
            if without:
                columns.append(Lacking(name, None if len(without) == len(names_by_path) else without))
        return columns

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the rows of files that were read before with this schema; None if only Spark can tell."""
        origin = self._dataflow.target.origin_columns
        return self._reader.columns(PinnedSchema.of(pinned), origin=origin)

    def bad_files(self, spark: SparkSession, files: Sequence[SourceFile], pinned: str) -> Sequence[BadFile]:
        """Return the files that cannot be loaded exactly, in their order.

        Raises:
            SchemaEvolved: the pinned schema gets new columns, wider types or first types from files that load; others tell none.
        """
        return self._judge.bad_files(spark, files, PinnedSchema.of(pinned))

    def find_bad_file(
        self, spark: SparkSession, files: Mapping[str, SourceFile], pinned: str, error: Exception
    ) -> BadFile | None:
        """Return the file that an error of Spark names, with its line if a record does not parse; None if it names none.

        Args:
            spark: a session.
            files: that were read, by path.
            pinned: text of the schema that they were read with.
            error: of the read, or of the write of its rows.

        Raises:
            SchemaEvolved: a record does not parse since a number needs a wider type, which the schema mode accepts.
        """
        bad = self._bad_file(error, files)
        if bad is None and "TASK_WRITE_FAILED" in str(error):
            why = self._failure_of_reading(spark, tuple(files.values()), pinned)
            bad = self._bad_file(why, files) if why else None
        if bad is None or bad.code == FILE_VANISHED:
            return bad
        closer = self._format.closer(spark, files[bad.path], PinnedSchema.of(pinned)) or bad
        if closer.code == BAD_RECORD:
            self._follower.check_bad_record(spark, tuple(files.values()), PinnedSchema.of(pinned))
        return closer

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the records that do not fit, which :meth:`read` leaves out, in the order of the files.

        Raises:
            SchemaEvolved: some do not since a number needs a wider type, which the schema mode accepts.
            BadFile: the file of the first that is more than ``max_bad_records``.
        """
        for bad in self.bad_files(spark, files, pinned):
            raise bad
        return self._checker.check(spark, files, PinnedSchema.of(pinned)).bad_records

    def _bad_file(self, error: Exception, paths: Iterable[str]) -> BadFile | None:
        return bad_file(error, paths, may_rescue=self._format.rules.may_rescue)

    def _failure_of_reading(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str
    ) -> Exception | None:
        """Why reading alone fails. A Connect server loses all but an error's first line if one of its causes has no text."""
        try:
            self.read(spark, files, pinned).write.format("noop").mode("overwrite").save()
        except Exception as error:  # noqa: BLE001 - it is what was asked for
            return error
        return None

    def find_similar(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: str, bad: BadFile
    ) -> Sequence[BadFile]:
        """Return the files that are bad in the same way, as far as one look tells.

        Where some bad records may be set aside, another file with one is no such file.
        """
        if bad.code == BAD_RECORD and self._dataflow.max_bad_records:
            return ()
        _, others = self._judge.judge(spark, files, PinnedSchema.of(pinned))
        return [other for other in others if other.code == bad.code]
