"""XML: an element a record, whose name the user gives (``rowTag``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import Reading
from partitions.records.options import by_lower_name, encoding_of, other_encoding
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.beside_folders import fault_beside_folder, folder_fields
from resources.sources.files.checked import NAMED, BadRecord, CheckedFiles, Unknown, in_order
from resources.sources.files.elements import (
    BrokenXmlError,
    Element,
    XmlForm,
    XmlLook,
    elements,
    look_through,
    names_before,
)
from resources.sources.files.failures import bad_records, names_in_two_cases
from resources.sources.files.fields import spelt_in_two_cases
from resources.sources.files.formats.alike import only, read_alike
from resources.sources.files.formats.format import CORRUPT
from resources.sources.files.formats.variants import (
    columns_of_records,
    names_told_by_case,
    struct_of,
    wider_numbers,
)
from resources.sources.files.formats.xml_inferring import XmlColumns, with_types
from resources.sources.files.inferring import type_of_sample
from resources.sources.files.paths import folder_column
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_values import XML_SPACES, trimmed, typed, value_of, with_texts
from resources.sources.files.xml_check import XmlRule
from resources.sources.files.xml_names import NameRules
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructType

_MOST_NAMES = 10
_OLD_PARSER = "useLegacyXMLParser"
_TRIMS = "ignoreSurroundingSpaces"


class XmlFiles(XmlColumns):
    """Elements of one name, wherever they stand in the document."""

    READER: ClassVar[str] = "xml"
    READS_DOCUMENTS: ClassVar[bool] = True

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Have nothing to say yet."""
        super().__init__(place, dataflow, staging)
        self._remarks: dict[str, None] = {}
        self._converted: set[str] = set()
        self._looks: dict[SourceFile, XmlLook] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """Which files have no record."""
        return tuple(self._remarks)

    @override
    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Spaces around a text are part of it; Spark tells no type of a text with some."""
        is_chosen = bool(self._option(_TRIMS, ""))
        # Only the older parser reads a document without a declaration in the encoding that options name.
        of_encoding = {_OLD_PARSER: True} if other_encoding(self.source.options) else {}
        return of_encoding if is_chosen else {_TRIMS: infer, **of_encoding}

    def apart(self, path: str) -> str:
        """Files with texts that Spark's reader does not take as they stand are read apart from others, and converted."""
        return "converted" if path in self._converted else ""

    def scan_rows(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Scan files; those with numbers or times that stand between spaces as texts, which are converted."""
        from pyspark.sql import functions as F

        if not any(file.path in self._converted for file in files):
            return self.scan(spark, files, schema, scanner, **changes)
        rows = self.scan(spark, files, with_texts(schema), scanner, **changes)
        null = Reading.of(self.source.options).null
        columns = [
            typed(F.col(quoted(field.name)), field.dataType, null, self.own_options).alias(field.name)
            for field in schema.fields
        ]
        return rows.select(*columns)

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of the records of the first file that has some, with the types that hold their texts in all files.

        What is text in a later file changes no type, and is refused when the file is checked: so is an element that stands twice where the first
        file has one.
        """
        from pyspark.sql.types import StructType

        for file in files:
            options = {"inferSchema": "false", "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
            with names_told_by_case(spark):
                schema = self.columns_by_spark(spark, [file], **options)
            texts = StructType([field for field in schema.fields if field.name != CORRUPT])
            if texts.fields:
                if (spellings := spelt_in_two_cases(texts)) is not None:
                    raise names_in_two_cases(file.path, *spellings, None, may_be_ignored=False)
                types = self.types_of_leaves(spark, [file], texts)
                if len(files) > 1:
                    sample = self.types_of_leaves(spark, files, texts)
                    types = {path: type_of_sample(types[path], sample[path]) for path in types}
                return struct_of(with_types(texts.jsonValue(), (), types))
            broken = self._look(file).broken
            if broken is not None:
                raise bad_records(file.path, [_as_record(broken)], show=self._dataflow.show_bad_records)
        self._note_missing_tag(files)
        return None

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Read all leaves as texts, and judge files with one that is not exact; look whether each has records, and ends."""
        self._looks = {file: look for file, look in self._looks.items() if file in files}
        looks = {file.path: self._look(file) for file in files}
        strays = {name: self._name_rules.strays(look.names, pinned.struct) for name, look in looks.items()}
        is_checked = self._dataflow.unknown_fields != "ignore"
        with_nils = {name for name, stray in strays.items() if stray.nils and is_checked}
        records: list[tuple[str, BadRecord]] = []
        counts: dict[str, int] = {}
        empty: list[SourceFile] = []
        for group, schema in read_alike(self, files, pinned):
            reading = Reading.of(self.source.options, inferred=pinned.declared is None)
            spelt = folder_fields(group[0].path, pinned)
            rule = XmlRule(
                only(pinned.struct, [*schema.names, *spelt]),
                reading,
                *self._names,
                self.own_options,
                takes_nil=not with_nils,
                must_know_some=not is_checked and not self.rescues,
            )
            answers = self._answers(spark, group, schema, rule, spelt, pinned)
            self._converted -= {file.path for file in group}
            self._converted |= {name for name, row in answers.items() if row["is_converted"]}
            empty += [file for file in group if file.path not in answers]
            for file in group:
                answer, broken = answers.get(file.path), looks[file.path].broken
                is_suspect = file.path in with_nils or (answer is not None and answer["is_bad"])
                of_file, count = self._judged(spark, file, rule) if is_suspect else ([], 0)
                if not of_file and broken is not None:
                    of_file = [_as_record(broken)]
                elif not of_file and answer is not None:
                    of_file = _beside_folder(file.path, answer, spelt)
                records += [(file.path, record) for record in of_file]
                counts |= {file.path: count} if count else {}
        self._note_missing_tag(empty)
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
            spellings = spelt_in_two_cases(pinned.struct, unknown) or self._name_rules.spelt_in_two_cases(
                of_elements, pinned.struct
            )
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
        rows = self.scan(spark, files, rule.as_texts().add(CORRUPT, "string"), **options)
        path = self.scanner.path_of(files)
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
            value = trimmed(text) if is_text else value_of(trimmed(text), data_type, self.own_options)
            return ~F.coalesce(value == folder.try_cast(data_type), F.lit(False))

        return F.try_element_at(F.filter(texts, other), F.lit(1))

    def _judged(self, spark: SparkSession, file: SourceFile, rule: XmlRule) -> tuple[list[BadRecord], int]:
        """The first records of a file that cannot be loaded, and how many there are."""
        misread, number, count = self._misread(spark, file, rule), 0, 0
        first: list[BadRecord] = []
        try:
            for number, element in enumerate(elements(self.place, file.path, self._form), 1):
                fault = rule.fault(element, misread)
                if fault is not None:
                    line, why = fault
                    count += 1
                    if count <= NAMED:
                        record = BadRecord(_shown(element), f"record {number}: {why.reason}", line, why.value)
                        first.append(record)
        except BrokenXmlError as broken:
            return [*first[: NAMED - 1], _as_record(broken)], count + 1
        return first, count

    def _misread(self, spark: SparkSession, file: SourceFile, rule: XmlRule) -> Mapping[str, Collection[str]]:
        """The texts of a file that are none of the form that options name, by the dotted name of their column."""
        from pyspark.sql import functions as F

        texts = rule.misread_texts()
        if not texts:
            return {}
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        rows = self.scan(spark, [file], rule.as_texts().add(CORRUPT, "string"), **options)
        misread_columns = [
            F.array_distinct(F.flatten(F.collect_list(column))).alias(f"c{place}")
            for place, column in enumerate(texts.values())
        ]
        (row,) = rows.agg(*misread_columns).collect()
        return {name: frozenset(row[place]) for place, name in enumerate(texts)}

    def _look(self, file: SourceFile) -> XmlLook:
        """Parse a file once: checks, and questions for its names, ask for the same answer."""
        if file not in self._looks:
            self._looks[file] = look_through(self.place, file.path, self._form)
        return self._looks[file]

    def _note_missing_tag(self, files: Sequence[SourceFile]) -> None:
        """Look into files without a record: a wrong ``rowTag`` is no error to Spark, which finds none then."""
        tag = self._option("rowTag", "")
        others: dict[str, list[str]] = {}
        for file in files if len(self._remarks) < _MOST_NAMES else ():
            names = names_before(self.place, file.path, tag, _MOST_NAMES) if file.size else None
            if names and len(names) > 1:  # a root alone is an empty document
                others[file.path] = names
        for path, names in list(others.items())[:1]:
            which = f"file {path} and {len(others) - 1} more have" if len(others) > 1 else f"file {path} has"
            remark = f"{which} no element {tag}, so no record: it has {', '.join(names)}; correct options.rowTag if one of these is a record"
            self._remarks[remark] = None

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Look at all records."""
        rules = self._name_rules
        return {
            file.path: frozenset(name.casefold() for name in rules.columns(self._look(file).names))
            for file in files
        }

    def other_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the pinned columns with those that records have beside them; only files that have some, and can be loaded, are read for their types."""
        checked = check()
        bad = {*checked.bad_files, *(path for path, _ in checked.bad_records)}
        others = [file for file in files if file.path in checked.unknown and file.path not in bad]
        return columns_of_records(self, spark, others, pinned, self._names[0])

    def wider_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Read the files with the widest whole numbers that they hold."""
        return wider_numbers(self, spark, files, pinned)

    @property
    def _names(self) -> tuple[str, str]:
        """The prefix of the names of attributes, and the name of the text beside them."""
        return self._option("attributePrefix", "_"), self._option("valueTag", "_VALUE")

    @property
    def _form(self) -> XmlForm:
        encoding = encoding_of(self.source.options) or ""
        return XmlForm(self._option("rowTag", ""), encoding, self._is_local)

    @property
    def _name_rules(self) -> NameRules:
        has_attributes = self._option("excludeAttribute", "false").lower() != "true"
        return NameRules(
            *self._names, self._option("wildcardColName", "xs_any"), self._is_local, has_attributes
        )

    @property
    def _is_local(self) -> bool:
        return self._option("ignoreNamespace", "false").lower() == "true"

    def _option(self, name: str, default: str) -> str:
        """An option of the user's, whatever its case."""
        return by_lower_name(self.source.options).get(name.lower(), default)


def _beside_folder(path: str, answer: Row, spelt: Mapping[str, str]) -> list[BadRecord]:
    """The first value of a file that is another than the folder's."""
    for place, name in enumerate(spelt):
        if (value := answer[f"other{place}"]) is not None:
            fault = fault_beside_folder(name, spelt[name], path, value)
            return [BadRecord("", fault.reason, None, fault.value)]
    return []


def _as_record(broken: BrokenXmlError) -> BadRecord:
    why = broken.why if broken.is_xml else f"expected XML, found text that is none ({broken.why})"
    return BadRecord("", why, broken.line)


def _shown(found: Element) -> str:
    """An element, roughly as it stands in the file."""
    attributes = "".join(f' {name}="{value}"' for name, value in found.attributes.items())
    inner = "".join(map(_shown, found.children)) or found.text.strip(XML_SPACES)
    return f"<{found.name}{attributes}>{inner}</{found.name}>"
