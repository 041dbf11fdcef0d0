"""Extend the pinned schema with new columns and wider types (docs/reference/schemas.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, SchemaError, SchemaEvolved
from partitions.evolution import SchemaChange, schema_changes
from partitions.path.source import SourceFile
from partitions.schema_types import Schema, check_field_names
from partitions.untyped_columns import with_first_types
from resources.sources.evolving import as_schema, check_free, evolution_of, explain_refusal, schema_evolved
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.checker import FileChecker
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class SchemaGrowth(NamedTuple):
    """The changes that some files make to a pinned schema.

    Attributes:
        schema: the pinned schema with new columns, wider types and first types.
        changes: the changes; none if the schema is unchanged.
        where: the first file that needs a change, for messages.
    """

    schema: PinnedSchema
    changes: tuple[SchemaChange, ...] = ()
    where: str = ""

    @property
    def error(self) -> SchemaEvolved:
        """The error that restarts a slice with the new schema."""
        return schema_evolved(self.schema, json.loads(self.schema.columns), self.changes, self.where)


class SchemaFollower:
    """A detector of schema changes in files under a root."""

    def __init__(self, form: FormatReader, checker: FileChecker, dataflow: Dataflow) -> None:
        """Store the format, the checker and the definition; inspect nothing."""
        self._format, self._checker, self._dataflow = form, checker, dataflow
        self._mode = (dataflow.target.schema_mode, dataflow.name, dataflow.source)
        self._inspected: tuple[PinnedSchema | None, set[SourceFile]] = (None, set())

    def find_growth(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> SchemaGrowth:
        """Return the changes that files make to the pinned schema, whether these files load or not.

        Raises:
            BadFile: a file has columns or types that the schema mode refuses; its code is the reason.
        """
        if self._dataflow.target.schema_mode != "merge":
            return self._with_first_types(spark, files, pinned)
        growth = self._with_new_columns(spark, files, pinned)
        paths = {path for path, _ in self._checker.check(spark, files, growth.schema).bad_records}
        files_with_bad_records = [file for file in files if file.path in paths]
        return (
            self._with_wider_numbers(spark, files_with_bad_records, growth)
            if files_with_bad_records
            else growth
        )

    def check_bad_record(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> None:
        """Raise SchemaEvolved if records fail to parse only because a number needs a wider type."""
        if self._dataflow.target.schema_mode == "merge":
            growth = self._with_wider_numbers(spark, files, SchemaGrowth(pinned))
            if growth.changes:
                raise growth.error

    def _with_new_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> SchemaGrowth:
        """Inspect the files that were not yet inspected with this schema."""
        inspected_files = self._inspected[1] if self._inspected[0] == pinned else set()
        new_files = [file for file in files if file.size > 0 and file not in inspected_files]
        grown, changes = pinned, list[SchemaChange]()
        where = ""
        for path, schema in self._incoming_columns(
            spark, new_files, pinned, lambda: self._checker.check(spark, files, pinned)
        ):
            evolution = self._evolve(grown, schema, path)
            if evolution:
                where = where or f"file {path}"
                grown = replace(grown, columns=json.dumps(evolution[0]))
                changes += evolution[1]
        grown = _with_folder_columns(grown, new_files, changes)
        if not changes:
            self._inspected = (pinned, inspected_files | set(new_files))
            return SchemaGrowth(pinned)
        return SchemaGrowth(
            PinnedSchema.of(grown.to_text()), tuple(changes), where or f"file {new_files[0].path}"
        )

    def _with_first_types(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> SchemaGrowth:
        """Find first types for columns that had no value so far, in files with fields that the schema lacks.

        This holds in every schema mode.
        """
        if not (self._format.rules.refuses_unknown and pinned.has_untyped):
            return SchemaGrowth(pinned)
        checked = self._checker.check(spark, files, pinned)
        files_with_unknown_fields = [file for file in files if file.path in checked.unknown]
        pinned_columns = json.loads(pinned.columns)
        grown = pinned_columns
        for _, schema in self._incoming_columns(spark, files_with_unknown_fields, pinned, lambda: checked):
            grown = with_first_types(grown, as_schema(schema))
        if not (changes := tuple(schema_changes(pinned_columns, grown))):
            return SchemaGrowth(pinned)
        with_types = PinnedSchema.of(replace(pinned, columns=json.dumps(grown)).to_text())
        return SchemaGrowth(with_types, changes, f"file {files_with_unknown_fields[0].path}")

    def _with_wider_numbers(
        self, spark: SparkSession, files: Sequence[SourceFile], growth: SchemaGrowth
    ) -> SchemaGrowth:
        """Widen the columns whose whole numbers do not fit."""
        wider = self._format.columns.wider_integers(spark, files, growth.schema)
        if wider is None:
            return growth
        evolution = evolution_of(*self._mode, growth.schema, wider, "files")
        if not evolution.changes:
            return growth
        schema = PinnedSchema.of(replace(growth.schema, columns=json.dumps(evolution.schema)).to_text())
        return SchemaGrowth(
            schema, (*growth.changes, *evolution.changes), growth.where or f"file {files[0].path}"
        )

    def _incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> list[tuple[str, StructType]]:
        if not files:
            return []
        try:
            return list((self._format.columns.incoming_columns(spark, files, pinned, check) or {}).items())
        except SchemaError as error:
            if len(files) > 1:
                return [
                    columns
                    for file in files
                    for columns in self._incoming_columns(spark, [file], pinned, check)
                ]
            raise self._as_bad_file(error, files[0].path) from error

    def _evolve(
        self, pinned: PinnedSchema, schema: StructType, path: str
    ) -> tuple[Schema, tuple[SchemaChange, ...]] | None:
        try:
            check_field_names(as_schema(schema))
            evolution = evolution_of(*self._mode, pinned, schema, f"file {path}")
            new = (change.field for change in evolution.changes if change.old_type is None)
            check_free(self._dataflow, new, f"file {path}")
        except SchemaError as error:
            raise self._as_bad_file(error, path) from error
        return (evolution.schema, evolution.changes) if evolution.action != "none" else None

    def _as_bad_file(self, error: SchemaError, path: str) -> BadFile:
        """Return a refused schema change as a fault of its file, so that the files before it still load."""
        explained_error = error if error.choices else explain_refusal(error, *self._mode, f"file {path}")
        return BadFile(
            explained_error.message,
            path=path,
            why=explained_error.message,
            code=error.reason,
            choices=explained_error.choices,
        )


def _with_folder_columns(
    pinned: PinnedSchema, files: Sequence[SourceFile], changes: list[SchemaChange]
) -> PinnedSchema:
    """Return the schema with text columns for new folder names, and append these to ``changes``."""
    columns = json.loads(pinned.columns)
    pinned_names = {name.casefold() for name in pinned.struct.names}
    new = [
        name
        for lower, name in folder_names(file.path for file in files).items()
        if lower.casefold() not in pinned_names
    ]
    if not new:
        return pinned
    changes += [SchemaChange(name, None, "string") for name in new]
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in new]
    new_names = {name.casefold() for name in new}  # a record field of that name may still be untyped
    columns["fields"] = [
        field for field in columns["fields"] if field["name"].casefold() not in new_names
    ] + fields
    return replace(pinned, columns=json.dumps(columns), folders=(*pinned.folders, *new))
