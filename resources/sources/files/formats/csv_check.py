"""Check CSV files before they are loaded: compare headers, and match all lines against a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.csv_form import SKIPPED_CHARACTERS
from partitions.records.csv_lines import CsvItem, CsvRule
from partitions.records.forms import TextOptions
from partitions.records.judge import Fault
from partitions.schema_policy import may_take_columns
from resources.sources.files.checked import BadRecord, CheckedFiles, sort_by_file
from resources.sources.files.custom_formats import data_type_of, has_custom_format, is_misread, misread_fault
from resources.sources.files.failures import bad_encoding_error, bad_records_error, open_quote_error
from resources.sources.files.first_values import first_values
from resources.sources.files.folder_conflicts import differs_from_folder, folder_conflict_fault, folder_fields
from resources.sources.files.formats.csv_headers import (
    CsvHeaders,
    doubled_header_errors,
    fold_names,
    header_error,
)
from resources.sources.files.formats.csv_inferring import CsvColumns
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.scan_groups import group_for_scans, select_columns
from resources.sources.files.lines import (
    LineNumbers,
    detect_binary,
    detect_encoding,
    find_undecodable_line,
    read_text,
)
from resources.sources.files.paths import folder_column
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.text_lines import MAX_AT_ONCE, TEXT, lines_of
from resources.sources.files.text_values import parse_text
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType


class CsvCheck:
    """A check of CSV files before they are loaded.

    Attributes:
        line_by_line: the files with records that Spark's reader skips.
        with_header_again: the files with a record that equals their header.
    """

    def __init__(self, form: FormatReader, columns: CsvColumns, headers: CsvHeaders) -> None:
        """Store the parts; check nothing.

        Args:
            form: the format's reader.
            columns: finds the columns of files.
            headers: the headers of the files.
        """
        self._form, self._columns, self._headers = form, columns, headers
        self.line_by_line: set[str] = set()
        self.with_header_again: set[str] = set()

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Compare the headers, and check all records against the rule of the schema."""
        bad_files = {} if self._form.rules.is_strict else doubled_header_errors(self._headers.by_path(files))
        records: list[tuple[str, BadRecord]] = []
        sound_files = [file for file in files if file.path not in bad_files]
        for group, schema in group_for_scans(self._form, sound_files, pinned):
            checked = self._check_scan(spark, group, schema, pinned)
            bad_files |= checked.bad_files
            records += checked.bad_records
        return CheckedFiles(bad_files, sort_by_file(records, files))

    def _check_scan(
        self, spark: SparkSession, files: Sequence[SourceFile], schema: StructType, pinned: PinnedSchema
    ) -> CheckedFiles:
        """Check files that are read in one scan."""
        form = self._headers.form_with_break(files[0].path)
        fields = [
            (field.name, "string" if self._form.rules.rescues else field.dataType.jsonValue())
            for field in schema.fields
        ]
        rule = CsvRule(
            form, fields, TextOptions.of(self._form.source.options, inferred=pinned.declared is None)
        )
        if form.needs_whole_text:
            return self._check_whole(spark, files, rule, pinned)
        return self._check_lines(spark, files, rule, pinned)

    def _check_lines(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> CheckedFiles:
        from pyspark.sql import functions as F

        first = self._headers.first_record(files[0]) if rule.form.header else None
        rows, text = lines_of(spark, self._form.scanner, files, self._form.own_options), F.col(TEXT)
        accepted = text.rlike(rule.pattern(None if first is None else first.text))
        if rule.form.encoding is None:
            accepted &= F.is_valid_utf8(text)
        value_faults = [
            *(
                (place, True, text)
                for place, text in self._misread_texts(rule, lambda: self._values_of_line(rule))
            ),
            *((place, False, text) for place, text in self._contradicting_texts(files, rule, pinned)),
        ]
        for *_, faulty_text in value_faults:
            accepted &= faulty_text.isNull()
        rejected = rows.where(~accepted).select(
            self._form.scanner.path_of(files).alias("path"),
            F.try_validate_utf8(text).alias(TEXT),
            *[faulty_text.alias(f"c{number}") for number, (*_, faulty_text) in enumerate(value_faults)],
        )
        spellings = folder_fields(files[0].path, pinned)
        first_lines = rejected.limit(MAX_AT_ONCE + 1).collect()
        lines = _RejectedLines(rule)
        for row in first_lines if len(first_lines) <= MAX_AT_ONCE else rejected.toLocalIterator():
            faults = (
                misread_fault(*rule.fields[place], value)
                if is_custom
                else folder_conflict_fault(name := rule.fields[place][0], spellings[name], row["path"], value)
                for number, (place, is_custom, _) in enumerate(value_faults)
                if (value := row[f"c{number}"]) is not None
            )
            lines.add(row["path"], row[TEXT], next(faults, None))
        return self._collect_results(lines, files, pinned)

    def _misread_texts(
        self, rule: CsvRule, texts: Callable[[], Sequence[Column]]
    ) -> list[tuple[int, Column]]:
        """Return columns with a format that options name: each one's position, and its misread text.

        The text is NULL if it is read well.

        Args:
            rule: what a valid record looks like.
            texts: returns the values of a record as texts, in their order.
        """
        from pyspark.sql import functions as F

        positions = [
            (place, data_type)
            for place, (_, data_type) in enumerate(rule.fields)
            if has_custom_format(data_type, rule.options)
        ]
        values = texts() if positions else ()
        misread_texts: list[tuple[int, Column]] = []
        for place, data_type in positions:
            parse = partial(parse_text, values[place], options=self._form.own_options)
            is_wrong = values[place].isNotNull() & is_misread(parse, data_type_of(data_type))
            misread_texts.append((place, F.when(is_wrong, values[place])))
        return misread_texts

    def _contradicting_texts(
        self, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> list[tuple[int, Column]]:
        """Return columns that folders also name: each one's position, and its contradicting text.

        The text is NULL if it equals the folder's.
        """
        from pyspark.sql import functions as F

        spellings = folder_fields(files[0].path, pinned)
        shared_columns = [(place, name) for place, (name, _) in enumerate(rule.fields) if name in spellings]
        if not shared_columns or self._form.rules.rescues:
            return []
        values = self._values_of_line(rule)
        contradicting: list[tuple[int, Column]] = []
        for place, name in shared_columns:
            text, data_type = values[place], pinned.struct[name].dataType
            folder = folder_column(self._form.scanner.path_of(files), spellings[name])
            is_different = differs_from_folder(
                parse_text(text, data_type, self._form.own_options), folder, data_type
            )
            contradicting.append((place, F.when(is_different, text)))
        return contradicting

    def _values_of_line(self, rule: CsvRule) -> Sequence[Column]:
        """Return the values of a line as texts."""
        from pyspark.sql import functions as F

        options = {**options_of_line(self._form, ""), "sep": rule.form.separator, "mode": "PERMISSIVE"}
        places = range(len(rule.fields))
        schema = ", ".join(f"c{place} string" for place in places)
        line = F.from_csv(F.col(TEXT), schema, options)
        return [line.getField(f"c{place}") for place in places]

    def _collect_results(
        self, rejected: _RejectedLines, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> CheckedFiles:
        """Return the bad files and records of rejected lines."""
        form, bad_files = rejected.rule.form, dict[str, BadFile]()
        self.with_header_again |= rejected.with_header_again
        self.line_by_line |= rejected.line_by_line
        texts = [(path, item.text) for path, items in rejected.items.items() for item in items]
        lines = LineNumbers(self._form.place, texts, form.encoding or "utf-8")
        records: list[tuple[str, BadRecord]] = []
        for file in files:
            path, items = file.path, rejected.items.get(file.path, [])
            suspicious = bool(items) or rejected.headers.get(path, 0) != 1
            header_fault = self._find_header_error(file, pinned) if form.header and suspicious else None
            if path in rejected.undecodable:
                bad_files[path] = self._encoding_error(path, find_undecodable_line(self._form.place, path))
            elif header_fault is not None:
                bad_files[path] = header_fault
            else:
                if form.header and (header := self._headers.first_record(file)) is not None:
                    lines.next(path, header.text)  # the header is no record, also if one has its text
                numbered = [(lines.next(path, item.text), item) for item in items]
                opened = next((line for line, item in numbered if item.is_open), None)
                if any(item.is_open for item in items):
                    bad_files[path] = open_quote_error(path, opened, over_lines=form.over_lines)
                records += [
                    (path, BadRecord.of(item.fault, item.text, line))
                    for line, item in sorted(numbered, key=lambda pair: pair[0] or 0)
                ]
        return CheckedFiles(bad_files, records)

    def _check_whole(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> CheckedFiles:
        """Check files whose records can only be split in the whole text; one bad record makes the file bad."""
        from pyspark.sql import functions as F

        rows = lines_of(spark, self._form.scanner, files, self._form.own_options, wholetext="true")
        accepted = F.col(TEXT).rlike(rule.text_pattern())
        if rule.form.encoding is None:
            accepted &= F.is_valid_utf8(F.col(TEXT))
        rejected = rows.where(~accepted).select(self._form.scanner.path_of(files).alias("path"))
        paths = {row["path"] for row in rejected.collect()}
        bad_files: dict[str, BadFile] = {}
        form = rule.form
        for file in files:
            rejected_here = file.path in paths
            line = (
                find_undecodable_line(self._form.place, file.path)
                if rejected_here and form.encoding is None
                else None
            )
            header_fault = self._find_header_error(file, pinned) if form.header else None
            if line is not None:
                bad_files[file.path] = self._encoding_error(file.path, line)
            elif header_fault is not None:
                bad_files[file.path] = header_fault
            elif rejected_here and (items := self._find_bad_items(file.path, rule)):
                bad_files[file.path] = self._bad_file(file.path, items)
        sound_files = [file for file in files if file.path not in bad_files]
        bad_files |= self._misread_files(spark, sound_files, rule)
        sound_files = [file for file in files if file.path not in bad_files]
        return CheckedFiles(bad_files | self._contradicting_files(spark, sound_files, rule, pinned))

    def _find_bad_items(self, path: str, rule: CsvRule) -> Sequence[CsvItem]:
        """Return the bad records of a whole text."""
        text = read_text(self._form.place, path, rule.form.encoding or "utf-8")
        return list(rule.judge_text(text, has_header=rule.form.header))

    def _misread_files(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule
    ) -> dict[str, BadFile]:
        """Return the files with a value that Spark would misread, whose format an option names."""
        from pyspark.sql import functions as F

        names = [name for name, _ in rule.fields]
        misread_texts = self._misread_texts(rule, lambda: [F.col(quoted(name)) for name in names])
        bad_files: dict[str, BadFile] = {}
        for group in self._form.scanner.scan_groups(files) if misread_texts else ():
            rows, path_column = self._columns.as_texts(spark, group, names), self._form.scanner.path_of(group)
            misread_values = first_values(rows, path_column, [text for _, text in misread_texts])
            for path, values in groupby(misread_values, key=itemgetter(0)):
                places = [(misread_texts[number][0], value) for _, number, value in values]
                faults = {
                    place: (value, misread_fault(*rule.fields[place], value)) for place, value in places
                }
                items = self._find_bad_items(path, replace(rule, spark_faults=faults))
                _, fault = next(iter(faults.values()))
                bad_files[path] = self._bad_file(path, items or [CsvItem(None, "", fault, False)])
        return bad_files

    def _contradicting_files(
        self, spark: SparkSession, files: Sequence[SourceFile], rule: CsvRule, pinned: PinnedSchema
    ) -> dict[str, BadFile]:
        """Return the files with a value that contradicts the folder, without line numbers."""
        from pyspark.sql import functions as F

        spellings = folder_fields(files[0].path, pinned) if files and not self._form.rules.rescues else {}
        shared_names = [name for name, _ in rule.fields if name in spellings]
        if not shared_names:
            return {}
        path, columns = self._form.scanner.path_of(files), pinned.struct
        contradicting_texts = [
            F.when(
                differs_from_folder(
                    F.col(quoted(name)), folder_column(path, spellings[name]), columns[name].dataType
                ),
                F.col(quoted(name)).cast("string"),
            )
            for name in shared_names
        ]
        rows = self._form.scan(spark, files, select_columns(columns, [name for name, _ in rule.fields]))
        bad_files: dict[str, BadFile] = {}
        for bad_path, place, value in first_values(rows, path, contradicting_texts):
            fault = folder_conflict_fault(
                shared_names[place], spellings[shared_names[place]], bad_path, value
            )
            record = BadRecord.of(fault)
            bad = bad_records_error(bad_path, [record], show=self._form.dataflow.show_bad_records)
            bad_files.setdefault(bad_path, bad)
        return bad_files

    def _encoding_error(self, path: str, line: int | None) -> BadFile:
        encoding = detect_encoding(self._form.place, path) or "windows-1252"
        return bad_encoding_error(path, line, f"encoding: {encoding}", detect_binary(self._form.place, path))

    def _bad_file(self, path: str, items: Sequence[CsvItem]) -> BadFile:
        if items[0].is_open:
            return open_quote_error(path, items[0].line, over_lines=self._headers.form(path).over_lines)
        records = [BadRecord.of(item.fault, item.text, item.line) for item in items]
        return bad_records_error(path, records, show=self._form.dataflow.show_bad_records)

    def _find_header_error(self, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Return the error for a file's header; None if it is as expected."""
        header = self._headers.first_record(file)
        if header is None or not self._form.rules.is_strict:
            return None
        expected = self._form.schema_of_file(file, pinned).data.fieldNames()
        may_merge = self._form.dataflow.target.schema_mode == "strict" and may_take_columns(
            self._form.dataflow
        )
        return header_error(file.path, expected, header, may_merge=may_merge)


class _RejectedLines:
    """The lines that a pattern did not accept, by file."""

    def __init__(self, rule: CsvRule) -> None:
        """Start without lines."""
        self.rule = rule
        self.items: dict[str, list[CsvItem]] = {}
        self.headers: dict[str, int] = {}
        self.undecodable: set[str] = set()
        self.with_header_again: set[str] = set()
        self.line_by_line: set[str] = set()
        self._names = fold_names([name for name, _ in rule.fields])

    def add(self, path: str, line: str | None, spark_fault: Fault | None) -> None:
        """Judge a line and note the result.

        Args:
            path: the path of its file.
            line: the text; None if its bytes are no text.
            spark_fault: the fault that Spark found in a value of it; None if there is none.
        """
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
        elif spark_fault is not None and not self.rule.form.is_skippable(line):
            self.items.setdefault(path, []).append(CsvItem(None, line, spark_fault, False))
        elif not line.strip(SKIPPED_CHARACTERS):
            self.line_by_line.add(path)

    def _is_header(self, line: str) -> bool:
        names = self.rule.form.values(line)
        return names is not None and self._names == fold_names(
            [name or f"_c{place}" for place, name in enumerate(names)]
        )


def options_of_line(form: FormatReader, path: str) -> dict[str, str]:
    """Return the options with which Spark parses one line of such a file."""
    options = form.reader_options(path, infer=True)
    return {name: value for name, value in options.items() if name.lower() not in ("header", "multiline")}
