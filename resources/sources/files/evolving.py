"""The pinned schema of files that follows them: new columns of files and folders, and wider types (docs/reference/schemas.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, SchemaError, SchemaEvolved
from partitions.evolution import SchemaChange, differences
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


class Growth(NamedTuple):
    """What a pinned schema becomes with some files.

    Attributes:
        schema: with their new columns, wider types and first types.
        changes: that made it so; none: it is the pinned one.
        where: the first file that asks for one, for people.
    """

    schema: PinnedSchema
    changes: tuple[SchemaChange, ...] = ()
    where: str = ""

    @property
    def error(self) -> SchemaEvolved:
        """What begins a slice again with the new schema."""
        return changed(self.schema, json.loads(self.schema.columns), self.changes, self.where)


class SchemaFollower:
    """Follows the schema of files under a root."""

    def __init__(self, form: FormatReader, checker: FileChecker, dataflow: Dataflow) -> None:
        """Use what reads the files, and what looks through them; nothing was looked at yet."""
        self._format, self._checker, self._dataflow = form, checker, dataflow
        self._mode = (dataflow.target.schema_mode, dataflow.name)
        self._looked_at: tuple[PinnedSchema | None, set[SourceFile]] = (None, set())

    def growth(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> Growth:
        """Return what the pinned schema becomes with files, whether these load or not.

        Raises:
            BadFile: its code is the reason: a file has columns or types that the mode does not accept.
        """
        if self._dataflow.target.schema_mode != "merge":
            return self._with_first_types(spark, files, pinned)
        growth = self._with_new_columns(spark, files, pinned)
        paths = {path for path, _ in self._checker.check(spark, files, growth.schema).bad_records}
        others = [file for file in files if file.path in paths]
        return self._with_wider_numbers(spark, others, growth) if others else growth

    def check_bad_record(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> None:
        """Look whether records do not parse since a number does not fit its column.

        Raises:
            SchemaEvolved: a wider type takes them.
        """
        if self._dataflow.target.schema_mode == "merge":
            growth = self._with_wider_numbers(spark, files, Growth(pinned))
            if growth.changes:
                raise growth.error

    def _with_new_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Growth:
        """Look at files that were not looked at yet with this schema."""
        known = self._looked_at[1] if self._looked_at[0] == pinned else set()
        new = [file for file in files if file.size > 0 and file not in known]
        grown, changes = pinned, list[SchemaChange]()
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
        if not changes:
            self._looked_at = (pinned, known | set(new))
            return Growth(pinned)
        return Growth(PinnedSchema.of(grown.to_text()), tuple(changes), where or f"file {new[0].path}")

    def _with_first_types(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Growth:
        """Look at files with fields that the pinned schema lacks: some of these may have had no type yet, and have one now, whatever the mode is."""
        if not (self._format.rules.refuses_unknown and pinned.has_untyped):
            return Growth(pinned)
        checked = self._checker.check(spark, files, pinned)
        others = [file for file in files if file.path in checked.unknown]
        known = json.loads(pinned.columns)
        grown = known
        for _, schema in self._incoming(spark, others, pinned, lambda: checked):
            grown = with_first_types(grown, as_schema(schema))
        if not (changes := tuple(differences(known, grown))):
            return Growth(pinned)
        with_types = PinnedSchema.of(replace(pinned, columns=json.dumps(grown)).to_text())
        return Growth(with_types, changes, f"file {others[0].path}")

    def _with_wider_numbers(self, spark: SparkSession, files: Sequence[SourceFile], growth: Growth) -> Growth:
        """Look whether whole numbers do not fit their columns: a wider type takes them."""
        wider = self._format.columns.wider(spark, files, growth.schema)
        if wider is None:
            return growth
        evolution = evolution_of(*self._mode, growth.schema, wider, "files")
        if not evolution.changes:
            return growth
        schema = PinnedSchema.of(replace(growth.schema, columns=json.dumps(evolution.schema)).to_text())
        return Growth(schema, (*growth.changes, *evolution.changes), growth.where or f"file {files[0].path}")

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
            return list((self._format.columns.others(spark, files, pinned, check) or {}).items())
        except SchemaError as error:
            if len(files) > 1:
                return [columns for file in files for columns in self._incoming(spark, [file], pinned, check)]
            raise self._refused(error, files[0].path) from error

    def _evolution(
        self, pinned: PinnedSchema, schema: StructType, path: str
    ) -> tuple[Schema, tuple[SchemaChange, ...]] | None:
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


def _with_folders(
    pinned: PinnedSchema, files: Sequence[SourceFile], changes: list[SchemaChange]
) -> PinnedSchema:
    """The schema with the columns that folders name, which are text; ``changes`` gets them."""
    columns = json.loads(pinned.columns)
    pinned_names = {name.casefold() for name in pinned.struct.names}
    new = [
        name
        for lower, name in spellings(file.path for file in files).items()
        if lower.casefold() not in pinned_names
    ]
    if not new:
        return pinned
    changes += [SchemaChange(name, None, "string") for name in new]
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in new]
    named = {name.casefold() for name in new}  # one of records may have had no value, and so no type, yet
    columns["fields"] = [
        field for field in columns["fields"] if field["name"].casefold() not in named
    ] + fields
    return replace(pinned, columns=json.dumps(columns), folders=(*pinned.folders, *new))
