"""XML: an element a record, whose name the user gives (``rowTag``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.records.forms import Reading
from resources.places import Place
from resources.sources.files.checked import BadRecord, CheckedFiles, Unknown, in_order
from resources.sources.files.elements import BrokenXmlError, Element, broken_end, elements, names_before
from resources.sources.files.failures import bad_records, names_in_two_cases
from resources.sources.files.fields import spelt_in_two_cases
from resources.sources.files.footers import paths_of
from resources.sources.files.formats.alike import read_alike
from resources.sources.files.formats.format import CORRUPT, FormatReader
from resources.sources.files.formats.variants import (
    columns_of_records,
    names_in_records,
    names_told_by_case,
    strays_in_records,
    struct_of,
    wider_numbers,
)
from resources.sources.files.inferring import type_of_sample, types_of_texts
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.xml_check import XmlRule, texts_at
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_MOST_NAMES = 10


class XmlFiles(FormatReader):
    """Elements of one name, wherever they stand in the document."""

    READER: ClassVar[str] = "xml"
    READS_DOCUMENTS: ClassVar[bool] = True

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Have nothing to say yet."""
        super().__init__(place, dataflow, staging)
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """Which files have no record."""
        return tuple(self._remarks)

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
                    raise names_in_two_cases(file.path, *spellings, None)
                types = self._types(spark, [file], texts)
                if len(files) > 1:
                    sample = self._types(spark, files, texts)
                    types = {path: type_of_sample(types[path], sample[path]) for path in types}
                return struct_of(_typed(texts.jsonValue(), (), types))
            record = self._breaks(file.path)
            if record is not None:
                raise bad_records(file.path, [record], show=self._dataflow.show_bad_records)
        self._note_missing_tag(files)
        return None

    def _types(
        self, spark: SparkSession, files: Sequence[SourceFile], texts: StructType
    ) -> Mapping[tuple[str, ...], str]:
        """The types of the texts of files, by the paths of elements and attributes."""
        from pyspark.sql import functions as F

        rows = self.scan(spark, files, texts, mode="PERMISSIVE")
        leaves = [
            ((field.name, *path), column)
            for field in texts.fields
            for path, column in texts_at(F.col(quoted(field.name)), field.dataType)
        ]
        reading = Reading.of(self.source.options, inferred=True)
        types = types_of_texts(
            rows, [column for _, column in leaves], self.source.options, reading, several=True
        )
        return dict(zip([path for path, _ in leaves], types, strict=True))

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Read all leaves as texts, and judge files with one that is not exact; look whether each has records, and ends."""
        from pyspark.sql import functions as F

        with names_told_by_case(spark):
            strays = (
                {}
                if self._dataflow.unknown_fields == "ignore"
                else strays_in_records(self, spark, files, pinned.struct, *self._names)
            )
        bad_files = {
            path: names_in_two_cases(path, *spellings, None)
            for path, stray in strays.items()
            if (spellings := spelt_in_two_cases(pinned.struct, stray.names)) is not None
        }
        with_nils = {path for path, stray in strays.items() if stray.nils}
        records: list[tuple[str, BadRecord]] = []
        empty: list[SourceFile] = []
        for group, schema in read_alike(self, files, pinned):
            reading = Reading.of(self.source.options, inferred=pinned.declared is None)
            rule = XmlRule(schema, reading, *self._names, takes_nil=not with_nils)
            options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
            rows = self.scan(spark, group, rule.as_texts().add(CORRUPT, "string"), **options)
            path = self.scanner.path_of(group).alias("path")
            is_bad = F.bool_or(rule.is_bad() | F.col(quoted(CORRUPT)).isNotNull()).alias("is_bad")
            first = schema.fieldNames()[0]
            names = {part for field in paths_of(schema) for part in field}
            some = F.count(quoted(first)).alias("some")  # Spark refuses to read corrupt records alone
            answers = {row["path"]: row["is_bad"] for row in rows.groupBy(path).agg(is_bad, some).collect()}
            empty += [file for file in group if file.path not in answers]
            for file in group:
                is_suspect = answers.get(file.path) or file.path in with_nils
                record = self._judged(file.path, rule) if is_suspect else self._broken(file, names)
                if record is not None:
                    records.append((file.path, record))
        self._note_missing_tag(empty)
        lacking = {path: Unknown(stray.names) for path, stray in strays.items() if stray.names}
        return CheckedFiles(bad_files, bad_records=in_order(records, files), unknown=lacking)

    def _judged(self, path: str, rule: XmlRule) -> BadRecord | None:
        """The first record of a file that cannot be loaded."""
        number = 0
        try:
            for number, element in enumerate(self._elements(path), 1):
                fault = rule.fault(element)
                if fault is not None:
                    line, why = fault
                    return BadRecord(_shown(element), f"record {number}: {why.reason}", line, why.value)
        except BrokenXmlError as broken:
            return _as_record(broken)
        return None

    def _broken(self, file: SourceFile, names: Collection[str]) -> BadRecord | None:
        """The place where a file without a bad record stops being XML; None if it is whole."""
        encoding = self._option("encoding", self._option("charset", ""))
        broken = broken_end(self.place, file, encoding or None, names)
        return None if broken is None else _as_record(broken)

    def _breaks(self, path: str) -> BadRecord | None:
        """The place where a file without any record stops being XML; None if it is whole."""
        try:
            for _ in self._elements(path):
                pass
        except BrokenXmlError as broken:
            return _as_record(broken)
        return None

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

    def _elements(self, path: str) -> Iterator[Element]:
        return elements(self.place, path, self._option("rowTag", ""))

    @property
    def _names(self) -> tuple[str, str]:
        """The prefix of the names of attributes, and the name of the text beside them."""
        return self._option("attributePrefix", "_"), self._option("valueTag", "_VALUE")

    def _option(self, name: str, default: str) -> str:
        """An option of the user's, whatever its case."""
        given = {key.lower(): str(value) for key, value in self.source.options.items()}
        return given.get(name.lower(), default)


def _as_record(broken: BrokenXmlError) -> BadRecord:
    return BadRecord("", f"expected XML, found text that is none ({broken.why})", broken.line)


def _typed(data_type: Any, path: tuple[str, ...], types: Mapping[tuple[str, ...], str]) -> Any:
    """A type in Spark's JSON form, with the types of its leaves."""
    if isinstance(data_type, str):
        return types.get(path, data_type)
    if data_type["type"] == "struct":
        fields = [
            {**field, "type": _typed(field["type"], (*path, field["name"]), types)}
            for field in data_type["fields"]
        ]
        return {**data_type, "fields": fields}
    return {**data_type, "elementType": _typed(data_type["elementType"], path, types)}


def _shown(found: Element) -> str:
    """An element, roughly as it stands in the file."""
    attributes = "".join(f' {name}="{value}"' for name, value in found.attributes.items())
    inner = "".join(map(_shown, found.children)) or found.text.strip()
    return f"<{found.name}{attributes}>{inner}</{found.name}>"
