"""JSON: an object a line (ndjson), or a document a file (json)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from partitions.api.values import kind_of_values
from partitions.dataflow import Dataflow
from partitions.empty_texts import with_empty_texts
from partitions.errors import BadFile
from partitions.evolution import Schema, new_fields, without_values
from partitions.path.source import SourceFile
from partitions.records.first_types import Unclear, types_of_document, types_of_lines
from partitions.records.forms import Reading
from partitions.records.json_decoding import MOST_LEVELS, Names, depth_of, first_names, names_by_case
from partitions.records.json_lines import LENIENT, JsonRule
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.beside_folders import FolderFields
from resources.sources.files.checked import BadRecord, CheckedFiles, Unknown, in_order
from resources.sources.files.failures import (
    bad_document,
    bad_encoding,
    bad_records,
    names_in_two_cases,
)
from resources.sources.files.fields import RECORD
from resources.sources.files.formats.alike import read_alike
from resources.sources.files.formats.format import CORRUPT, FormatReader
from resources.sources.files.formats.variants import inferred, names_in_records, struct_of, wider_numbers
from resources.sources.files.json_check import (
    JudgedBySpark,
    check_documents,
    check_lines,
    is_deeper,
    records_of,
)
from resources.sources.files.lines import Lines, beginning, encoding_by_mark, undecodable_line, whole_text
from resources.sources.files.own_forms import OwnForms
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import rescued_records
from resources.sources.files.scan import Scanner
from resources.sources.files.text_lines import TEXT, lines_of, without_texts
from resources.sources.schema import time_types
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_LOOKED_AT = 10_000
"""Records of a sample whose texts say whether a column holds times."""

_EMPTY_TEXT = r'[:\[,]\s*""'
"""Where a value that is an empty text may stand."""

_NONE_READ = "Spark reads none of its records"

_IN_TWO_CASES = re.compile(r"\[COLUMN_ALREADY_EXISTS\]")


class _Json(FormatReader):
    READER: ClassVar[str] = "json"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Have looked for no empty text, and for no deep record yet."""
        super().__init__(place, dataflow, staging)
        self._empty_texts: tuple[Sequence[SourceFile], str | None] | None = None
        self._shallow: set[SourceFile] = set()

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Hold all records against the rule of the schema."""
        if self._is_lenient:
            return CheckedFiles()
        bad_files: dict[str, BadFile] = {}
        records: list[tuple[str, BadRecord]] = []
        unknown: dict[str, Unknown] = {}
        counts: dict[str, int] = {}
        is_cut = False
        for group, schema in read_alike(self, files, pinned):
            rule = JsonRule(
                None if self.rescues else _with_folder_fields(pinned.with_untyped(schema), pinned),
                self._dataflow.unknown_fields == "ignore",
                Reading.of(self.source.options),
            )
            names = first_names(beginning(self.place, group[0].path, self._encoding))
            by_spark: list[JudgedBySpark] = []
            if rule.schema is not None:
                by_spark.append(OwnForms.of(rule.schema, self._of_text))
                path = self.scanner.path_of(group)
                by_spark.append(FolderFields.of(group, pinned, path, self._of_text))
            checked = self._check_alike(spark, group, rule, names, by_spark)
            bad_files |= checked.bad_files
            records += checked.bad_records
            unknown |= checked.unknown
            counts |= checked.counts
            is_cut |= checked.is_cut
        return CheckedFiles(bad_files, in_order(records, files), counts, is_cut, unknown)

    def _check_alike(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        rule: JsonRule,
        names: Names | None,
        by_spark: Sequence[JudgedBySpark],
    ) -> CheckedFiles:
        """Look through files that are read in one scan."""
        raise NotImplementedError

    @property
    def _is_lenient(self) -> bool:
        """Whether options let Spark take text that is no JSON."""
        options = self.source.options.items()
        return not LENIENT.isdisjoint(name.lower() for name, value in options if str(value).lower() == "true")

    @property
    def _encoding(self) -> str:
        options = {name.lower(): str(value) for name, value in self.source.options.items()}
        return options.get("encoding", options.get("charset", "utf-8"))

    @property
    def _of_text(self) -> Mapping[str, str]:
        return {name: str(value) for name, value in self.source.options.items()}

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Look at all records."""
        return names_in_records(self, spark, files, names)

    def other_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the pinned columns with those that records have beside them; only files that have some are read for their types."""
        unknown = check().unknown
        columns: dict[str, StructType] = {}
        for group in self.scanner.together([file for file in files if file.path in unknown]):
            columns[group[0].path] = struct_of(
                new_fields(json.loads(pinned.columns), inferred(self, spark, group))
            )
        return columns

    def wider_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Read the files with the widest whole numbers that they hold."""
        return wider_numbers(self, spark, files, pinned)

    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        scanner: Scanner,
        bad: Collection[str] | None,
    ) -> DataFrame:
        """Parse the text of each record once as it is, and once with the pinned columns."""
        return rescued_records(self._texts(spark, files, scanner, bad), data, self._of_text)

    def _texts(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        scanner: Scanner,
        bad: Collection[str] | None,
    ) -> DataFrame:
        """Return the texts of records, or of documents; what is no JSON by itself is written anew."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType, VariantType

        if self._is_lenient:
            schema = StructType().add(RECORD, VariantType())
            records = self.scan_without(spark, files, schema, scanner, bad, singleVariantColumn=RECORD)
            return records.select(F.to_json(RECORD).alias(TEXT))
        whole = {"wholetext": "true"} if self.READS_DOCUMENTS else {}
        texts = lines_of(spark, scanner, files, self._of_text, **whole)
        return texts if bad is None else without_texts(spark, texts, bad)

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns that stand in the records that read; those that do not are told when the files are checked.

        Raises:
            BadFile: names of a file differ in upper and lower case only; or no record of the files reads.
        """
        schema = self._inferred(spark, files)
        if not schema.fields:
            self._refuse_unreadable(files)
        return self._with_times(spark, files, self._with_no_types(spark, files, schema))

    def _with_no_types(
        self, spark: SparkSession, files: Sequence[SourceFile], schema: StructType
    ) -> StructType:
        """Return the schema in which fields without any value have no type yet. Those that the definition names stay text, as all do that a step may name."""
        if not self._dataflow.defers_types:
            return schema
        valued = self._inferred(spark, files, dropFieldIfAllNull="true")
        return self.with_deferred_types(without_values(schema.jsonValue(), valued.jsonValue()))

    def columns_by_spark(
        self, spark: SparkSession, files: Sequence[SourceFile], **changes: str
    ) -> StructType:
        """Return the columns that Spark's reader infers, unless records lie in each other more deeply than its types can.

        Raises:
            BadFile: they do.
        """
        new = [file for file in files if file not in self._shallow]
        if new:
            self._refuse_deep(spark, new)
            self._shallow.update(new)
        return super().columns_by_spark(spark, files, **changes)

    def _refuse_deep(self, spark: SparkSession, files: Sequence[SourceFile]) -> None:
        from pyspark.sql import functions as F

        whole = {"wholetext": "true"} if self.READS_DOCUMENTS else {}
        for group in self.scanner.together(files):
            rows = lines_of(spark, self.scanner, group, self._of_text, **whole)
            paths = rows.where(is_deeper(F.col(TEXT), MOST_LEVELS)).select(
                self.scanner.path_of(group).alias("path")
            )
            deep = {row["path"] for row in paths.distinct().collect()}
            for file in group:
                if file.path in deep:
                    raise self._too_deep(file.path)

    def _too_deep(self, path: str) -> BadFile:
        text = whole_text(self.place, path, self._encoding)
        lines = [text] if self.READS_DOCUMENTS else text.splitlines()
        number, levels = next(
            (
                (number, levels)
                for number, line in enumerate(lines, 1)
                if (levels := depth_of(line)) > MOST_LEVELS
            ),
            (1, MOST_LEVELS + 1),
        )
        where = "" if self.READS_DOCUMENTS else f"line {number}: "
        return bad_document(
            path,
            f"{where}expected objects and arrays at most {MOST_LEVELS} levels deep where types are inferred, found {levels}:"
            " declare source.schema, with the field that holds them as string or variant",
        )

    def _inferred(self, spark: SparkSession, files: Sequence[SourceFile], **options: str) -> StructType:
        from pyspark.sql.types import StructType

        try:
            schema = self.columns_by_spark(
                spark, files, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT, **options
            )
        except Exception as error:
            if "JsonParseException" in str(error):  # of bytes that are no text, whatever the mode
                bad = next((bad for file in files if (bad := self._undecodable(file.path)) is not None), None)
                if bad is not None:
                    raise bad from error
            if _IN_TWO_CASES.search(str(error)) is None:
                raise
            return self._inferred(spark, self._with_names_alike(spark, files, error), **options)
        inferred = StructType([field for field in schema.fields if field.name != CORRUPT])
        return struct_of(self.with_empty_texts(spark, files, inferred.jsonValue()))

    def with_empty_texts(self, spark: SparkSession, files: Sequence[SourceFile], schema: Schema) -> Schema:
        """Ask for the types of the records that hold an empty text, if there are any; one that does not read tells nothing."""
        from pyspark.sql import functions as F

        if self._empty_texts is None or self._empty_texts[0] != tuple(files):
            whole = {"wholetext": "true"} if self.READS_DOCUMENTS else {}
            rows, text = lines_of(spark, self.scanner, files, self._of_text, **whole), F.col(TEXT)
            with_some = rows.where(text.rlike(_EMPTY_TEXT))
            shape = None
            if with_some.select(F.lit(1)).limit(1).collect():
                records = F.try_parse_json(F.ltrim(text, F.lit("\ufeff")))
                shape = with_some.agg(F.schema_of_variant_agg(records)).collect()[0][0]
            self._empty_texts = (tuple(files), shape)
        shape = self._empty_texts[1]
        return schema if shape is None else with_empty_texts(schema, shape)

    def _with_names_alike(
        self, spark: SparkSession, files: Sequence[SourceFile], error: Exception
    ) -> Sequence[SourceFile]:
        """Return the files whose names are spelt as in those before them; others are told when they are checked.

        Raises:
            BadFile: a file spells a name in two ways, or an object of it has a name twice.
        """
        if len(files) == 1:
            spelt = names_by_case(whole_text(self.place, files[0].path, self._encoding))
            if spelt is None:
                self._refuse_unreadable(files)
                raise error
            raise names_in_two_cases(files[0].path, *spelt) from error
        spellings: dict[str, str] = {}
        alike: list[SourceFile] = []
        for file in files:
            names = self._inferred(spark, [file]).names
            if all(spellings.get(name.casefold(), name) == name for name in names):
                spellings |= {name.casefold(): name for name in names}
                alike.append(file)
        if len(alike) == len(files):
            raise error
        return alike

    def _refuse_unreadable(self, files: Sequence[SourceFile]) -> None:
        """Raise BadFile for the first file without a record that reads."""
        rule = JsonRule(None, True)
        for file in files:
            if (undecodable := self._undecodable(file.path)) is not None:
                raise undecodable
            text = whole_text(self.place, file.path, self._encoding)
            fault, items = (
                rule.judge_document(text) if self.READS_DOCUMENTS else (None, rule.judge_lines(text))
            )
            if fault is not None:
                raise bad_document(file.path, fault.reason)
            why = _fault(text, documents=self.READS_DOCUMENTS)
            if items and why in (None, _NONE_READ):
                raise bad_records(file.path, records_of(items), show=self._dataflow.show_bad_records)
            if why is not None:
                raise bad_document(file.path, why)

    def _with_times(
        self, spark: SparkSession, files: Sequence[SourceFile], inferred: StructType
    ) -> StructType:
        """Return the schema in which columns of the watermark hold what their texts say: as texts, times in two zones would have another order."""
        from pyspark.sql.types import StructField, StructType

        named = self._dataflow.column.columns if self._dataflow.kind == "column" else ()
        texts = [
            column
            for column in inferred.fields
            if column.name in named and column.dataType.simpleString() == "string"
        ]
        if not texts:
            return inferred
        rows = self.scan(spark, files, StructType(texts), mode="PERMISSIVE").limit(_LOOKED_AT).collect()
        types = time_types()
        times = {column.name: types.get(kind_of_values(row[column.name] for row in rows)) for column in texts}
        return StructType(
            [
                StructField(column.name, times.get(column.name) or column.dataType)
                for column in inferred.fields
            ]
        )

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Look at the bytes: what is no UTF-8 fails wherever the parser stumbles over it."""
        return self._undecodable(file.path)

    def _undecodable(self, path: str) -> BadFile | None:
        if self._encoding.lower().replace("-", "") != "utf8":
            return None
        line = undecodable_line(self.place, path)
        if line is None:
            return None
        encoding = encoding_by_mark(self.place, path)
        if self.READS_DOCUMENTS:
            return bad_encoding(path, line, f"encoding: {encoding or 'windows-1252'}")
        return bad_encoding(
            path, line, 'encoding: windows-1252, lineSep: "\\n"' if encoding is None else None
        )


def _with_folder_fields(schema: Mapping[str, Any], pinned: PinnedSchema) -> Mapping[str, Any]:
    """The columns of records, and those that folders name, which a record may have, too."""
    names = {column["name"] for column in schema["fields"]}
    others = [column for column in pinned.struct.jsonValue()["fields"] if column["name"] not in names]
    return {**schema, "fields": [*schema["fields"], *others]}


class NdjsonFiles(_Json):
    """An object a line."""

    def _check_alike(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        rule: JsonRule,
        names: Names | None,
        by_spark: Sequence[JudgedBySpark],
    ) -> CheckedFiles:
        rows = lines_of(spark, self.scanner, files, self._of_text)
        most = self._dataflow.max_bad_records
        path = self.scanner.path_of(files)
        return check_lines(
            rows,
            path,
            rule,
            names,
            files,
            most,
            lambda texts: Lines(self.place, texts, self._encoding),
            self._undecodable,
            by_spark,
        )

    def scan_without(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None,
        records: Collection[str] | None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Parse the lines that are not among these."""
        from pyspark.sql import functions as F

        if records is None:
            return self.scan(spark, files, schema, scanner, **changes)
        whole = changes.pop("singleVariantColumn", None)
        lines = lines_of(spark, scanner or self.scanner, files, self._of_text, **changes)
        text = F.col(TEXT)
        lines = without_texts(spark, lines, records)
        lines = lines.where(F.trim(F.regexp_replace(text, r"[\uFEFF\t\r]", " ")) != "")
        folders = [name for name in schema.names if name in lines.columns]
        if whole is not None:
            return lines.select(F.parse_json(text).alias(whole), *folders)
        options = {**self._of_text, "mode": "FAILFAST"}
        record = F.from_json(F.ltrim(text, F.lit("\ufeff")), schema, options).alias("record")
        return lines.select(record, *folders).select("record.*")


class JsonFiles(_Json):
    """An array of objects, or one object, a file."""

    READS_DOCUMENTS: ClassVar[bool] = True

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """A document goes over several lines."""
        return {"multiLine": True}

    def _check_alike(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        rule: JsonRule,
        names: Names | None,
        by_spark: Sequence[JudgedBySpark],
    ) -> CheckedFiles:
        rows = lines_of(spark, self.scanner, files, self._of_text, wholetext="true")
        path = self.scanner.path_of(files)
        return check_documents(
            rows,
            path,
            rule,
            names,
            files,
            lambda name: whole_text(self.place, name, self._encoding),
            self._undecodable,
            by_spark,
        )


def _fault(text: str, *, documents: bool) -> str | None:
    """Return why Spark finds no field in records of sound JSON; None if there is none."""
    try:
        types = types_of_document(text) if documents else types_of_lines(text)
    except Unclear as fault:
        return str(fault) if fault.effect == "bad" else None
    return _NONE_READ if types.columns else None
