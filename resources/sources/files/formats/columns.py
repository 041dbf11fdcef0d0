"""The contract of what finds the columns of files of one format: their names, and the first types that hold their values. One module a format."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from partitions.schema_types import Schema
from resources.listing.failures import store_failures
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.failures import bad_document
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.spark_failures import bad_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_ENDING = re.compile(r"(?:\.\w+){0,2}$", re.ASCII)
"""How a name ends, by which Spark unpacks."""


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
