"""Files as Spark reads them, before anything else: one scan, whatever their names hold (docs/explanation/adr/0006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.records.options import without_encoding
from resources.connections.places import Place
from resources.sources.files.paths import escaped, is_glob, is_plain, relative_path, text_column
from resources.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PROTECTING = {
    "mode": "FAILFAST",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "recursiveFileLookup": "true",  # folders are ours to read: Spark would guess types, and refuse mixed layouts
}
"""Options that no user can set: without them Spark would load something else than what is there."""


class Scanner:
    """Scans files under a root."""

    def __init__(self, place: Place) -> None:
        """Use a root."""
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
        """The files as Spark reads them, before anything else.

        Args:
            spark: a session.
            files: that :meth:`together` puts into one scan.
            schema: to read with; None infers it.
            reader: the name of Spark's reader.
            options: of the reader.
            changes: options that win over those that protect a load.
        """
        options = {**self.options_of(options), **_PROTECTING, **changes}
        if not self.is_odd(files[0]):
            of_format = spark.read.format(reader).options(**options)
            root = escaped(self.place.spark_url)
            paths = [f"{root}/{self.address(file)}" for file in files]
            return (of_format if schema is None else of_format.schema(schema)).load(paths)
        # The reader's option against globs is lost on Spark Connect; a view's is not.
        path = f"{self.place.spark_url}/{self.address(files[0])}"
        view = f"odd_{uuid4().hex}"
        view_options = ", ".join(
            f"{literal(key)} {literal(value)}"
            for key, value in {**options, "path": path, "__globPaths__": "false"}.items()
        )
        columns = f" ({schema.toDDL()})" if schema is not None else ""
        spark.sql(f"CREATE TEMPORARY VIEW {view}{columns} USING {reader} OPTIONS ({view_options})")
        return spark.table(view)

    def together(self, files: Sequence[SourceFile]) -> list[list[SourceFile]]:
        """Files that Spark can be asked for in one scan."""
        plain = [file for file in files if not self.is_odd(file)]
        return [*([plain] if plain else []), *([file] for file in files if self.is_odd(file))]

    def path_of(self, files: Sequence[SourceFile]) -> Column:
        """The path of a row's file. Spark tells it of many; what is read through a view has none."""
        if len(files) == 1:
            return text_column(files[0].path)
        return self.relative_path(plain=all(is_plain(file.path) for file in files))

    def options_of(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options of a reader that hold for what is scanned."""
        return options

    def address(self, file: SourceFile) -> str:
        """What Spark is asked for, below the root."""
        return file.path

    def relative_path(self, *, plain: bool) -> Column:
        """The path of a row's file as Spark tells it; ``plain``: it does so letter by letter."""
        return relative_path(self.place, plain=plain)

    def is_odd(self, file: SourceFile) -> bool:
        """Whether Spark would take the path for a glob. A root's letters can be escaped, unless a colon is there, too: globs fail on it."""
        root = self.place.spark_url.rpartition("://")[2]
        return is_glob(file.path) or (is_glob(root) and ":" in f"{root}/{file.path}")


class StagedScanner(Scanner):
    """Scans what was staged of files, with an ending of its own behind their paths; a row's file is the source's."""

    def __init__(self, place: Place, ending: str) -> None:
        """Use the folder of the staging, and the ending."""
        super().__init__(place)
        self._ending = ending

    def address(self, file: SourceFile) -> str:
        """Return the path of what was staged of a file."""
        return file.path + self._ending

    def relative_path(self, *, plain: bool) -> Column:
        """Return the path without the ending that staging has added."""
        from pyspark.sql import functions as F

        path = super().relative_path(plain=plain)
        return F.substr(path, F.lit(1), F.length(path) - F.lit(len(self._ending)))


class RewrittenScanner(StagedScanner):
    """Scans copies that were rewritten in UTF-8."""

    @override
    def options_of(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options without the encoding, which is that of the files."""
        return without_encoding(options)
