"""Check XML files before they are loaded.

Spark finds the files with a text that its column's type cannot hold exactly; these are parsed again to
locate the bad records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import TextOptions
from resources.sources.files.checked import (
    MAX_NAMED_RECORDS,
    BadRecord,
    CheckedFiles,
    UnknownFields,
    sort_by_file,
)
from resources.sources.files.elements import BrokenXmlError, Element, read_elements
from resources.sources.files.failures import case_conflict_error
from resources.sources.files.fields import find_case_conflict
from resources.sources.files.folder_conflicts import folder_conflict_fault, folder_fields
from resources.sources.files.formats.format import CORRUPT, FormatReader
from resources.sources.files.formats.scan_groups import group_for_scans, select_columns
from resources.sources.files.formats.xml_documents import DocumentCache, broken_record
from resources.sources.files.formats.xml_options import XmlOptions
from resources.sources.files.paths import folder_column
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.text_values import XML_SPACES, parse_text, trim
from resources.sources.files.xml_check import XmlRule
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, Row, SparkSession
    from pyspark.sql.types import DataType, StructType


class XmlCheck:
    """Finds the bad records of XML files, and the files that must be read as text.

    Attributes:
        converted_paths: the paths of files that must be read as text first, since Spark's reader would
        alter a value.
    """

    def __init__(self, form: FormatReader, documents: DocumentCache, options: XmlOptions) -> None:
        """Store the collaborators.

        Args:
            form: the format's reader.
            documents: the parsed documents.
            options: the source's options.
        """
        self._form, self._documents, self._options = form, documents, options
        self.converted_paths: set[str] = set()

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Check all files; return those that cannot be loaded exactly, with their first bad records.

        Warns of files without records.
        """
        self._documents.forget_others(files)
        documents_by_path = {file.path: self._documents.document(file) for file in files}
        strays = {
            path: self._options.name_rules.strays(document.names, pinned.struct)
            for path, document in documents_by_path.items()
        }
        rejects_unknown_fields = not self._ignores_unknown_fields
        paths_with_nils = {path for path, stray in strays.items() if stray.nils and rejects_unknown_fields}
        records: list[tuple[str, BadRecord]] = []
        counts: dict[str, int] = {}
        files_without_records: list[SourceFile] = []
        for group, schema in group_for_scans(self._form, files, pinned):
            spellings = folder_fields(group[0].path, pinned)
            columns = select_columns(pinned.struct, [*schema.names, *spellings])
            rule = self._rule(columns, pinned, nil_as_empty_text=not paths_with_nils)
            verdicts = self._spark_verdicts(spark, group, schema, rule, spellings, pinned)
            self.converted_paths -= {file.path for file in group}
            self.converted_paths |= {path for path, row in verdicts.items() if row["is_converted"]}
            files_without_records += [file for file in group if file.path not in verdicts]
            for file in group:
                verdict, xml_error = verdicts.get(file.path), documents_by_path[file.path].error
                is_suspect = file.path in paths_with_nils or (verdict is not None and verdict["is_bad"])
                bad_records, count = self._judge(spark, file, rule) if is_suspect else ([], 0)
                if not bad_records and xml_error is not None:
                    bad_records = [broken_record(xml_error)]
                elif not bad_records and verdict is not None:
                    bad_records = _find_folder_conflict(file.path, verdict, spellings)
                records += [(file.path, record) for record in bad_records]
                counts |= {file.path: count} if count else {}
        self._documents.note_missing_tag(files_without_records)
        unknown_fields = {
            path: UnknownFields(stray.names)
            for path, stray in strays.items()
            if stray.names and rejects_unknown_fields and documents_by_path[path].error is None
        }
        names_by_path = {
            path: (document.names, strays[path].names if rejects_unknown_fields else ())
            for path, document in documents_by_path.items()
        }
        bad_files = self._find_case_conflicts(names_by_path, pinned)
        return CheckedFiles(bad_files, sort_by_file(records, files), counts, unknown=unknown_fields)

    def _rule(self, columns: StructType, pinned: PinnedSchema, *, nil_as_empty_text: bool) -> XmlRule:
        """Return what a valid record with these columns looks like."""
        return XmlRule(
            columns,
            TextOptions.of(self._form.source.options, inferred=pinned.declared is None),
            *self._options.names,
            self._form.own_options,
            nil_as_empty_text=nil_as_empty_text,
            requires_known_field=self._ignores_unknown_fields and not self._form.rules.rescues,
        )

    @property
    def _ignores_unknown_fields(self) -> bool:
        return self._form.dataflow.unknown_fields == "ignore"

    def _find_case_conflicts(
        self, names_by_path: Mapping[str, tuple[Any, Sequence[str]]], pinned: PinnedSchema
    ) -> dict[str, BadFile]:
        """Return, by path, an error for each file with two names that differ only in case.

        Args:
            names_by_path: the names in the elements of each file, and its unknown fields.
            pinned: the schema.
        """
        bad_files: dict[str, BadFile] = {}
        for path, (element_names, unknown) in names_by_path.items():
            spellings = find_case_conflict(
                pinned.struct, unknown
            ) or self._options.name_rules.find_case_conflict(element_names, pinned.struct)
            if spellings is not None:
                bad_files[path] = case_conflict_error(path, *spellings, None, may_be_ignored=False)
        return bad_files

    def _spark_verdicts(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        rule: XmlRule,
        spellings: Mapping[str, str],
        pinned: PinnedSchema,
    ) -> Mapping[str, Row]:
        """Return Spark's verdict on the texts of each file in one scan, by path.

        Files without records are missing.

        Args:
            spark: a session.
            files: the files of one scan.
            schema: the schema of their records.
            rule: what a valid record looks like.
            spellings: by column, its spelling in the folder name (for columns that are also partition
            folders).
            pinned: the schema.
        """
        from pyspark.sql import functions as F

        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self._form.scan(spark, files, rule.as_texts().add(CORRUPT, "string"), **options)
        path = self._form.scanner.path_of(files)
        is_bad = F.bool_or(rule.is_bad() | F.col(quoted(CORRUPT)).isNotNull()).alias("is_bad")
        is_converted = F.bool_or(rule.is_converted()).alias("is_converted")
        # Not used: Spark refuses a query that reads only the corrupt-record column, so read one more.
        record_count = F.count(quoted(schema.fieldNames()[0])).alias("some")
        contradicting_texts = [
            F.first(
                self._contradicting_text(
                    rule.texts(name), folder_column(path, spellings[name]), pinned.struct[name].dataType
                ),
                ignorenulls=True,
            ).alias(f"conflict{index}")
            for index, name in enumerate(spellings)
        ]
        judged = rows.groupBy(path.alias("path")).agg(
            is_bad, is_converted, record_count, *contradicting_texts
        )
        return {row["path"]: row for row in judged.collect()}

    def _contradicting_text(self, texts: Column, folder: Column, data_type: DataType) -> Column:
        """Return the first text that contradicts the folder; NULL if there is none."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        def contradicts_folder(text: Column) -> Column:
            is_text = isinstance(data_type, StringType)
            value = trim(text) if is_text else parse_text(trim(text), data_type, self._form.own_options)
            return ~F.coalesce(value == folder.try_cast(data_type), F.lit(False))

        return F.try_element_at(F.filter(texts, contradicts_folder), F.lit(1))

    def _judge(self, spark: SparkSession, file: SourceFile, rule: XmlRule) -> tuple[list[BadRecord], int]:
        """Return a file's first bad records, and how many bad ones it has."""
        misread, number, count = self._misread_texts(spark, file, rule), 0, 0
        first: list[BadRecord] = []
        try:
            for number, element in enumerate(
                read_elements(self._form.place, file.path, self._options.form), 1
            ):
                fault = rule.fault(element, misread)
                if fault is not None:
                    line, why = fault
                    count += 1
                    if count <= MAX_NAMED_RECORDS:
                        record = BadRecord.of(why, _element_text(element), line, where=f"record {number}: ")
                        first.append(record)
        except BrokenXmlError as broken:
            return [*first[: MAX_NAMED_RECORDS - 1], broken_record(broken)], count + 1
        return first, count

    def _misread_texts(
        self, spark: SparkSession, file: SourceFile, rule: XmlRule
    ) -> Mapping[str, Collection[str]]:
        """Return, by column, the texts of a file that do not match the format set in the options.

        Columns are named with dots.
        """
        from pyspark.sql import functions as F

        texts = rule.misread_texts()
        if not texts:
            return {}
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self._form.scan(spark, [file], rule.as_texts().add(CORRUPT, "string"), **options)
        misread_columns = [
            F.array_distinct(F.flatten(F.collect_list(column))).alias(f"c{index}")
            for index, column in enumerate(texts.values())
        ]
        (row,) = rows.agg(*misread_columns).collect()
        return {name: frozenset(row[index]) for index, name in enumerate(texts)}


def _find_folder_conflict(path: str, verdict: Row, spellings: Mapping[str, str]) -> list[BadRecord]:
    """Return the first value of a file that contradicts the folder, as a bad record."""
    for index, name in enumerate(spellings):
        if (value := verdict[f"conflict{index}"]) is not None:
            fault = folder_conflict_fault(name, spellings[name], path, value)
            return [BadRecord.of(fault)]
    return []


def _element_text(element: Element) -> str:
    """Return an element roughly as written."""
    attributes = "".join(f' {name}="{value}"' for name, value in element.attributes.items())
    inner = "".join(map(_element_text, element.children)) or element.text.strip(XML_SPACES)
    return f"<{element.name}{attributes}>{inner}</{element.name}>"
