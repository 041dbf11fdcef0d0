"""Files looked through before they are loaded: what of them cannot be loaded exactly (docs/guide-files.md, Exact values)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.errors import BadFile, StrandlineError
from partitions.path.source import SourceFile
from resources.connections.object_store_errors import spark_failure
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.failures import bad_document, bad_file, why_unreadable
from resources.sources.files.folders import in_wrong_folders
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.spark.process import engine_lost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileChecker:
    """Looks through files of one format, and keeps the last answer: reads, bad records and new columns ask for the same one."""

    def __init__(self, form: FormatReader) -> None:
        """Use what reads the files; nothing was looked at yet."""
        self._format = form
        self._last: tuple[PinnedSchema, frozenset[SourceFile], CheckedFiles] | None = None

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Return what of files cannot be loaded exactly with a schema; empty files have nothing."""
        filled = [file for file in files if file.size > 0]
        if self._last is None or self._last[:2] != (pinned, frozenset(filled)):
            misplaced = in_wrong_folders(filled, pinned)
            placed = [file for file in filled if file.path not in misplaced]
            checked = self._look_through(spark, placed, pinned)
            checked = replace(checked, bad_files={**misplaced, **checked.bad_files})
            self._last = (pinned, frozenset(filled), checked)
        return self._last[2]

    def _look_through(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> CheckedFiles:
        """Check files; one that does not even read, such as a torn archive, is bad, and the others are checked without it."""
        if not files:
            return CheckedFiles()
        try:
            return self._format.check(spark, files, pinned)
        except StrandlineError:
            raise
        except Exception as error:
            paths = [file.path for file in files]
            bad = bad_file(error, paths, may_rescue=self._format.may_rescue) or first_unreadable(
                files,
                error,
                lambda file: self._format.check(spark, [file], pinned),
                may_rescue=self._format.may_rescue,
            )
            if bad is None:
                raise
            rest = self._look_through(spark, [file for file in files if file.path != bad.path], pinned)
            return replace(rest, bad_files={bad.path: bad, **rest.bad_files})


def first_unreadable(
    files: Sequence[SourceFile],
    error: Exception,
    attempt: Callable[[SourceFile], object],
    *,
    may_rescue: bool,
) -> BadFile | None:
    """Return the first file that fails alone, where Spark's error names none; None if it is no file's fault."""
    from pyspark.errors import PySparkException

    store = spark_failure(str(error))
    is_of_a_store = store is not None and store[1].transient
    lacks_reader = "Failed to find data source" in str(error)
    if not isinstance(error, PySparkException) or engine_lost(error) or is_of_a_store or lacks_reader:
        return None
    for file in files if len(files) > 1 else ():
        try:
            attempt(file)
        except StrandlineError:
            continue
        except Exception as own:  # noqa: BLE001 - it is what was looked for
            why = f"it does not read: {why_unreadable(own)}"
            return bad_file(own, [file.path], may_rescue=may_rescue) or bad_document(file.path, why)
    why = f"it does not read: {why_unreadable(error)}"
    return bad_document(files[0].path, why) if len(files) == 1 else None
