"""Files with types of their own, which a header or footer tells without Spark: what Avro and Parquet have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.conversions import paths_without_value
from partitions.records.forms import Type
from partitions.untyped_columns import typed_fields, with_untyped_values
from resources.connections.places import Place
from resources.sources.files.beside_folders import contradicting_files
from resources.sources.files.checked import CheckedFiles, Unknown
from resources.sources.files.footers import FieldPath, shown, unknown_columns
from resources.sources.files.formats.format import FileColumns, FormatReader
from resources.sources.files.formats.variants import struct_of
from resources.sources.files.inexact import files_of_other_types, inexact_files, taking_checked
from resources.sources.files.nanoseconds import folded
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.untyped_values import files_with_untyped_values
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class TypedFiles(FormatReader):
    """Columns with types of their own. A file reads, or it does not: it has no bad records."""

    TELLS_TYPES: ClassVar[bool] = True

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Look at no file yet."""
        super().__init__(place, dataflow, staging)
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """Which times were cut off."""
        return tuple(self._remarks)

    def _remark_cut(self, names: Iterable[str]) -> None:
        """Note that times of these columns lose their nanoseconds; nothing if there are none."""
        if columns := ", ".join(sorted(names)):
            remark = f"times with nanoseconds are loaded as microseconds, and what lies beyond is cut off: {columns}"
            self._remarks[remark] = None

    def _check_sound(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        bad_files: Mapping[str, BadFile],
        types: Mapping[str, Mapping[str, Type | None]],
        unknown: Mapping[str, Sequence[str]],
        pinned: PinnedSchema,
    ) -> CheckedFiles:
        """Check what headers do not tell; only of files with columns of other types than the pinned ones values are read.

        Args:
            spark: reads values.
            files: of a slice.
            bad_files: those of them whose headers tell that they cannot be loaded, by path.
            types: of each file's columns, by path and name; None of one that only Spark knows.
            unknown: names of fields that the schema lacks, by path.
            pinned: the schema.
        """
        bad = dict(bad_files)
        if not self.rules.rescues and self.dataflow.unknown_fields != "ignore":
            sound = [file for file in files if file.path not in bad]
            bad |= files_with_untyped_values(self, spark, sound, types, pinned)
        if not self.rules.rescues:
            sound = [file for file in files if file.path not in bad]
            bad |= files_of_other_types(self, sound, types, pinned)
            show = self.dataflow.show_bad_records
            for check in (inexact_files, contradicting_files):
                sound = [file for file in files if file.path not in bad]
                bad |= check(self, spark, sound, pinned, show=show)
        return CheckedFiles(bad, unknown={path: Unknown(names) for path, names in unknown.items() if names})


class TypedColumns(FileColumns):
    """Columns that headers or footers tell, with the types of one file for all of the same columns."""

    def __init__(self, form: FormatReader) -> None:
        """Look at no file yet; ``form`` reads them."""
        super().__init__(form)
        self._types: dict[str, StructType] = {}

    def _types_of(
        self, groups: Mapping[str, SourceFile], columns_of: Callable[[str, SourceFile], StructType]
    ) -> Mapping[str, StructType]:
        """Return the columns of some files in Spark's types; those of the files before are forgotten. Fields without a type are left out, unless what has no column is rescued.

        Args:
            groups: files by what tells their columns.
            columns_of: returns the columns of one.
        """
        before = self._types
        taken = with_untyped_values if self._form.rules.rescues else typed_fields
        self._types = {
            text: before.get(text) or struct_of(taken(columns_of(text, file).jsonValue()))
            for text, file in groups.items()
        }
        return self._types


def taken_columns(
    types: Mapping[str, StructType], groups: Mapping[str, SourceFile], pinned: PinnedSchema
) -> Mapping[str, StructType]:
    """Return, by the path of the first file of each group, its columns as the table takes them."""
    return {file.path: taking_checked(types[text], pinned.struct) for text, file in groups.items()}


def unknown_names(
    fields: Iterable[FieldPath], types: Mapping[str, Type | None], pinned_paths: Collection[FieldPath]
) -> list[str]:
    """Return the fields of a file that a schema lacks, but for those that hold no value in any record.

    Args:
        fields: of the file, at any depth.
        types: of its columns; None of one that only Spark knows.
        pinned_paths: the fields of the schema.
    """
    valueless = {
        inner
        for name, data_type in types.items()
        if data_type is not None
        for inner in paths_without_value(name, data_type)
    }
    return [shown(path) for path in unknown_columns(fields, pinned_paths) if folded(path) not in valueless]
