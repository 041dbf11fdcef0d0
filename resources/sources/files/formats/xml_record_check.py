"""Check XML files before they are loaded.

Spark finds the files with an inexact text; these are parsed again to find the records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import TextOptions
from resources.sources.files.checked import (
    MOST_NAMED_RECORDS,
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
    """A check of XML files before they are loaded.

    Attributes:
        converted: the files with texts that Spark's reader does not take as they stand.
    """

    def __init__(self, form: FormatReader, documents: DocumentCache, options: XmlOptions) -> None:
        """Store the parts; check nothing.

        Args:
            form: the format's reader.
            documents: the parsed documents.
            options: of the source.
        """
        self._form, self._documents, self._options = form, documents, options
        self.converted: set[str] = set()

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Judge the files with an inexact text, a broken end, or unknown names.

        Files without records give a warning.
        """
        self._documents.forget_others(files)
        documents_by_path = {file.path: self._documents.document(file) for file in files}
        strays = {
            name: self._options.name_rules.strays(document.names, pinned.struct)
            for name, document in documents_by_path.items()
        }
        is_checked = self._form.dataflow.unknown_fields != "ignore"
        paths_with_nils = {name for name, stray in strays.items() if stray.nils and is_checked}
        records: list[tuple[str, BadRecord]] = []
        counts: dict[str, int] = {}
        files_without_records: list[SourceFile] = []
        for group, schema in group_for_scans(self._form, files, pinned):
            reading = TextOptions.of(self._form.source.options, inferred=pinned.declared is None)
            spellings = folder_fields(group[0].path, pinned)
            rule = XmlRule(
                select_columns(pinned.struct, [*schema.names, *spellings]),
                reading,
                *self._options.names,
                self._form.own_options,
                takes_nil=not paths_with_nils,
                must_know_some=not is_checked and not self._form.rules.rescues,
            )
            verdicts = self._spark_verdicts(spark, group, schema, rule, spellings, pinned)
            self.converted -= {file.path for file in group}
            self.converted |= {name for name, row in verdicts.items() if row["is_converted"]}
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
        lacking = {
            name: UnknownFields(stray.names)
            for name, stray in strays.items()
            if stray.names and is_checked and documents_by_path[name].error is None
        }
        names = {
            path: (document.names, strays[path].names if is_checked else ())
            for path, document in documents_by_path.items()
        }
        bad_files = self._find_case_conflicts(names, pinned)
        return CheckedFiles(bad_files, sort_by_file(records, files), counts, unknown=lacking)

    def _find_case_conflicts(
        self, names: Mapping[str, tuple[Any, Sequence[str]]], pinned: PinnedSchema
    ) -> dict[str, BadFile]:
        """Return the files with two names that differ in case only, by path.

        Args:
            names: by path, the names in the elements of a file, and its unknown fields.
            pinned: the schema.
        """
        bad_files: dict[str, BadFile] = {}
        for path, (element_names, unknown) in names.items():
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
            schema: of their records.
            rule: of the records.
            spellings: the folders' spelling of columns that folders also name.
            pinned: the schema.
        """
        from pyspark.sql import functions as F

        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self._form.scan(spark, files, rule.as_texts().add(CORRUPT, "string"), **options)
        path = self._form.scanner.path_of(files)
        is_bad = F.bool_or(rule.is_bad() | F.col(quoted(CORRUPT)).isNotNull()).alias("is_bad")
        is_converted = F.bool_or(rule.is_converted()).alias("is_converted")
        # Spark refuses to read corrupt records alone.
        record_count = F.count(quoted(schema.fieldNames()[0])).alias("some")
        contradicting_texts = [
            F.first(
                self._contradicting_text(
                    rule.texts(name), folder_column(path, spellings[name]), pinned.struct[name].dataType
                ),
                ignorenulls=True,
            ).alias(f"other{place}")
            for place, name in enumerate(spellings)
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
        """Return the first bad records of a file, and their number."""
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
                    if count <= MOST_NAMED_RECORDS:
                        record = BadRecord.of(why, _element_text(element), line, where=f"record {number}: ")
                        first.append(record)
        except BrokenXmlError as broken:
            return [*first[: MOST_NAMED_RECORDS - 1], broken_record(broken)], count + 1
        return first, count

    def _misread_texts(
        self, spark: SparkSession, file: SourceFile, rule: XmlRule
    ) -> Mapping[str, Collection[str]]:
        """Return the texts of a file without the format that options name, by column.

        Columns are named with dots.
        """
        from pyspark.sql import functions as F

        texts = rule.misread_texts()
        if not texts:
            return {}
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self._form.scan(spark, [file], rule.as_texts().add(CORRUPT, "string"), **options)
        misread_columns = [
            F.array_distinct(F.flatten(F.collect_list(column))).alias(f"c{place}")
            for place, column in enumerate(texts.values())
        ]
        (row,) = rows.agg(*misread_columns).collect()
        return {name: frozenset(row[place]) for place, name in enumerate(texts)}


def _find_folder_conflict(path: str, verdict: Row, spellings: Mapping[str, str]) -> list[BadRecord]:
    """Return the first value of a file that contradicts the folder, as a bad record."""
    for place, name in enumerate(spellings):
        if (value := verdict[f"other{place}"]) is not None:
            fault = folder_conflict_fault(name, spellings[name], path, value)
            return [BadRecord.of(fault)]
    return []


def _element_text(element: Element) -> str:
    """Return an element roughly as written."""
    attributes = "".join(f' {name}="{value}"' for name, value in element.attributes.items())
    inner = "".join(map(_element_text, element.children)) or element.text.strip(XML_SPACES)
    return f"<{element.name}{attributes}>{inner}</{element.name}>"
