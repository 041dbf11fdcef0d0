"""Check files before they are loaded, and find what cannot be loaded exactly.

See docs/reference/files.md, Exact values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.ddl import parse_ddl
from partitions.errors import BadFile, StrandlineError
from partitions.path.source import SourceFile
from resources.connections.object_store_errors import spark_failure
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.encodings import check_encoding
from resources.sources.files.failures import bad_document_error, no_known_columns_error
from resources.sources.files.folders import find_wrong_folders
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.reader import FilesReader
from resources.sources.files.required import missing_value_errors
from resources.sources.files.spark_failures import explain_unreadable, find_bad_file
from resources.spark.process import describe_engine_loss

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileChecker:
    """A checker of files of one format; it keeps the last result, which several callers ask for."""

    def __init__(self, form: FormatReader, reader: FilesReader, dataflow: Dataflow) -> None:
        """Store the format, its reader and the definition; check nothing."""
        self._format, self._reader, self._dataflow = form, reader, dataflow
        self._last: tuple[PinnedSchema, frozenset[SourceFile], CheckedFiles] | None = None

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Return what cannot be loaded exactly with a schema; empty files are always fine."""
        nonempty_files = [file for file in files if file.size > 0]
        if self._last is None or self._last[:2] != (pinned, frozenset(nonempty_files)):
            check_encoding(spark, self._dataflow.files.options, self._dataflow.name)
            misplaced = find_wrong_folders(nonempty_files, pinned)
            placed = [file for file in nonempty_files if file.path not in misplaced]
            checked = self._check_readable(spark, placed, pinned)
            checked = replace(checked, bad_files={**misplaced, **checked.bad_files})
            self._last = (pinned, frozenset(nonempty_files), checked)
        return self._last[2]

    def _check_readable(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> CheckedFiles:
        """Check files; an unreadable one is bad, and the others are checked without it.

        An unreadable file is a torn archive, for example.
        """
        if not files:
            return CheckedFiles()
        try:
            return self._check_together(spark, files, pinned)
        except StrandlineError:
            raise
        except Exception as error:
            paths = [file.path for file in files]
            bad = find_bad_file(
                error, paths, may_rescue=self._format.rules.may_rescue
            ) or find_unreadable_file(
                files,
                error,
                lambda file: self._check_together(spark, [file], pinned),
                may_rescue=self._format.rules.may_rescue,
            )
            if bad is None:
                raise
            rest = self._check_readable(spark, [file for file in files if file.path != bad.path], pinned)
            return replace(rest, bad_files={bad.path: bad, **rest.bad_files})

    def _check_together(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> CheckedFiles:
        checked = self._format.check(spark, files, pinned) or CheckedFiles()
        without_columns = self._files_without_known_columns(spark, files, pinned)
        checked = (
            replace(checked, bad_files={**without_columns, **checked.bad_files})
            if without_columns
            else checked
        )
        bad_files = self._files_without_required_values(spark, files, pinned, checked)
        return replace(checked, bad_files={**bad_files, **checked.bad_files}) if bad_files else checked

    def _files_without_known_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> dict[str, BadFile]:
        """Return the files that have none of the schema's columns, by path, where unknown fields are ignored.

        Only for formats whose files list their columns.
        """
        if not self._format.HAS_TYPES or self._dataflow.unknown_fields != "ignore":
            return {}
        expected = [field["name"] for field in json.loads(pinned.columns)["fields"]]
        expected_names = {name.casefold() for name in expected}
        return {
            path: no_known_columns_error(
                path, expected, sorted(names), is_declared=pinned.declared is not None
            )
            for path, names in (self._format.columns.names_of(spark, files, expected) or {}).items()
            if names and expected_names and not names & expected_names
        }

    def _files_without_required_values(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        checked: CheckedFiles,
    ) -> dict[str, BadFile]:
        """Return the files with a record that lacks a value of a NOT NULL column, by path."""
        declared = self._dataflow.files.declared_schema
        columns = [] if declared is None else parse_ddl(declared)
        required = [
            column.name for column in columns if column.is_required and column.name in pinned.struct.names
        ]
        bad_paths = {*checked.bad_files, *checked.unknown}
        if len(checked.bad_records) > self._dataflow.max_bad_records:
            bad_paths |= {path for path, _ in checked.bad_records}
        sound_files = [file for file in files if file.path not in bad_paths]
        if not required or not sound_files:
            return {}
        return missing_value_errors(
            lambda files_to_read: self._reader.read(
                spark, files_to_read, pinned, origin=True, bad_texts=checked.bad_texts
            ),
            sound_files,
            required,
            tuple(checked.bad_texts),
        )


def find_unreadable_file(
    files: Sequence[SourceFile],
    error: Exception,
    read: Callable[[SourceFile], object],
    *,
    may_rescue: bool,
) -> BadFile | None:
    """Return the first file that fails when it is read alone; None if no file causes the error.

    For errors of Spark that name no file.
    """
    from pyspark.errors import PySparkException

    store = spark_failure(str(error))
    is_of_a_store = store is not None and store[1].transient
    lacks_reader = "Failed to find data source" in str(error)
    if (
        not isinstance(error, PySparkException)
        or describe_engine_loss(error)
        or is_of_a_store
        or lacks_reader
    ):
        return None
    for file in files if len(files) > 1 else ():
        try:
            read(file)
        except StrandlineError:
            continue
        except Exception as own:  # noqa: BLE001 - it is what was looked for
            why = f"it cannot be read: {explain_unreadable(own)}"
            return find_bad_file(own, [file.path], may_rescue=may_rescue) or bad_document_error(
                file.path, why
            )
    why = f"it cannot be read: {explain_unreadable(error)}"
    return bad_document_error(files[0].path, why) if len(files) == 1 else None
