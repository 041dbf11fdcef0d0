"""Files as Spark reads them, before anything else: one scan, whatever their names hold (docs/adr/0006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.path.source import SourceFile
from partitions.sources import FilesSource
from resources.places import Place
from resources.sources.files.paths import escaped, is_glob, is_plain, relative_path, separator, text_column
from resources.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SPARK_FORMAT = {"ndjson": "json", "json": "json", "csv": "csv", "parquet": "parquet"}


class Scanner:
    """Scans files under a root."""

    def __init__(self, place: Place, source: FilesSource) -> None:
        """Use a root and what the user declared of its files."""
        self.place, self.source = place, source

    def scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType | None,
        form: str | None = None,
        **changes: str,
    ) -> DataFrame:
        """The files as Spark reads them, before anything else."""
        options = self._options(files, schema is None) | changes
        form = form or _SPARK_FORMAT[self.source.format]
        if not self.is_odd(files[0]):
            reader = spark.read.format(form).options(**options)
            root = escaped(self.place.spark_url)
            paths = [f"{root}/{file.path}" for file in files]
            return (reader if schema is None else reader.schema(schema)).load(paths)
        # The reader's option against globs is lost on Spark Connect; a view's is not.
        path = f"{self.place.spark_url}/{files[0].path}"
        view = f"odd_{uuid4().hex}"
        given = ", ".join(
            f"{literal(key)} {literal(value)}"
            for key, value in {**options, "path": path, "__globPaths__": "false"}.items()
        )
        columns = f" ({schema.toDDL()})" if schema is not None else ""
        spark.sql(f"CREATE TEMPORARY VIEW {view}{columns} USING {form} OPTIONS ({given})")
        return spark.table(view)

    def together(self, files: Sequence[SourceFile]) -> list[list[SourceFile]]:
        """Files that Spark can be asked for in one scan."""
        plain = [file for file in files if not self.is_odd(file)]
        return [*([plain] if plain else []), *([file] for file in files if self.is_odd(file))]

    def path_of(self, files: Sequence[SourceFile]) -> Column:
        """The path of a row's file. Spark tells it of many; what is read through a view has none."""
        if len(files) == 1:
            return text_column(files[0].path)
        return relative_path(self.place, plain=all(is_plain(file.path) for file in files))

    def is_odd(self, file: SourceFile) -> bool:
        """Whether Spark would take the path for a glob. A root's letters can be escaped, unless a colon is there, too: globs fail on it."""
        root = self.place.spark_url.rpartition("://")[2]
        return is_glob(file.path) or (is_glob(root) and ":" in f"{root}/{file.path}")

    def _options(self, files: Sequence[SourceFile], infer: bool) -> dict[str, str]:
        options: dict[str, str | int | float | bool] = {}
        if self.source.format == "csv":
            # Without the check of the header, reordered columns would be read into each other.
            options = {
                "header": "true",
                "enforceSchema": str(infer).lower(),
                "sep": separator(files[0].path),
                "inferSchema": str(infer).lower(),
                "escape": '"',  # a quote in quotes is doubled (RFC 4180); Spark's own way is a backslash
            }
        if self.source.format == "json":
            options = {"multiLine": "true"}
        if self.source.format == "parquet" and infer:
            options = {"mergeSchema": "true"}
        ours = {
            "mode": "FAILFAST",
            "ignoreCorruptFiles": "false",
            "ignoreMissingFiles": "false",
            "recursiveFileLookup": "true",  # folders are ours to read: Spark would guess types, and refuse mixed layouts
        }
        user = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.source.options.items()
        }
        return {**options, **user, **ours}  # type: ignore[dict-item]
