"""Scan files with Spark, whatever characters their names contain (docs/explanation/adr/0006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.records.options import without_encoding
from resources.connections.places import Place
from resources.sources.files.paths import escape_globs, is_glob, is_uri_safe, relative_path, text_column
from resources.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PROTECTING = {
    "mode": "FAILFAST",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "recursiveFileLookup": "true",  # Strandline reads the folders: Spark would guess types, and refuse mixed layouts
}
"""Options that users cannot override: without them Spark would silently skip or change rows."""


class Scanner:
    """A scanner of the files under a root."""

    def __init__(self, place: Place) -> None:
        """Store the root."""
        self.place = place

    def scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType | None,
        reader: str,
        options: Mapping[str, str],
        **changes: str,
    ) -> DataFrame:
        """Return the files as Spark's reader returns them.

        Args:
            spark: a session.
            files: the files of one scan (:meth:`scan_groups`).
            schema: the schema to read with; None infers it.
            reader: the name of Spark's reader.
            options: the options of the reader.
            changes: options that override those that protect a load.
        """
        options = {**self.options_of(options), **_PROTECTING, **changes}
        if not self.needs_own_scan(files[0]):
            spark_reader = spark.read.format(reader).options(**options)
            root = escape_globs(self.place.spark_url)
            paths = [f"{root}/{self.spark_path(file)}" for file in files]
            return (spark_reader if schema is None else spark_reader.schema(schema)).load(paths)
        # Spark Connect drops the reader's option against globs, but keeps a view's.
        path = f"{self.place.spark_url}/{self.spark_path(files[0])}"
        view = f"odd_{uuid4().hex}"
        view_options = ", ".join(
            f"{literal(key)} {literal(value)}"
            for key, value in {**options, "path": path, "__globPaths__": "false"}.items()
        )
        columns = f" ({schema.toDDL()})" if schema is not None else ""
        spark.sql(f"CREATE TEMPORARY VIEW {view}{columns} USING {reader} OPTIONS ({view_options})")
        return spark.table(view)

    def scan_groups(self, files: Sequence[SourceFile]) -> list[list[SourceFile]]:
        """Split files into groups that Spark can read in one scan each."""
        plain = [file for file in files if not self.needs_own_scan(file)]
        return [*([plain] if plain else []), *([file] for file in files if self.needs_own_scan(file))]

    def path_of(self, files: Sequence[SourceFile]) -> Column:
        """Return the column with the path of each row's file.

        A single file gives a literal, since Spark reports no paths for a view.
        """
        if len(files) == 1:
            return text_column(files[0].path)
        return self.relative_path(plain=all(is_uri_safe(file.path) for file in files))

    def options_of(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the reader options that apply to the scanned files."""
        return options

    def spark_path(self, file: SourceFile) -> str:
        """Return the path that Spark reads for a file, relative to the root."""
        return file.path

    def relative_path(self, *, plain: bool) -> Column:
        """Return the column with the path that Spark reports; ``plain``: Spark does not percent-encode it."""
        return relative_path(self.place, plain=plain)

    def needs_own_scan(self, file: SourceFile) -> bool:
        """Return whether a file needs its own scan because Spark would take its path for a glob.

        Glob characters in the root can be escaped, unless the path has a colon, too: Hadoop's globs fail on colons.
        """
        root = self.place.spark_url.rpartition("://")[2]
        return is_glob(file.path) or (is_glob(root) and ":" in f"{root}/{file.path}")


class StagedScanner(Scanner):
    """A scanner of staged copies, named as their files plus an ending; rows report the files' paths."""

    def __init__(self, place: Place, ending: str) -> None:
        """Store the folder of the staging, and the ending."""
        super().__init__(place)
        self._ending = ending

    def spark_path(self, file: SourceFile) -> str:
        """Return the path of a file's staged copy."""
        return file.path + self._ending

    def relative_path(self, *, plain: bool) -> Column:
        """Return the path without the ending of the staged copy."""
        from pyspark.sql import functions as F

        path = super().relative_path(plain=plain)
        return F.substr(path, F.lit(1), F.length(path) - F.lit(len(self._ending)))


class RewrittenScanner(StagedScanner):
    """A scanner of copies that were rewritten in UTF-8."""

    @override
    def options_of(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options without the encoding: it is the encoding of the original files."""
        return without_encoding(options)
