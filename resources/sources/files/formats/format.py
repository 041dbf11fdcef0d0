"""The contracts of a format of files: how Spark scans them and what is wrong with one that is bad, and how their columns are found.

Belongs here: the contracts, and what formats have in common unless one of them says otherwise. Each format has a module for each of both. What a
user may say of a format is in ``partitions.sources.formats``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.schema_types import Schema
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.copies import REWRITTEN_ENDING, FileCopies, Rewrite
from resources.sources.files.failures import bad_document
from resources.sources.files.formats.schema_rules import SchemaRules
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, rescued_columns, surviving
from resources.sources.files.scan import RewrittenScanner, Scanner
from resources.sources.files.spark_failures import bad_file
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_ENDING = re.compile(r"(?:\.\w+){0,2}$", re.ASCII)
"""How a name ends, by which Spark unpacks."""

CORRUPT = "_corrupt_record"
"""The column of a scan for the text of a record that does not parse."""


class FormatReader(ABC):
    """Files of one format under a root.

    Attributes:
        READER: the name of Spark's reader.
        TELLS_TYPES: whether files tell the types of their columns: one whose types do not read is bad.
        PACKAGE: the Maven coordinates of the reader; None: Spark has it.
        READS_DOCUMENTS: whether a file is one document, whose records are no lines.
        place: the root.
        source: what the definition says of the files.
        scanner: scans them where they lie.
        dataflow: the definition.
        staging: takes rows that Spark cannot read where they lie.
        rules: what the schema mode asks of files.
        copies: of files that Spark would misread.
        columns: finds the columns of files.
    """

    READER: ClassVar[str]
    TELLS_TYPES: ClassVar[bool] = False
    PACKAGE: ClassVar[str | None] = None
    READS_DOCUMENTS: ClassVar[bool] = False

    columns: FileColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Use a root, and what a definition says of the files below it; nothing is opened.

        Args:
            place: the root.
            dataflow: the definition.
            staging: takes rows that Spark cannot read where they lie.
        """
        self.place, self.source, self.scanner = place, dataflow.files, Scanner(place)
        self.dataflow, self.staging, self.rules = dataflow, staging, SchemaRules(dataflow)
        self.copies = FileCopies(place, staging, self.own_options)

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should hear of the files that were read so far, each once."""
        return ()

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option] | None:
        """Return what Spark's reader is told of files such as this one, unless the user says otherwise.

        Args:
            path: of a file.
            infer: whether the schema is asked for.
        """

    def reader_options(self, path: str, *, infer: bool) -> dict[str, str]:
        """Return all that Spark's reader is told of files such as this one, as texts."""
        options = {**(self.options(path, infer=infer) or {}), **self.source.options}
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in options.items()
        }

    @property
    def own_options(self) -> Mapping[str, str]:
        """What the definition tells Spark's reader, as texts."""
        return {name: str(value) for name, value in self.source.options.items()}

    def has_rows(self, file: SourceFile) -> bool:
        """Return whether a file may have rows: one of 0 bytes has none, whatever its format."""
        return file.size > 0

    def apart(self, _path: str, /) -> str:
        """Return what the files of one scan must have in common, as their paths tell it."""
        return ""

    def beside_folders(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema of a file, in which the columns that its folders name are not read from its records."""
        return pinned.beside(spellings([file.path]))

    def located(
        self, files: Sequence[SourceFile], _pinned: PinnedSchema, left_out: Mapping[str, Collection[str]], /
    ) -> Mapping[str, Scanner]:
        """Return what scans each of these files, by path: where they lie, or where their rows were put for Spark.

        Args:
            files: with rows.
            pinned: their schema.
            left_out: by path, the texts of lines that :meth:`check` has told as bad; the copy of a file lacks them.

        Raises:
            BadFile: the rows of a file cannot be had.
        """
        rewritten: dict[Rewrite | None, dict[SourceFile, Collection[str]]] = {}
        for file in files:
            rewrite, texts = self.rewrite_of(file.path), left_out.get(file.path, ())
            if rewrite is not None or texts:
                rewritten.setdefault(rewrite, {})[file] = texts
        scanners = dict.fromkeys((file.path for file in files), self.scanner)
        for rewrite, copied in rewritten.items():
            self.copies.put(copied, self.header_line, rewrite)
            folder = self.staging.folder
            scanner = Scanner(folder) if rewrite is None else RewrittenScanner(folder, REWRITTEN_ENDING)
            scanners |= {file.path: scanner for file in copied}
        return scanners

    def rewrite_of(self, path: str) -> Rewrite | None:
        """Return what rewrites a file whose values Spark would change, in its encoding or packed, so that a copy is read; None if it is read as it is."""

    def tells_folders(self, _path: str, /) -> bool:
        """Return whether Spark adds the columns of folders where it reads such a file."""
        return True

    def header_line(self, file: SourceFile) -> str | None:
        """Return the text of the first record of a file if it is none, but names the columns; None if all are records."""

    def schemas(
        self,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType] | None:
        """Return the schemas to read some files with, by path, as far as these differ from the pinned one (:func:`as_times` changes the rows)."""

    def scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType | None,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Return files as Spark reads them, before anything else."""
        options = self.reader_options(files[0].path, infer=schema is None)
        return (scanner or self.scanner).scan(spark, files, schema, self.READER, options, **changes)

    def own_schemas(
        self, _spark: SparkSession, files: Sequence[SourceFile], data: StructType, /
    ) -> Mapping[str, StructType]:
        """Return the schemas to read files with, by path, so that all that they hold is read; those of files that need none are missing."""
        return self.schemas(files, data) or {}

    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        folders: Sequence[FolderValue],
        scanner: Scanner,
    ) -> DataFrame:
        """Return the pinned columns of files, and ``_rescued_data`` with what does not fit.

        Args:
            spark: a session.
            files: of one schema.
            own: that schema, by :meth:`own_schemas`.
            data: the pinned columns that files have.
            folders: the pinned columns that folders tell.
            scanner: of the files.
        """
        read = data if own is None else own
        rows = self.scan_rows(spark, files, read, scanner)
        return rescued_columns(rows, read, data, folders, self.parsed)

    def parsed(self, file_field: StructField, pinned_field: StructField) -> Column | None:
        """Return the value of a pinned column that a value of a file's column means, NULL if its type does not hold it exactly; None if it holds none."""
        return surviving(file_field, pinned_field)

    def check(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> CheckedFiles | None:
        """Look through files before they are loaded, and return what of them cannot be loaded exactly.

        Args:
            spark: a session.
            files: with content.
            pinned: the schema that they are to be loaded with.
        """

    def scan_rows(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Return the rows of files: as Spark reads them, unless some are read otherwise."""
        return self.scan(spark, files, schema, scanner, **changes)

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return what is wrong with a file that Spark has failed at, if a closer look tells."""


class FileColumns(ABC):
    """Finds the columns of files."""

    def __init__(self, form: FormatReader) -> None:
        """Look at no file yet; ``form`` reads them."""
        self._form = form

    @abstractmethod
    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns that stand in these files; None if none does.

        Raises:
            BadFile: a file contradicts the others, or does not read.
        """

    def by_spark(self, spark: SparkSession, files: Sequence[SourceFile], **changes: str) -> StructType:
        """Return the columns that Spark's reader infers.

        It looks at whole documents through Hadoop's globs, which take no colon in a path: such files are copied for this look.

        Raises:
            BadFile: a copy does not read.
        """
        is_refused = self._form.READS_DOCUMENTS and any(
            ":" in f"{self._form.place.spark_url.rpartition('://')[2]}/{file.path}" for file in files
        )
        if not is_refused:
            return self._form.scan(spark, files, None, **changes).schema
        with self._form.staging.emptied():
            copies = {f"{number}{_ENDING.findall(file.path)[0]}": file for number, file in enumerate(files)}
            folder = self._form.staging.folder
            for name, file in copies.items():
                with store_failures(self._form.place):
                    content = self._form.place.store.get(file.path).bytes()
                with store_failures(folder):
                    folder.store.put(name, content)
            scanned = [replace(file, path=name) for name, file in copies.items()]
            try:
                return self._form.scan(spark, scanned, None, Scanner(folder), **changes).schema
            except Exception as error:
                bad = bad_file(error, copies)
                if bad is None:
                    raise
                raise bad_document(copies[bad.path].path, bad.why) from error

    def with_empty_texts(
        self, spark: SparkSession, files: Sequence[SourceFile], schema: Schema
    ) -> Schema | None:
        """Return the columns that Spark inferred of files with texts where records hold empty ones, which it takes for no value."""

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]] | None:
        """Return the names of columns that each file has in its header or in any record, case-folded, by path; of a file that does not tell nothing.

        Args:
            spark: a session.
            files: with records.
            names: that are asked for; of others nothing need be told.
        """

    def others(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType] | None:
        """Return the columns of files that may have others than the pinned schema, each by the path of a file that has them.

        A format whose values are texts gives a column that is pinned its pinned type: its values tell no other.

        Args:
            spark: a session.
            files: with content.
            pinned: the schema.
            check: returns what :meth:`FormatReader.check` tells of these files, and perhaps of others; it is asked for once.
        """

    def wider(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wider types for whole numbers that do not fit; None if all fit, or each file tells its types."""
