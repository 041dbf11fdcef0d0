"""Infer the columns of CSV files: a header's names, and the first types that hold all values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.records.forms import INTEGER_BITS, TextOptions
from partitions.records.options import with_lower_names
from partitions.schema_merging import with_wider_integers, with_widest_integers
from partitions.schema_types import Schema
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.failures import bad_header_error, other_separator
from resources.sources.files.formats.csv_headers import (
    CsvHeader,
    CsvHeaders,
    fold_names,
    has_name_twice,
    separator_of_path,
)
from resources.sources.files.formats.format import FileColumns, FormatReader
from resources.sources.files.formats.scan_groups import group_for_scans
from resources.sources.files.formats.variants import struct_of
from resources.sources.files.inferring import type_of_sample, types_of_texts
from resources.sources.files.pinned import PinnedSchema
from resources.sql import all_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class CsvColumns(FileColumns):
    """A finder of the columns of CSV files."""

    def __init__(self, form: FormatReader, headers: CsvHeaders) -> None:
        """Store the parts; read nothing.

        Args:
            form: the format's reader.
            headers: the headers of the files.
        """
        super().__init__(form)
        self._headers = headers

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of the first sound header, with the types that hold all values below it.

        A sound header names each column once, by the file's separator. The values are those of all files with this header. A text in a later
        file alone changes no type, and is refused when the file is checked, as is a code such as ``0012`` behind
        whole numbers.

        Raises:
            BadFile: no header is sound.
        """
        headers = (
            self._headers.by_path(files) if self._headers.has_headers else self._headers.numbered_names(files)
        )
        sound_headers = {path: header for path, header in headers.items() if self._is_sound(header)}
        if not sound_headers:
            for path, header in headers.items():
                raise bad_header_error(path, (), header.names)
            return None
        names = next(iter(sound_headers.values())).names
        files_with_names = [
            file for file in files if file.path in sound_headers and sound_headers[file.path].names == names
        ]
        types = self._types_of_sample(spark, files_with_names, names)
        self.valueless = [name for name, data_type in zip(names, types, strict=True) if data_type is None]
        return struct_of(_schema_of(names, types))

    def _is_sound(self, header: CsvHeader) -> bool:
        """Return whether a header names each column once, and does not seem to have another separator."""
        has_own_separator = with_lower_names(self._form.source.options).keys() & {"sep", "delimiter"}
        is_misread = not has_own_separator and other_separator((), header.names) is not None
        return not has_name_twice(header.names) and not is_misread

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the column names of each file, from its header."""
        return {
            path: frozenset(name.casefold() for name in header.names)
            for path, header in self._headers.by_path(files).items()
        }

    @override
    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the new columns of files, by headers; only files with new names are read, for their types."""
        pinned_names = set(fold_names(pinned.struct.fieldNames()))
        groups: dict[tuple[str, ...], list[SourceFile]] = {}
        headers = self._headers.by_path(files)
        for file in files:
            header = headers.get(file.path)
            if (
                header is not None
                and not has_name_twice(header.names)
                and not pinned_names.issuperset(fold_names(header.names))
            ):
                groups.setdefault((separator_of_path(file.path), *header.names), []).append(file)
        columns: dict[str, StructType] = {}
        for (_, *names), files_with_header in groups.items():
            for group in self._form.scanner.scan_groups(files_with_header):
                fields = _schema_of(names, self._types_of_texts(spark, group, names))["fields"]
                new = [field for field in fields if field["name"].lower() not in pinned_names]
                columns[group[0].path] = struct_of({"type": "struct", "fields": new})
        return columns

    def wider_integers(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wide enough integers, from all values.

        Lines that no wider type takes are skipped.
        """
        wider: Schema = pinned.struct.jsonValue()
        reading = TextOptions.of(self._form.source.options, inferred=pinned.declared is None)
        for group, data in group_for_scans(self._form, files, pinned):
            wider = with_wider_integers(wider, self._widths(spark, group, data.jsonValue(), reading))
        return None if wider == pinned.struct.jsonValue() else struct_of(wider)

    def as_texts(self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]) -> DataFrame:
        """Return the raw values of files under one header."""
        return self._form.scan(spark, files, text_columns(names), mode="PERMISSIVE", enforceSchema="true")

    def _types_of_sample(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> list[str | None]:
        """Return the types that hold the values of all files, starting with the first file that has a record.

        A text in a later file alone changes no type.
        """
        first = next((file for file in files if not self.as_texts(spark, [file], names).isEmpty()), files[0])
        types = self._types_of_texts(spark, [first], names)
        return types if len(files) == 1 else self._with_types_of_all(spark, files, names, types)

    def _with_types_of_all(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        names: Sequence[str],
        first: Sequence[str | None],
    ) -> list[str | None]:
        """Return the types of the first file, widened to hold the values of all files.

        Integers are widened even if a later file has a text among them.
        """
        sample = self._types_of_texts(spark, files, names)
        types = [type_of_sample(*pair) for pair in zip(first, sample, strict=True)]
        has_text = any(
            data_type in INTEGER_BITS and of_sample == "string"
            for data_type, of_sample in zip(types, sample, strict=True)
        )
        if not has_text:
            return types
        of_all = self._types_of_texts(spark, files, names, TextOptions.of(self._form.source.options))
        wider = with_wider_integers(_schema_of(names, types), _schema_of(names, of_all))["fields"]
        return [data_type and field["type"] for data_type, field in zip(types, wider, strict=True)]

    def _widths(
        self, spark: SparkSession, files: Sequence[SourceFile], columns: Schema, reading: TextOptions
    ) -> Schema:
        """Return the columns with integers as wide as those in the lines that fit the widest types."""
        from pyspark.sql import functions as F

        wide = with_widest_integers(columns)["fields"]
        integer_names = [field["name"] for field in columns["fields"] if field["type"] in INTEGER_BITS]
        fits = all_of(
            [
                F.coalesce(is_exact(F.col(quoted(field["name"])), field["type"], reading), F.lit(True))
                for field in wide
            ]
        )
        if not integer_names:
            return columns
        rows = self.as_texts(spark, files, [field["name"] for field in wide]).where(fits)
        texts = [F.col(quoted(name)) for name in integer_names]
        types = types_of_texts(rows, texts, self._form.source.options, reading, several=False)
        widened = dict(zip(integer_names, types, strict=True))
        fields = [
            {**field, "type": widened.get(field["name"]) or field["type"]} for field in columns["fields"]
        ]
        return {**columns, "fields": fields}

    def _types_of_texts(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        names: Sequence[str],
        reading: TextOptions | None = None,
    ) -> list[str | None]:
        """Return the types that hold all values of files under one header; None for a column without a value.

        Without ``reading``, what only looks like a number, such as ``0012``, is text.
        """
        from pyspark.sql import functions as F

        reading = reading or TextOptions.of(self._form.source.options, inferred=True)
        rows = self.as_texts(spark, files, names)
        texts = [F.col(quoted(name)) for name in names]
        return types_of_texts(rows, texts, self._form.source.options, reading, several=False)


def _schema_of(names: Sequence[str], types: Sequence[str | None]) -> Schema:
    """Return columns with these types; text for None."""
    fields = [
        {"name": name, "type": data_type or "string", "nullable": True, "metadata": {}}
        for name, data_type in zip(names, types, strict=True)
    ]
    return {"type": "struct", "fields": fields}


def text_columns(names: Sequence[str]) -> StructType:
    """Return text columns with these names."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in names])
