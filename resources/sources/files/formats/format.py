"""The contracts of a file format: reading and checking its files, and finding their columns.

Belongs here: the contracts, and defaults that formats share. Each format has one module for each contract.
The user's options of a format are in ``partitions.sources.formats``.
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
from resources.sources.files.failures import bad_document_error
from resources.sources.files.formats.schema_rules import SchemaRules
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, rescued_columns
from resources.sources.files.scan import RewrittenScanner, Scanner
from resources.sources.files.spark_failures import find_bad_file
from resources.sources.files.type_conversion import convert_exactly
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_ENDING = re.compile(r"(?:\.\w+){0,2}$", re.ASCII)
"""The ending of a name, by which Spark decompresses."""

CORRUPT = "_corrupt_record"
"""The column of a scan for the text of a record that does not parse."""


class FormatReader(ABC):
    """A reader of the files of one format under a root.

    Attributes:
        READER: the name of Spark's reader.
        HAS_TYPES: whether files carry their columns' types, so that one with unreadable types is bad.
        PACKAGE: the Maven coordinates of the reader; None: Spark has it.
        READS_DOCUMENTS: whether a file is one document, whose records are no lines.
        place: the root.
        source: the definition of the source.
        scanner: scans files where they lie.
        dataflow: the definition.
        staging: takes rows that Spark cannot read where they lie.
        rules: the rules of the schema mode.
        copies: copies of files that Spark would misread.
        columns: finds the columns of files.
    """

    READER: ClassVar[str]
    HAS_TYPES: ClassVar[bool] = False
    PACKAGE: ClassVar[str | None] = None
    READS_DOCUMENTS: ClassVar[bool] = False

    columns: FileColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; open nothing.

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
        """The warnings about the files read so far, each once."""
        return ()

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option] | None:
        """Return the default reader options for a file; the user's options override them.

        Args:
            path: a file's path.
            infer: whether Spark infers the schema.
        """

    def reader_options(self, path: str, *, infer: bool) -> dict[str, str]:
        """Return all reader options for a file, the user's included, as texts."""
        options = {**(self.options(path, infer=infer) or {}), **self.source.options}
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in options.items()
        }

    @property
    def added_columns(self) -> Mapping[str, str]:
        """The columns that reading adds to those of the records, with their types in Spark's words."""
        return {}

    @property
    def own_options(self) -> Mapping[str, str]:
        """The user's reader options, as texts."""
        return {name: str(value) for name, value in self.source.options.items()}

    def has_rows(self, file: SourceFile) -> bool:
        """Return whether a file may have rows; one of 0 bytes never has."""
        return file.size > 0

    def scan_key(self, _path: str, /) -> str:
        """Return the key that separates scans: files of one scan share it."""
        return ""

    def schema_of_file(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema of a file, without reading the columns of its folders from records."""
        return pinned.for_folders(folder_names([file.path]))

    def locate_rows(
        self, files: Sequence[SourceFile], _pinned: PinnedSchema, bad_texts: Mapping[str, Collection[str]], /
    ) -> Mapping[str, Scanner]:
        """Return the scanner of each file, by path: of the file itself, or of its staged rows.

        Args:
            files: files with rows.
            _pinned: their schema.
            bad_texts: by path, the texts of lines that :meth:`check` found bad; staged copies lack them.

        Raises:
            BadFile: the rows of a file cannot be staged.
        """
        rewritten: dict[Rewrite | None, dict[SourceFile, Collection[str]]] = {}
        for file in files:
            rewrite, texts = self.rewrite_of(file.path), bad_texts.get(file.path, ())
            if rewrite is not None or texts:
                rewritten.setdefault(rewrite, {})[file] = texts
        scanners = dict.fromkeys((file.path for file in files), self.scanner)
        for rewrite, copied in rewritten.items():
            self.copies.write_copies(copied, self.header_line, rewrite)
            folder = self.staging.folder
            scanner = Scanner(folder) if rewrite is None else RewrittenScanner(folder, REWRITTEN_ENDING)
            scanners |= {file.path: scanner for file in copied}
        return scanners

    def rewrite_of(self, path: str) -> Rewrite | None:
        """Return the function that rewrites a file whose values Spark would change, if it would.

        Spark changes values in some encodings and compressed files. None: the file is read as it is.
        """

    def has_folder_columns(self, _path: str, /) -> bool:
        """Return whether Spark adds the columns of folders when it reads the file."""
        return True

    def header_line(self, file: SourceFile) -> str | None:
        """Return the text of a file's header; None if its first record is no header."""

    def schemas(
        self,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType] | None:
        """Return, by path, the schemas to read files with where they differ from the pinned one.

        :func:`as_times` converts the rows.
        """

    def scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType | None,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Return files as Spark's reader returns them."""
        options = self.reader_options(files[0].path, infer=schema is None)
        return (scanner or self.scanner).scan(spark, files, schema, self.READER, options, **changes)

    def own_schemas(
        self, _spark: SparkSession, files: Sequence[SourceFile], data: StructType, /
    ) -> Mapping[str, StructType]:
        """Return, by path, the schemas that read all content of files; files that need none are missing."""
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
        """Return the pinned columns of files, and ``_rescued_data`` with values that do not fit.

        Args:
            spark: a session.
            files: the files of one schema.
            own: that schema, by :meth:`own_schemas`.
            data: the pinned columns that files have.
            folders: the pinned columns that folders give.
            scanner: the files' scanner.
        """
        read = data if own is None else own
        rows = self.scan_rows(spark, files, read, scanner)
        return rescued_columns(rows, read, data, folders, self.parse_value)

    def parse_value(self, file_field: StructField, pinned_field: StructField) -> Column | None:
        """Return a file's value as a pinned column's; NULL if the type does not hold it exactly.

        None if no value of the file's column fits.
        """
        return convert_exactly(file_field, pinned_field)

    def check(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> CheckedFiles | None:
        """Check files before they are loaded, and return what cannot be loaded exactly.

        Args:
            spark: a session.
            files: files with content.
            pinned: the schema to load them with.
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
        """Return the rows of files, as Spark reads them unless a format overrides it."""
        return self.scan(spark, files, schema, scanner, **changes)

    def find_exact_error(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return the exact error of a file that Spark failed at; None if a closer check finds none."""


class FileColumns(ABC):
    """A finder of the columns of files.

    Attributes:
        valueless: the columns that the last call of :meth:`infer` has made text because no file had a value there.
    """

    def __init__(self, form: FormatReader) -> None:
        """Store the format's reader; read nothing."""
        self._form = form
        self.valueless: Sequence[str] = ()

    @abstractmethod
    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of these files; None if there are none.

        Raises:
            BadFile: a file contradicts the others, or cannot be read.
        """

    def infer_by_spark(self, spark: SparkSession, files: Sequence[SourceFile], **changes: str) -> StructType:
        """Return the columns that Spark's reader infers.

        For whole documents Spark uses Hadoop's globs, which refuse colons in paths: such files are copied
        first.

        Raises:
            BadFile: a copy cannot be read.
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
                bad = find_bad_file(error, copies)
                if bad is None:
                    raise
                raise bad_document_error(copies[bad.path].path, bad.why) from error

    def with_empty_texts(
        self, spark: SparkSession, files: Sequence[SourceFile], schema: Schema
    ) -> Schema | None:
        """Return inferred columns, with text where records hold empty texts, which Spark takes for no value."""

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]] | None:
        """Return the column names in each file's header or records, case-folded, by path.

        Files that do not tell their names are missing.

        Args:
            spark: a session.
            files: files with records.
            names: the names to look for; others may be missing from the result.
        """

    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType] | None:
        """Return the columns of files that may differ from the pinned schema.

        The result is keyed by the path of one file that has the columns. A format whose values are texts
        gives a pinned column its pinned type: its values imply no other.

        Args:
            spark: a session.
            files: files with content.
            pinned: the schema.
            check: returns the result of :meth:`FormatReader.check` for these files, and perhaps for others;
                called at most once.
        """

    def wider_integers(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wider types for integers that do not fit.

        None if all fit, or if files carry their types.
        """
