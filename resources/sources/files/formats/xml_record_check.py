"""Look through the records of XML files before they are loaded: Spark finds files with a text that is not exact, and these are parsed once more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import Reading
from resources.sources.files.beside_folders import fault_beside_folder, folder_fields
from resources.sources.files.checked import NAMED, BadRecord, CheckedFiles, Unknown, in_order
from resources.sources.files.elements import BrokenXmlError, Element, elements
from resources.sources.files.failures import names_in_two_cases
from resources.sources.files.fields import spelt_in_two_cases
from resources.sources.files.formats.alike import only, read_alike
from resources.sources.files.formats.format import CORRUPT, FormatReader
from resources.sources.files.formats.xml_looks import XmlLooks, broken_record
from resources.sources.files.formats.xml_options import XmlOptions
from resources.sources.files.paths import folder_column
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.text_values import XML_SPACES, trimmed, value_of
from resources.sources.files.xml_check import XmlRule
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, Row, SparkSession
    from pyspark.sql.types import DataType, StructType


class XmlCheck:
    """Looks through files before they are loaded.

    Attributes:
        converted: the files with texts that Spark's reader does not take as they stand.
    """

    def __init__(self, form: FormatReader, looks: XmlLooks, options: XmlOptions) -> None:
        """Look at no file yet.

        Args:
            form: reads the files.
            looks: at these.
            options: of the source.
        """
        self._form, self._looks, self._options = form, looks, options
        self.converted: set[str] = set()

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Read all leaves as texts, and judge files with one that is not exact; look whether each has records, and ends."""
        self._looks.forget_others(files)
        looks = {file.path: self._looks.at(file) for file in files}
        strays = {
            name: self._options.name_rules.strays(look.names, pinned.struct) for name, look in looks.items()
        }
        is_checked = self._form.dataflow.unknown_fields != "ignore"
        with_nils = {name for name, stray in strays.items() if stray.nils and is_checked}
        records: list[tuple[str, BadRecord]] = []
        counts: dict[str, int] = {}
        empty: list[SourceFile] = []
        for group, schema in read_alike(self._form, files, pinned):
            reading = Reading.of(self._form.source.options, inferred=pinned.declared is None)
            spelt = folder_fields(group[0].path, pinned)
            rule = XmlRule(
                only(pinned.struct, [*schema.names, *spelt]),
                reading,
                *self._options.names,
                self._form.own_options,
                takes_nil=not with_nils,
                must_know_some=not is_checked and not self._form.rules.rescues,
            )
            answers = self._answers(spark, group, schema, rule, spelt, pinned)
            self.converted -= {file.path for file in group}
            self.converted |= {name for name, row in answers.items() if row["is_converted"]}
            empty += [file for file in group if file.path not in answers]
            for file in group:
                answer, broken = answers.get(file.path), looks[file.path].broken
                is_suspect = file.path in with_nils or (answer is not None and answer["is_bad"])
                of_file, count = self._judged(spark, file, rule) if is_suspect else ([], 0)
                if not of_file and broken is not None:
                    of_file = [broken_record(broken)]
                elif not of_file and answer is not None:
                    of_file = _beside_folder(file.path, answer, spelt)
                records += [(file.path, record) for record in of_file]
                counts |= {file.path: count} if count else {}
        self._looks.note_missing_tag(empty)
        lacking = {
            name: Unknown(stray.names)
            for name, stray in strays.items()
            if stray.names and is_checked and looks[name].broken is None
        }
        names = {path: (look.names, strays[path].names if is_checked else ()) for path, look in looks.items()}
        bad_files = self._in_two_cases(names, pinned)
        return CheckedFiles(bad_files, in_order(records, files), counts, unknown=lacking)

    def _in_two_cases(
        self, names: Mapping[str, tuple[Any, Sequence[str]]], pinned: PinnedSchema
    ) -> dict[str, BadFile]:
        """Files with two names that differ in upper and lower case only.

        Args:
            names: of the elements of each file, and those of its unknown fields, by path.
            pinned: the schema.
        """
        bad_files: dict[str, BadFile] = {}
        for path, (of_elements, unknown) in names.items():
            spellings = spelt_in_two_cases(
                pinned.struct, unknown
            ) or self._options.name_rules.spelt_in_two_cases(of_elements, pinned.struct)
            if spellings is not None:
                bad_files[path] = names_in_two_cases(path, *spellings, None, may_be_ignored=False)
        return bad_files

    def _answers(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        rule: XmlRule,
        spelt: Mapping[str, str],
        pinned: PinnedSchema,
    ) -> Mapping[str, Row]:
        """What Spark tells of the texts of files that are read in one scan, by path; nothing of one without records.

        Args:
            spark: a session.
            files: that are read in one scan.
            schema: of their records.
            rule: of these.
            spelt: how folders spell the columns that they name, too.
            pinned: the schema.
        """
        from pyspark.sql import functions as F

        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self._form.scan(spark, files, rule.as_texts().add(CORRUPT, "string"), **options)
        path = self._form.scanner.path_of(files)
        is_bad = F.bool_or(rule.is_bad() | F.col(quoted(CORRUPT)).isNotNull()).alias("is_bad")
        is_converted = F.bool_or(rule.is_converted()).alias("is_converted")
        # Spark refuses to read corrupt records alone.
        some = F.count(quoted(schema.fieldNames()[0])).alias("some")
        others = [
            F.first(
                self._contradicting(
                    rule.texts(name), folder_column(path, spelt[name]), pinned.struct[name].dataType
                ),
                ignorenulls=True,
            ).alias(f"other{place}")
            for place, name in enumerate(spelt)
        ]
        judged = rows.groupBy(path.alias("path")).agg(is_bad, is_converted, some, *others)
        return {row["path"]: row for row in judged.collect()}

    def _contradicting(self, texts: Column, folder: Column, data_type: DataType) -> Column:
        """The first of some texts that has another value than the folder."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        def other(text: Column) -> Column:
            is_text = isinstance(data_type, StringType)
            value = trimmed(text) if is_text else value_of(trimmed(text), data_type, self._form.own_options)
            return ~F.coalesce(value == folder.try_cast(data_type), F.lit(False))

        return F.try_element_at(F.filter(texts, other), F.lit(1))

    def _judged(self, spark: SparkSession, file: SourceFile, rule: XmlRule) -> tuple[list[BadRecord], int]:
        """The first records of a file that cannot be loaded, and how many there are."""
        misread, number, count = self._misread(spark, file, rule), 0, 0
        first: list[BadRecord] = []
        try:
            for number, element in enumerate(elements(self._form.place, file.path, self._options.form), 1):
                fault = rule.fault(element, misread)
                if fault is not None:
                    line, why = fault
                    count += 1
                    if count <= NAMED:
                        record = BadRecord.of(why, _shown(element), line, where=f"record {number}: ")
                        first.append(record)
        except BrokenXmlError as broken:
            return [*first[: NAMED - 1], broken_record(broken)], count + 1
        return first, count

    def _misread(self, spark: SparkSession, file: SourceFile, rule: XmlRule) -> Mapping[str, Collection[str]]:
        """The texts of a file that are none of the form that options name, by the dotted name of their column."""
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


def _beside_folder(path: str, answer: Row, spelt: Mapping[str, str]) -> list[BadRecord]:
    """The first value of a file that is another than the folder's."""
    for place, name in enumerate(spelt):
        if (value := answer[f"other{place}"]) is not None:
            fault = fault_beside_folder(name, spelt[name], path, value)
            return [BadRecord.of(fault)]
    return []


def _shown(element: Element) -> str:
    """An element, roughly as it stands in the file."""
    attributes = "".join(f' {name}="{value}"' for name, value in element.attributes.items())
    inner = "".join(map(_shown, element.children)) or element.text.strip(XML_SPACES)
    return f"<{element.name}{attributes}>{inner}</{element.name}>"
