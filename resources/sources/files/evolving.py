"""The pinned schema of files that follows them: new columns of files and folders, and wider types (docs/schemas.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, SchemaError
from partitions.evolution import Change, differences
from partitions.path.source import SourceFile
from partitions.schema_types import Schema, check_names
from partitions.untyped_columns import with_first_types
from resources.sources.evolving import as_schema, changed, check_free, evolution_of, explained
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.checker import FileChecker
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class SchemaFollower:
    """Follows the schema of files under a root."""

    def __init__(self, form: FormatReader, checker: FileChecker, dataflow: Dataflow) -> None:
        """Use what reads the files, and what looks through them; nothing was looked at yet."""
        self._format, self._checker, self._dataflow = form, checker, dataflow
        self._mode = (dataflow.target.schema_mode, dataflow.name)
        self._looked_at: tuple[PinnedSchema | None, set[SourceFile]] = (None, set())

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> None:
        """Look at files that were not looked at yet with this schema.

        Raises:
            SchemaEvolved: some have columns that the pinned schema gets.
            BadFile: its code is the reason: a file has columns or types that the mode does not accept.
        """
        if self._dataflow.target.schema_mode != "merge":
            return
        known = self._looked_at[1] if self._looked_at[0] == pinned else set()
        new = [file for file in files if file.size > 0 and file not in known]
        grown, changes = pinned, list[Change]()
        where = ""
        for path, schema in self._incoming(
            spark, new, pinned, lambda: self._checker.check(spark, files, pinned)
        ):
            evolution = self._evolution(grown, schema, path)
            if evolution:
                where = where or f"file {path}"
                grown = replace(grown, columns=json.dumps(evolution[0]))
                changes += evolution[1]
        grown = _with_folders(grown, new, changes)
        if changes:
            listed = where or f"file {new[0].path}"
            raise changed(grown, json.loads(grown.columns), tuple(changes), listed)
        self._looked_at = (pinned, known | set(new))

    def check_first_types(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, checked: CheckedFiles
    ) -> None:
        """Look at files with fields that the pinned schema lacks, as ``checked`` tells them: some of these may have had no type yet.

        Raises:
            SchemaEvolved: they have now, whatever the mode is.
        """
        if not pinned.has_untyped:
            return
        known = json.loads(pinned.columns)
        grown = known
        for _, schema in self._incoming(spark, files, pinned, lambda: checked):
            grown = with_first_types(grown, as_schema(schema))
        if changes := tuple(differences(known, grown)):
            raise changed(pinned, grown, changes, f"file {files[0].path}")

    def check_bad_record(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> None:
        """Look whether records do not parse since a number does not fit its column.

        Raises:
            SchemaEvolved: a wider type takes them.
        """
        if self._dataflow.target.schema_mode != "merge":
            return
        wider = self._format.wider_columns(spark, files, pinned)
        if wider is None:
            return
        evolution = evolution_of(*self._mode, pinned, wider, "files")
        if evolution.changes:
            raise changed(pinned, evolution.schema, evolution.changes, f"file {files[0].path}")

    def _incoming(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> list[tuple[str, StructType]]:
        if not files:
            return []
        try:
            return list(self._format.other_columns(spark, files, pinned, check).items())
        except SchemaError as error:
            if len(files) > 1:
                return [columns for file in files for columns in self._incoming(spark, [file], pinned, check)]
            raise self._refused(error, files[0].path) from error

    def _evolution(
        self, pinned: PinnedSchema, schema: StructType, path: str
    ) -> tuple[Schema, tuple[Change, ...]] | None:
        try:
            check_names(as_schema(schema))
            evolution = evolution_of(*self._mode, pinned, schema, f"file {path}")
            new = (change.field for change in evolution.changes if change.was is None)
            check_free(self._dataflow, new, f"file {path}")
        except SchemaError as error:
            raise self._refused(error, path) from error
        return (evolution.schema, evolution.changes) if evolution.action != "none" else None

    def _refused(self, error: SchemaError, path: str) -> BadFile:
        """What the mode does not accept, as what is wrong with a file: those before it are loaded."""
        said = error if error.choices else explained(error, *self._mode, f"file {path}")
        return BadFile(said.message, path=path, why=said.message, code=error.reason, choices=said.choices)


def _with_folders(pinned: PinnedSchema, files: Sequence[SourceFile], changes: list[Change]) -> PinnedSchema:
    """The schema with the columns that folders name, which are text; ``changes`` gets them."""
    columns = json.loads(pinned.columns)
    known = {name.casefold() for name in pinned.struct.names}
    new = [
        name
        for lower, name in spellings(file.path for file in files).items()
        if lower.casefold() not in known
    ]
    if not new:
        return pinned
    changes += [Change(name, None, "string") for name in new]
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in new]
    named = {name.casefold() for name in new}  # one of records may have had no value, and so no type, yet
    columns["fields"] = [
        field for field in columns["fields"] if field["name"].casefold() not in named
    ] + fields
    return replace(pinned, columns=json.dumps(columns), folders=(*pinned.folders, *new))
