"""CSV and TSV: a header, and a record a line unless values go over several."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.csv_form import BREAK, NO_MARK, SKIPPED, CsvForm
from partitions.records.csv_lines import CsvItem, CsvRule
from partitions.records.forms import Reading
from partitions.records.judge import Fault
from partitions.records.options import by_lower_name
from partitions.schema_merging import with_wider_integers
from partitions.schema_types import Schema
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.beside_folders import contradicts, fault_beside_folder, folder_fields
from resources.sources.files.checked import BadRecord, CheckedFiles, in_order
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.failures import bad_encoding, bad_header, bad_records, open_quote
from resources.sources.files.first_values import first_values
from resources.sources.files.formats.alike import only, read_alike
from resources.sources.files.formats.csv_inferring import CsvColumns, texts_of
from resources.sources.files.formats.variants import struct_of
from resources.sources.files.lines import (
    Lines,
    beginning,
    binary_by_mark,
    encoding_by_mark,
    undecodable_line,
    whole_text,
)
from resources.sources.files.own_forms import data_type_of, has_own_form, misread
from resources.sources.files.own_forms import fault as own_form_fault
from resources.sources.files.paths import folder_column, spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_lines import MOST_AT_ONCE, TEXT, lines_of
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

_OF_LINES = frozenset(
    {"quote", "escape", "comment", "linesep", "sep", "delimiter", "header", "encoding", "charset"}
) | {"multiline", "mode"}
"""Options, in lower case, that say nothing of a value."""

_HEADERS_KEPT = 10_000
_THREADS = 16

_MADE_UP = re.compile(r"_c\d+")
"""The names that Spark gives to columns without one."""


_BLANKS_KEPT = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Spark's writer of CSV leaves blanks around values out."""


_QUOTES_DOUBLED = {"escape": '"', "charToEscapeQuoteEscaping": NO_MARK}


class _Header(NamedTuple):
    """The first record of a file.

    Attributes:
        text: as it stands there.
        names: of the columns; what has no name there is named by its place, as Spark does.
    """

    text: str
    names: tuple[str, ...]


class CsvFiles(CsvColumns):
    """Values between separators, under a header."""

    READER: ClassVar[str] = "csv"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Use a root; the headers that were read last are kept: schemas, checks and reads ask for them."""
        super().__init__(place, dataflow, staging)
        self._header = lru_cache(_HEADERS_KEPT)(self._read_header)
        self._line_breaks: dict[str, str] = {}
        self._with_header_again: set[str] = set()
        self._line_by_line: set[str] = set()

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """There is a header, which is compared with the schema: else reordered columns would be read into each other."""
        form = self._form_of(path)
        of_text: dict[str, Option] = {"multiLine": True} if form.is_wide else {}
        if form.is_whole and form.line_break:
            of_text["lineSep"] = form.line_break  # else Spark makes each line break in quotes a line feed
        return {
            "header": True,
            "enforceSchema": infer,
            "sep": separator(path),
            "escape": form.escape,  # a quote in quotes is doubled (RFC 4180); Spark's own way is a backslash
            **({"charToEscapeQuoteEscaping": NO_MARK} if form.escape == form.quote else {}),
            **of_text,
        }

    def apart(self, path: str) -> str:
        """Files with tabs are read apart from others; so are files with another line break, where values may go over several lines, or with lines that Spark's reader skips."""
        by_line = "line by line" if path in self._line_by_line else ""
        return separator(path) + self._form_of(path).line_break + by_line

    def tells_folders(self, path: str) -> bool:
        """Return whether Spark reads the file, and not its lines."""
        return path not in self._line_by_line

    def header_line(self, file: SourceFile) -> str | None:
        """Return the first record if it is a header."""
        header = self._header(file) if self._has_header else None
        return None if header is None else header.text

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """The columns of headers that are others than the pinned one, in the order of the header; in mode strict there is only one header.

        In mode rescue the columns of each header as texts.
        """
        if self.is_strict:
            return {}
        headers = self._headers(files)
        if self.rescues:
            return {path: texts_of(header.names) for path, header in headers.items()}
        by_name = {field.name.lower(): field for field in data.fields}
        return {
            path: type(data)([by_name[name.lower()] for name in header.names if name.lower() in by_name])
            for path, header in headers.items()
            if _folded(header.names) != _folded(data.fieldNames())
        }

    def beside_folders(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema without the columns of folders, unless the header names them, too."""
        named = pinned.beside((*spellings([file.path]), *pinned.folders))
        if self.rescues or not named.folders or not self._has_header:
            return named
        header = self._header(file)
        names = () if header is None else _folded(header.names)
        return named.beside(name for name in named.folders if name.lower() not in names)

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the headers, without Spark."""
        return {
            path: frozenset(name.casefold() for name in header.names)
            for path, header in self._headers(files).items()
        }

    @override
    def other_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Read the headers, without Spark; files with new names are read for the types of these."""
        pinned_names = set(_folded(pinned.struct.fieldNames()))
        groups: dict[tuple[str, ...], list[SourceFile]] = {}
        headers = self._headers(files)
        for file in files:
            header = headers.get(file.path)
            if (
                header is not None
                and not _twice(header.names)
                and not pinned_names.issuperset(_folded(header.names))
            ):
                groups.setdefault((separator(file.path), *header.names), []).append(file)
        columns: dict[str, StructType] = {}
        for (_, *names), alike in groups.items():
            for group in self.scanner.together(alike):
                fields = self.types_of_texts(spark, group, names)["fields"]
                new = [field for field in fields if field["name"].lower() not in pinned_names]
                columns[group[0].path] = struct_of({"type": "struct", "fields": new})
        return columns

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of the first file whose header names each once, with the types that hold all values of files with this header.

        What is text in a later file changes no type, and is refused when the file is checked: so is a code such as ``0012`` behind whole numbers.

        Raises:
            BadFile: no header does.
        """
        headers = self._headers(files) if self._has_header else self._without_header(files)
        sound = {path: header for path, header in headers.items() if not _twice(header.names)}
        if not sound:
            for path, header in headers.items():
                raise bad_header(path, (), header.names)
            return None
        names = next(iter(sound.values())).names
        alike = [file for file in files if file.path in sound and sound[file.path].names == names]
        return struct_of(self.types_of_sample(spark, alike, names))

    def wider_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Look at all values of columns with whole numbers; a line that no wider type takes tells nothing."""
        wider: Schema = pinned.struct.jsonValue()
        reading = Reading.of(self.source.options, inferred=pinned.declared is None)
        for group, data in read_alike(self, files, pinned):
            wider = with_wider_integers(wider, self.widths(spark, group, data.jsonValue(), reading))
        return None if wider == pinned.struct.jsonValue() else struct_of(wider)

    def parsed(self, file_field: StructField, pinned_field: StructField) -> Column:
        """Read the text as a file of one value, with the user's options for values; NULL if the column's type does not hold it exactly."""
        from pyspark.sql import functions as F

        text = F.col(quoted(file_field.name))
        reading = Reading.of(self.source.options, inferred=self.source.schema_ is None)
        exact = is_exact(text, pinned_field.dataType.jsonValue(), reading)
        if has_own_form(pinned_field.dataType.jsonValue(), reading):
            exact &= ~misread(lambda data_type: self._value(text, data_type), pinned_field.dataType)
        return F.when(exact, self._value(text, pinned_field.dataType))

    def _value(self, text: Column, data_type: DataType) -> Column:
        """Read a text as a file of one value, with the user's options for values; NULL if Spark cannot."""
        from pyspark.sql import functions as F

        options = {name: value for name, value in self.own_options.items() if name.lower() not in _OF_LINES}
        line = F.to_csv(F.struct(text.alias("c")), {"quoteAll": "true", **_QUOTES_DOUBLED, **_BLANKS_KEPT})
        schema = f"c {data_type.simpleString()}"
        return F.from_csv(line, schema, {**options, **_QUOTES_DOUBLED, "mode": "PERMISSIVE"}).getField("c")

    def _misread(self, rule: CsvRule, texts: Callable[[], Sequence[Column]]) -> list[tuple[int, Column]]:
        """The places of columns whose values stand in forms that options name, each with the text of a record's value that is misread; NULL of another.

        Args:
            rule: of the records.
            texts: returns the values of a record as texts, in their order.
        """
        from pyspark.sql import functions as F

        own = [(place, of) for place, (_, of) in enumerate(rule.fields) if has_own_form(of, rule.reading)]
        values = texts() if own else ()
        misread_texts: list[tuple[int, Column]] = []
        for place, data_type in own:
            text = values[place]
            wrong = misread(lambda wide, text=text: self._value(text, wide), data_type_of(data_type))  # type: ignore[misc]
            misread_texts.append((place, F.when(text.isNotNull() & wrong, text)))
        return misread_texts

    def _contradicting(
        self, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> list[tuple[int, Column]]:
        """The places of columns that folders of these files name, too, each with the text of a line's value that is another one; NULL of the same."""
        from pyspark.sql import functions as F

        spelt = folder_fields(files[0].path, pinned)
        both = [(place, name) for place, (name, _) in enumerate(rule.fields) if name in spelt]
        if not both or self.rescues:
            return []
        values = self._values_of_line(rule)
        contradicting: list[tuple[int, Column]] = []
        for place, name in both:
            text, data_type = values[place], pinned.struct[name].dataType
            folder = folder_column(self.scanner.path_of(files), spelt[name])
            other = contradicts(self._value(text, data_type), folder, data_type)
            contradicting.append((place, F.when(other, text)))
        return contradicting

    def _values_of_line(self, rule: CsvRule) -> Sequence[Column]:
        """The values of a line as texts."""
        from pyspark.sql import functions as F

        options = {**self._options_of_line(""), "sep": rule.form.separator, "mode": "PERMISSIVE"}
        places = range(len(rule.fields))
        schema = ", ".join(f"c{place} string" for place in places)
        line = F.from_csv(F.col(TEXT), schema, options)
        return [line.getField(f"c{place}") for place in places]

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Compare the headers, and hold all records against the rule of the schema."""
        bad_files = {} if self.is_strict else self._with_names_twice(files)
        records: list[tuple[str, BadRecord]] = []
        sound = [file for file in files if file.path not in bad_files]
        for group, schema in read_alike(self, sound, pinned):
            checked = self._check_alike(spark, group, schema, pinned)
            bad_files |= checked.bad_files
            records += checked.bad_records
        return CheckedFiles(bad_files, in_order(records, files))

    def scan_rows(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Scan files; those with lines that Spark's reader skips, though they are records, line by line."""
        from pyspark.sql import functions as F

        form = self._form(files[0].path)
        if files[0].path not in self._line_by_line:
            if form.header and any(_MADE_UP.fullmatch(name) for name in schema.names):
                changes = {**changes, "enforceSchema": "true"}  # Spark compares no names that it has made up
            return self.scan(spark, files, schema, scanner, **changes)
        text = F.col(TEXT)
        if any(file.path in self._with_header_again for file in files):
            whole = lines_of(spark, scanner or self.scanner, files, self.own_options, wholetext="true")
            lines = self._lines_below_header(whole, form)
        else:
            lines = lines_of(spark, scanner or self.scanner, files, self.own_options)
            headers = {header.text for header in self._headers(files).values()}
            lines = lines.where(~text.isin(*headers)) if headers else lines
        options = {**self._options_of_line(files[0].path), "mode": "FAILFAST", **changes}
        record = F.from_csv(text, F.lit(schema.toDDL()), options).alias("record")
        return lines.where(~self._is_none(text, form)).select(record).select("record.*")

    def _options_of_line(self, path: str) -> dict[str, str]:
        """What Spark's reader is told of a line of such a file."""
        options = self.reader_options(path, infer=True)
        return {name: value for name, value in options.items() if name.lower() not in ("header", "multiline")}

    def _lines_below_header(self, texts: DataFrame, form: CsvForm) -> DataFrame:
        """The lines of whole texts behind the first that is a record, which is the header."""
        from pyspark.sql import functions as F

        pattern = by_lower_name(self.source.options).get("linesep")
        lines = F.split(F.col(TEXT), BREAK if pattern is None else re.escape(pattern))
        records = F.filter(lines, lambda line: ~self._is_none(line, form))
        return texts.withColumn(TEXT, F.explode(F.slice(records, 2, F.greatest(F.size(records), F.lit(1)))))

    def _is_none(self, line: Column, form: CsvForm) -> Column:
        """Whether a line is no record: blank, or a comment."""
        from pyspark.sql import functions as F

        is_blank = F.trim(line, F.lit(form.blanks)) == "" if form.blanks else line == ""
        return is_blank | line.startswith(form.comment) if form.comment else is_blank

    def _check_alike(
        self, spark: SparkSession, files: Sequence[SourceFile], schema: StructType, pinned: PinnedSchema
    ) -> CheckedFiles:
        """Look through files that are read in one scan."""
        form = self._form_of(files[0].path)
        fields = [
            (field.name, "string" if self.rescues else field.dataType.jsonValue()) for field in schema.fields
        ]
        rule = CsvRule(form, fields, Reading.of(self.source.options, inferred=pinned.declared is None))
        if form.is_whole:
            return self._check_whole(spark, files, rule, pinned)
        return self._check_lines(spark, files, rule, pinned)

    def _check_lines(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> CheckedFiles:
        from pyspark.sql import functions as F

        first = self._header(files[0]) if rule.form.header else None
        rows, text = lines_of(spark, self.scanner, files, self.own_options), F.col(TEXT)
        accepted = text.rlike(rule.pattern(None if first is None else first.text))
        if rule.form.encoding is None:
            accepted &= F.is_valid_utf8(text)
        others = [
            *((place, True, text) for place, text in self._misread(rule, lambda: self._values_of_line(rule))),
            *((place, False, text) for place, text in self._contradicting(files, rule, pinned)),
        ]
        for *_, other in others:
            accepted &= other.isNull()
        rejected = rows.where(~accepted).select(
            self.scanner.path_of(files).alias("path"),
            F.try_validate_utf8(text).alias(TEXT),
            *[other.alias(f"c{number}") for number, (*_, other) in enumerate(others)],
        )
        spelt = folder_fields(files[0].path, pinned)
        some = rejected.limit(MOST_AT_ONCE + 1).collect()
        lines = _Rejected(rule)
        for row in some if len(some) <= MOST_AT_ONCE else rejected.toLocalIterator():
            faults = (
                own_form_fault(*rule.fields[place], value)
                if is_own_form
                else fault_beside_folder(name := rule.fields[place][0], spelt[name], row["path"], value)
                for number, (place, is_own_form, _) in enumerate(others)
                if (value := row[f"c{number}"]) is not None
            )
            lines.add(row["path"], row[TEXT], next(faults, None))
        return self._told(lines, files, pinned)

    def _told(self, rejected: _Rejected, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """What is wrong with files whose lines were judged."""
        form, bad_files = rejected.rule.form, dict[str, BadFile]()
        self._with_header_again |= rejected.with_header_again
        self._line_by_line |= rejected.line_by_line
        texts = [(path, item.text) for path, items in rejected.items.items() for item in items]
        lines = Lines(self.place, texts, form.encoding or "utf-8")
        records: list[tuple[str, BadRecord]] = []
        for file in files:
            path, items = file.path, rejected.items.get(file.path, [])
            suspicious = bool(items) or rejected.headers.get(path, 0) != 1
            wrong = self._wrong_header(file, pinned) if form.header and suspicious else None
            if path in rejected.undecodable:
                bad_files[path] = self._other_encoding(path, undecodable_line(self.place, path))
            elif wrong is not None:
                bad_files[path] = wrong
            else:
                if form.header and (header := self._header(file)) is not None:
                    lines.next(path, header.text)  # the header is no record, also if one has its text
                numbered = [(lines.next(path, item.text), item) for item in items]
                opened = next((line for line, item in numbered if item.is_open), None)
                if any(item.is_open for item in items):
                    bad_files[path] = open_quote(path, opened, over_lines=form.over_lines)
                records += [
                    (path, BadRecord(item.text, item.fault.reason, line, item.fault.value))
                    for line, item in sorted(numbered, key=lambda pair: pair[0] or 0)
                ]
        return CheckedFiles(bad_files, records)

    def _check_whole(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> CheckedFiles:
        """Look through files whose records are told apart in their whole text only: of one that has a bad record none is loaded."""
        from pyspark.sql import functions as F

        rows = lines_of(spark, self.scanner, files, self.own_options, wholetext="true")
        accepted = F.col(TEXT).rlike(rule.text_pattern())
        if rule.form.encoding is None:
            accepted &= F.is_valid_utf8(F.col(TEXT))
        rejected = rows.where(~accepted).select(self.scanner.path_of(files).alias("path"))
        paths = {row["path"] for row in rejected.collect()}
        bad_files: dict[str, BadFile] = {}
        form = rule.form
        for file in files:
            rejected_here = file.path in paths
            line = (
                undecodable_line(self.place, file.path) if rejected_here and form.encoding is None else None
            )
            wrong = self._wrong_header(file, pinned) if form.header else None
            if line is not None:
                bad_files[file.path] = self._other_encoding(file.path, line)
            elif wrong is not None:
                bad_files[file.path] = wrong
            elif rejected_here and (items := self._bad_items(file.path, rule)):
                bad_files[file.path] = self._bad(file.path, items)
        sound = [file for file in files if file.path not in bad_files]
        bad_files |= self._misread_whole(spark, sound, rule)
        sound = [file for file in files if file.path not in bad_files]
        return CheckedFiles(bad_files | self._contradicting_whole(spark, sound, rule, pinned))

    def _bad_items(self, path: str, rule: CsvRule) -> Sequence[CsvItem]:
        """The records of a whole text that cannot be loaded."""
        text = whole_text(self.place, path, rule.form.encoding or "utf-8")
        return list(rule.judge_text(text, has_header=rule.form.header))

    def _misread_whole(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule
    ) -> dict[str, BadFile]:
        """Files with a value in a form of an option that Spark would misread."""
        from pyspark.sql import functions as F

        names = [name for name, _ in rule.fields]
        misread_texts = self._misread(rule, lambda: [F.col(quoted(name)) for name in names])
        bad_files: dict[str, BadFile] = {}
        for group in self.scanner.together(files) if misread_texts else ():
            rows, path_column = self.as_texts(spark, group, names), self.scanner.path_of(group)
            misread_values = first_values(rows, path_column, [text for _, text in misread_texts])
            for path, values in groupby(misread_values, key=itemgetter(0)):
                places = [(misread_texts[number][0], value) for _, number, value in values]
                faults = {
                    place: (value, own_form_fault(*rule.fields[place], value)) for place, value in places
                }
                items = self._bad_items(path, replace(rule, misread=faults))
                _, fault = next(iter(faults.values()))
                bad_files[path] = self._bad(path, items or [CsvItem(None, "", fault, False)])
        return bad_files

    def _contradicting_whole(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> dict[str, BadFile]:
        """Files with a value that is another than the folder's, of which no line is told."""
        from pyspark.sql import functions as F

        spelt = folder_fields(files[0].path, pinned) if files and not self.rescues else {}
        both = [name for name, _ in rule.fields if name in spelt]
        if not both:
            return {}
        path, columns = self.scanner.path_of(files), pinned.struct
        others = [
            F.when(
                contradicts(F.col(quoted(name)), folder_column(path, spelt[name]), columns[name].dataType),
                F.col(quoted(name)).cast("string"),
            )
            for name in both
        ]
        rows = self.scan(spark, files, only(columns, [name for name, _ in rule.fields]))
        bad_files: dict[str, BadFile] = {}
        for bad_path, place, value in first_values(rows, path, others):
            fault = fault_beside_folder(both[place], spelt[both[place]], bad_path, value)
            record = BadRecord("", fault.reason, None, fault.value)
            bad = bad_records(bad_path, [record], show=self._dataflow.show_bad_records)
            bad_files.setdefault(bad_path, bad)
        return bad_files

    def _other_encoding(self, path: str, line: int | None) -> BadFile:
        encoding = encoding_by_mark(self.place, path) or "windows-1252"
        return bad_encoding(path, line, f"encoding: {encoding}", binary_by_mark(self.place, path))

    def _bad(self, path: str, items: Sequence[CsvItem]) -> BadFile:
        if items[0].is_open:
            return open_quote(path, items[0].line, over_lines=self._form(path).over_lines)
        records = [BadRecord(item.text, item.fault.reason, item.line, item.fault.value) for item in items]
        return bad_records(path, records, show=self._dataflow.show_bad_records)

    def _with_names_twice(self, files: Sequence[SourceFile]) -> dict[str, BadFile]:
        """Files whose header names a column twice."""
        return {
            path: bad_header(path, (), header.names)
            for path, header in self._headers(files).items()
            if _twice(header.names)
        }

    def _wrong_header(self, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Compare a file's header with the one that it must have."""
        header = self._header(file)
        if header is None or not self.is_strict:
            return None
        expected = self.beside_folders(file, pinned).data.fieldNames()
        if _folded(expected) == _folded(header.names):
            return None
        takes = self._dataflow.target.schema_mode == "strict" and self._dataflow.may_take_columns
        return bad_header(file.path, expected, header.names, takes=takes)

    @property
    def _has_header(self) -> bool:
        return self._form("").header

    def _form(self, path: str) -> CsvForm:
        return CsvForm.of(self.source.options, separator(path))

    def _form_of(self, path: str) -> CsvForm:
        """The form of a file, with its own line break if records are told apart in its whole text only."""
        form = self._form(path)
        if not form.is_whole or form.line_break or not path:
            return form
        if path not in self._line_breaks:
            text = beginning(self.place, path, form.encoding or "utf-8")
            self._line_breaks[path] = form.first_break(text)
        return replace(form, line_break=self._line_breaks[path])

    def _headers(self, files: Sequence[SourceFile]) -> dict[str, _Header]:
        """The headers of files that have one."""
        if not self._has_header:
            return {}
        return {file.path: header for file, header in self._first_records(files) if header is not None}

    def _without_header(self, files: Sequence[SourceFile]) -> dict[str, _Header]:
        """The names that Spark gives to the columns of files without a header."""
        return {
            file.path: _Header("", tuple(f"_c{place}" for place in range(len(record.names))))
            for file, record in self._first_records(files)
            if record is not None
        }

    def _first_records(self, files: Sequence[SourceFile]) -> list[tuple[SourceFile, _Header | None]]:
        """The first record of each file, read side by side."""
        with ThreadPoolExecutor(min(_THREADS, max(1, len(files)))) as pool:
            return list(zip(files, pool.map(self._header, files), strict=True))

    def _read_header(self, file: SourceFile) -> _Header | None:
        """The first record of a file; None if there is none."""
        form = self._form(file.path)
        record = form.first_record(beginning(self.place, file.path, form.encoding or "utf-8"))
        if record is None:
            return None
        text, names = record
        return _Header(text, tuple(name or f"_c{place}" for place, name in enumerate(names)))


class _Rejected:
    """The lines that a pattern did not accept, by their files."""

    def __init__(self, rule: CsvRule) -> None:
        """Have none yet."""
        self.rule = rule
        self.items: dict[str, list[CsvItem]] = {}
        self.headers: dict[str, int] = {}
        self.undecodable: set[str] = set()
        self.with_header_again: set[str] = set()
        self.line_by_line: set[str] = set()
        self._names = _folded([name for name, _ in rule.fields])

    def add(self, path: str, line: str | None, by_spark: Fault | None) -> None:
        """Judge a line; None is one with bytes that are no text. ``by_spark`` is what Spark finds wrong with a value of it."""
        if line is None:
            self.undecodable.add(path)
            return
        is_header = self.rule.form.header and self._is_header(line)
        if is_header and self.headers.get(path):
            self.with_header_again.add(path)
        if is_header and not self.headers.get(path):
            self.headers[path] = 1
        elif (item := self.rule.judge(line)) is not None:
            self.items.setdefault(path, []).append(item._replace(text=line))
        elif by_spark is not None and not self.rule.form.is_none(line):
            self.items.setdefault(path, []).append(CsvItem(None, line, by_spark, False))
        elif not line.strip(SKIPPED):
            self.line_by_line.add(path)

    def _is_header(self, line: str) -> bool:
        names = self.rule.form.values(line)
        return names is not None and self._names == _folded(
            [name or f"_c{place}" for place, name in enumerate(names)]
        )


def separator(path: str) -> str:
    """Return what separates the values of a file, as its ending says."""
    return "\t" if ".tsv" in path.rpartition("/")[2] else ","


def _folded(names: Sequence[str]) -> list[str]:
    """As Spark compares them."""
    return [name.lower() for name in names]


def _twice(names: Sequence[str]) -> bool:
    return len(set(_folded(names))) < len(names)
