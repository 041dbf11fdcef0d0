"""The common base of Avro and Parquet: files with types of their own, in a header or footer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.conversions import paths_without_value
from partitions.records.forms import Type
from partitions.untyped_columns import typed_fields, with_untyped_values
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles, UnknownFields
from resources.sources.files.field_paths import FieldPath, dotted_name, find_unknown_columns
from resources.sources.files.folder_conflicts import files_with_folder_conflicts
from resources.sources.files.formats.format import FileColumns, FormatReader
from resources.sources.files.formats.variants import struct_of
from resources.sources.files.inexact import files_with_other_types, inexact_files, with_checked_types
from resources.sources.files.nanoseconds import fold_path
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.untyped_values import files_with_untyped_values
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class TypedFiles(FormatReader):
    """A reader of files with typed columns.

    Such a file reads as a whole or not at all, so it has no bad records.
    """

    HAS_TYPES: ClassVar[bool] = True

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; read nothing."""
        super().__init__(place, dataflow, staging)
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """The warnings about times that were cut to microseconds."""
        return tuple(self._remarks)

    def _note_cut_times(self, names: Iterable[str]) -> None:
        """Note that times of these columns lose their nanoseconds; nothing without columns."""
        if columns := ", ".join(sorted(names)):
            remark = f"times with nanoseconds are cut to microseconds: {columns}"
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
        """Check what headers do not show; read values only of files whose types differ from the pinned ones.

        Args:
            spark: a session.
            files: a slice's files.
            bad_files: files that their headers show to be bad, by path.
            types: the columns' types, by path and name; None for a type that only Spark knows.
            unknown: the names of fields that the schema lacks, by path.
            pinned: the schema.
        """
        bad = dict(bad_files)
        if not self.rules.rescues and self.dataflow.unknown_fields != "ignore":
            sound_files = [file for file in files if file.path not in bad]
            bad |= files_with_untyped_values(self, spark, sound_files, types, pinned)
        if not self.rules.rescues:
            sound_files = [file for file in files if file.path not in bad]
            bad |= files_with_other_types(self, sound_files, types, pinned)
            show = self.dataflow.show_bad_records
            for check in (inexact_files, files_with_folder_conflicts):
                sound_files = [file for file in files if file.path not in bad]
                bad |= check(self, spark, sound_files, pinned, show=show)
        return CheckedFiles(
            bad, unknown={path: UnknownFields(names) for path, names in unknown.items() if names}
        )


class TypedColumns(FileColumns):
    """A finder of columns in headers or footers; files with the same columns share the types of one file."""

    def __init__(self, form: FormatReader) -> None:
        """Store the format's reader; read nothing."""
        super().__init__(form)
        self._types: dict[str, StructType] = {}

    @abstractmethod
    def texts_of(self, files: Sequence[SourceFile]) -> Mapping[str, str]:
        """Return the columns of files as text, by path; files that do not tell them are missing."""

    @abstractmethod
    def can_be_read(self, file: SourceFile) -> bool:
        """Return whether a file's header or footer is sound."""

    @abstractmethod
    def columns_of(self, spark: SparkSession, text: str, file: SourceFile) -> StructType:
        """Return the columns of one file, whose columns as text are ``text``."""

    def first_files(self, files: Sequence[SourceFile]) -> dict[str, SourceFile]:
        """Return the first file of each set of columns, by the columns as text."""
        texts, groups = self.texts_of(files), dict[str, SourceFile]()
        for file in files:
            if file.path in texts:
                groups.setdefault(texts[file.path], file)
        return groups

    def types_of(self, spark: SparkSession, groups: Mapping[str, SourceFile]) -> Mapping[str, StructType]:
        """Return the columns of groups of files in Spark's types, and forget those of earlier groups.

        Fields without a type are left out, unless mode rescue keeps them.

        Args:
            spark: a session.
            groups: one file of each group, by the text of its columns.
        """
        earlier_types = self._types
        select_fields = with_untyped_values if self._form.rules.rescues else typed_fields
        self._types = {
            text: earlier_types.get(text)
            or struct_of(select_fields(self.columns_of(spark, text, file).jsonValue()))
            for text, file in groups.items()
        }
        return self._types

    @override
    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the columns of files, from one file for each set of columns."""
        groups = self.first_files(list(filter(self.can_be_read, files)))
        return columns_for_table(self.types_of(spark, groups), groups, pinned)


def columns_for_table(
    types: Mapping[str, StructType], groups: Mapping[str, SourceFile], pinned: PinnedSchema
) -> Mapping[str, StructType]:
    """Return the columns of each group as the table takes them, by the path of its first file."""
    return {file.path: with_checked_types(types[text], pinned.struct) for text, file in groups.items()}


def unknown_names(
    fields: Iterable[FieldPath], types: Mapping[str, Type | None], pinned_paths: Collection[FieldPath]
) -> list[str]:
    """Return the fields of a file that a schema lacks, without fields that never have a value.

    Args:
        fields: the file's fields, at any depth.
        types: the types of its columns; None for a type that only Spark knows.
        pinned_paths: the fields of the schema.
    """
    valueless = {
        inner
        for name, data_type in types.items()
        if data_type is not None
        for inner in paths_without_value(name, data_type)
    }
    return [
        dotted_name(path)
        for path in find_unknown_columns(fields, pinned_paths)
        if fold_path(path) not in valueless
    ]
