"""JSON files: one object a line (ndjson), or one document a file (json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import TextOptions
from partitions.records.json_decoding import MemberOrder, first_record_names
from partitions.records.json_lines import JsonRule
from partitions.records.options import lenient_options, non_utf8_encoding, without_encoding
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import BadRecord, CheckedFiles, UnknownFields, sort_by_file
from resources.sources.files.copies import Rewrite, write_in_utf8, write_records_as_lines
from resources.sources.files.custom_formats import CustomFormats
from resources.sources.files.folder_conflicts import FolderFields
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.json_bytes import find_decoding_error, json_encoding
from resources.sources.files.formats.json_inferring import JsonColumns
from resources.sources.files.formats.scan_groups import group_for_scans
from resources.sources.files.json_check import (
    SparkJudge,
    check_documents,
    check_lines,
)
from resources.sources.files.lines import PACKED_ENDINGS, LineNumbers, read_beginning, read_text
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, rescued_records
from resources.sources.files.scan import Scanner
from resources.sources.files.text_lines import lines_of
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class _Json(FormatReader):
    READER: ClassVar[str] = "json"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; read nothing."""
        super().__init__(place, dataflow, staging)
        self.columns = JsonColumns(self)

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Check all records against the rule of the schema."""
        if lenient_options(self.source.options):
            return CheckedFiles()
        bad_files: dict[str, BadFile] = {}
        records: list[tuple[str, BadRecord]] = []
        unknown: dict[str, UnknownFields] = {}
        counts: dict[str, int] = {}
        is_cut = False
        for group, schema in group_for_scans(self, files, pinned):
            rule = JsonRule.of(
                None if self.rules.rescues else _with_folder_fields(pinned.with_untyped(schema), pinned),
                self.dataflow.unknown_fields == "ignore",
                TextOptions.of(self.source.options),
            )
            names = first_record_names(read_beginning(self.place, group[0].path, json_encoding(self.source)))
            judges: list[SparkJudge] = []
            if rule.pattern.schema is not None:
                judges.append(CustomFormats.of(rule.pattern.schema, self.own_options))
                path = self.scanner.path_of(group)
                judges.append(FolderFields.of(group, pinned, path, self.own_options))
            checked = self._check_scan(spark, group, rule, names, judges)
            bad_files |= checked.bad_files
            records += checked.bad_records
            unknown |= checked.unknown
            counts |= checked.counts
            is_cut |= checked.is_cut
        return CheckedFiles(bad_files, sort_by_file(records, files), counts, is_cut, unknown)

    def _check_scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        rule: JsonRule,
        names: MemberOrder | None,
        judges: Sequence[SparkJudge],
    ) -> CheckedFiles:
        """Check files that are read in one scan."""
        raise NotImplementedError

    @override
    def rewrite_of(self, path: str) -> Rewrite | None:
        """Return the function that rewrites a file in another encoding as UTF-8; None for UTF-8.

        In other encodings Spark loses the spelling of numbers, and takes ``1.50`` for the text ``1.5``. Mode rescue,
        and rows that say what their record lacks, are parsed from decoded texts instead.
        """
        if self._parses_texts or non_utf8_encoding(self.source.options) is None:
            return None
        return write_in_utf8

    def reader_options(self, path: str, *, infer: bool) -> dict[str, str]:
        """Return the options without a UTF-8 encoding: Spark keeps the spelling of numbers only without one."""
        options = super().reader_options(path, infer=infer)
        return options if non_utf8_encoding(options) else without_encoding(options)

    @override
    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        folders: Sequence[FolderValue],
        scanner: Scanner,
    ) -> DataFrame:
        """Parse the text of each record twice: as it is, and with the pinned columns."""
        texts = lines_of(spark, scanner, files, self.own_options)
        return rescued_records(texts, data, folders, self.own_options, marks_absent=self.rules.marks_absent)

    @property
    def _parses_texts(self) -> bool:
        """Whether records are parsed from their text, one a line."""
        return self.rules.rescues or self.rules.marks_absent

    @override
    def find_exact_error(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return the error for bytes that are not UTF-8, which fail anywhere in Spark's parser."""
        return find_decoding_error(self, file.path)


def _with_folder_fields(schema: Mapping[str, Any], pinned: PinnedSchema) -> Mapping[str, Any]:
    """Return the columns of records, together with those that folders name: a record may have them, too."""
    names = {column["name"] for column in schema["fields"]}
    folder_fields = [column for column in pinned.struct.jsonValue()["fields"] if column["name"] not in names]
    return {**schema, "fields": [*schema["fields"], *folder_fields]}


class NdjsonFiles(_Json):
    """A reader of files with one object a line."""

    def _check_scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        rule: JsonRule,
        names: MemberOrder | None,
        judges: Sequence[SparkJudge],
    ) -> CheckedFiles:
        rows = lines_of(spark, self.scanner, files, self.own_options)
        max_bad_records = self.dataflow.max_bad_records
        path = self.scanner.path_of(files)
        return check_lines(
            rows,
            path,
            rule,
            names,
            files,
            max_bad_records,
            lambda texts: LineNumbers(self.place, texts, json_encoding(self.source)),
            partial(find_decoding_error, self),
            judges,
        )


class JsonFiles(_Json):
    """A reader of files with one document: an array of objects, or an object."""

    READS_DOCUMENTS: ClassVar[bool] = True

    @override
    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Return the options: a document spans lines."""
        return {"multiLine": True}

    def rewrite_of(self, path: str) -> Rewrite | None:
        """Return the function that rewrites a compressed file, too, since Spark loses its numbers' spelling.

        Records that are parsed from their text are rewritten as lines: Spark would respell them.
        """
        if self._parses_texts:
            return write_records_as_lines
        return write_in_utf8 if path.endswith(PACKED_ENDINGS) else super().rewrite_of(path)

    def _check_scan(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        rule: JsonRule,
        names: MemberOrder | None,
        judges: Sequence[SparkJudge],
    ) -> CheckedFiles:
        rows = lines_of(spark, self.scanner, files, self.own_options, wholetext="true")
        path = self.scanner.path_of(files)
        return check_documents(
            rows,
            path,
            rule,
            names,
            files,
            lambda name: read_text(self.place, name, json_encoding(self.source)),
            partial(find_decoding_error, self),
            judges,
        )
