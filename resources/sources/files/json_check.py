"""Check JSON files before they are loaded: Spark matches patterns, and rejected lines are judged here.

The pattern accepts all records that the schema holds exactly (:mod:`partitions.records.json_lines`). So sound
files leave no line to judge, and the check costs one scan of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.json_decoding import BESIDE_BRACKETS, MemberOrder
from partitions.records.json_lines import JsonRule, JudgedRecord, Verdict
from partitions.records.json_pattern import begins_with_one_of
from partitions.records.judge import Fault
from resources.sources.files.checked import MAX_NAMED_RECORDS, BadRecord, CheckedFiles, UnknownFields
from resources.sources.files.failures import bad_document_error
from resources.sources.files.lines import LineNumbers
from resources.sources.files.text_lines import MAX_AT_ONCE, TEXT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_LONGEST_PATTERN = 4_000_000
"""The most characters of a pattern that Java compiles in little memory, about 1,000 fields; beyond, each text is judged here."""


class SparkJudge(Protocol):
    """A judge of values in JSON records that only Spark can read."""

    def values(self, records: Column) -> dict[str, Column]:
        """Return, by name, the first faulty value in an array of records; NULL if there is none.

        Each is a struct with the record's number.
        """
        ...

    def first(self, row: Mapping[str, Any]) -> tuple[int, Fault] | None:
        """Return the record number and the fault in a row of these values; None if there is none."""
        ...


class _RejectedLine(NamedTuple):
    path: str
    text: str | None
    """None of one with bytes that are no text."""
    misread: Fault | None


def _is_accepted(
    rule: JsonRule,
    names: MemberOrder | None,
    pattern: Callable[[MemberOrder | None], str],
    plain: str | None = None,
) -> Column:
    """Return whether the rule accepts a text.

    Args:
        rule: what a valid record looks like.
        names: a record's names, in their order, which others are expected to share.
        pattern: returns the pattern of a text for an order of names.
        plain: a pattern of most texts, which is tried first; ``pattern`` accepts whatever it accepts.
    """
    from pyspark.sql import functions as F

    text, in_any_order = F.col(TEXT), pattern(None)
    is_blank = F.trim(text) == ""
    if len(in_any_order) > _LONGEST_PATTERN:
        return is_blank
    # Spark's variant parser refuses a name that occurs twice.
    once = F.try_parse_json(text).isNotNull() | is_blank
    accepted = text.rlike(in_any_order) & once
    if not rule.pattern.may_repeat_names and names is not None:
        accepted = text.rlike(pattern(names)) | accepted
    if plain is not None:
        accepted = text.rlike(plain) | accepted
    return F.is_valid_utf8(text) & accepted


def _has_known_fields(rule: JsonRule, record: Column) -> Column:
    """Return whether a record has at least one required field, or no field at all.

    Usually its first field is one of them, so a pattern is enough; a parser that lists all names takes half
    as long as a load.
    """
    from pyspark.sql import functions as F

    names = F.json_object_keys(F.ltrim(record, F.lit("\ufeff")))
    expected_names = F.array(*map(F.lit, rule.required_names))
    has_one = F.coalesce((F.size(names) <= 0) | F.arrays_overlap(names, expected_names), F.lit(True))
    return F.when(record.rlike(begins_with_one_of(rule.required_names)), True).otherwise(has_one)


def check_lines(
    rows: DataFrame,
    path: Column,
    rule: JsonRule,
    names: MemberOrder | None,
    files: Sequence[SourceFile],
    max_bad_records: int,
    numbers: Callable[[Sequence[tuple[str, str]]], LineNumbers],
    undecodable: Callable[[str], BadFile | None],
    judges: Sequence[SparkJudge],
) -> CheckedFiles:
    """Check files with a record on each line.

    Args:
        rows: the rows of the files, by :func:`lines_of`.
        path: the column with the path of a row's file.
        rule: what a valid record looks like.
        names: the names of the first record.
        files: the files, in their order.
        max_bad_records: the bad records that may be set aside; the check finds more of them if there are
            more.
        numbers: finds the line numbers of texts.
        undecodable: returns the error for a file with bytes that are no text.
        judges: the judges of values that the pattern does not cover.
    """
    judged, is_cut = _JudgedLines(most_of_file=max(max_bad_records + 1, MAX_NAMED_RECORDS)), False
    for line in _rejected_lines(rows, path, rule, names, judges):
        if line.text is None:
            if line.path not in judged.bad_files and (bad_file := undecodable(line.path)) is not None:
                judged.bad_files[line.path] = bad_file
            continue
        verdict = rule.judge(line.text)
        if verdict.fault is None and line.misread is not None:
            verdict = Verdict(line.misread)
        judged.note(line.path, line.text, verdict)
        if is_cut := judged.counts.total() > max(max_bad_records, MAX_AT_ONCE) and len(judged.bad) == len(
            files
        ):
            break
    return judged.to_result(files, numbers, is_cut=is_cut)


@dataclass
class _JudgedLines:
    """The lines that were judged so far.

    Attributes:
        most_of_file: the most bad lines of a file that stay in memory; the others are only counted.
        bad_files: the files that cannot be decoded, by path.
        bad: lines with a fault, by the path of their file.
        unknown: the first line of each file with unknown fields and no fault.
        counts: the number of bad lines, by the path of their file.
    """

    most_of_file: int
    bad_files: dict[str, BadFile] = field(default_factory=dict)
    bad: dict[str, list[tuple[str, Fault]]] = field(default_factory=dict)
    unknown: dict[str, tuple[str, Verdict]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def note(self, path: str, text: str, verdict: Verdict) -> None:
        """Add a line of a file."""
        if verdict.fault is not None:
            file_faults = self.bad.setdefault(path, [])
            if len(file_faults) < self.most_of_file:
                file_faults.append((text, verdict.fault))
            self.counts[path] += 1
        elif verdict.unknown:
            self.unknown.setdefault(path, (text, verdict))

    def to_result(
        self,
        files: Sequence[SourceFile],
        numbers: Callable[[Sequence[tuple[str, str]]], LineNumbers],
        *,
        is_cut: bool,
    ) -> CheckedFiles:
        """Return the result with line numbers, in the order of files and lines."""
        order = {file.path: number for number, file in enumerate(files)}
        bad = [
            (path, text, fault)
            for path in sorted(self.bad, key=order.__getitem__)
            for text, fault in self.bad[path]
        ]
        lines = numbers(
            [(path, text) for path, text, _ in bad]
            + [(path, text) for path, (text, _) in self.unknown.items()]
        )
        records = [(path, BadRecord.of(fault, text, lines.next(path, text))) for path, text, fault in bad]
        records.sort(key=lambda record: (order[record[0]], record[1].line or 0))
        unknown = {
            path: UnknownFields(verdict.unknown, lines.next(path, text))
            for path, (text, verdict) in self.unknown.items()
        }
        return CheckedFiles(
            self.bad_files, bad_records=records, counts=self.counts, is_cut=is_cut, unknown=unknown
        )


def check_documents(
    rows: DataFrame,
    path: Column,
    rule: JsonRule,
    names: MemberOrder | None,
    files: Sequence[SourceFile],
    content: Callable[[str], str],
    undecodable: Callable[[str], BadFile | None],
    judges: Sequence[SparkJudge],
) -> CheckedFiles:
    """Check files with one document each; only documents that the pattern rejects are read here.

    Args:
        rows: the rows of the files, each with the text of a whole document.
        path: the column with the path of a row's file.
        rule: what a valid record looks like.
        names: the names of the first record.
        files: the files, in their order.
        content: reads the text of a file.
        undecodable: returns the error for a file with bytes that are no text, None for others.
        judges: the judges of values that the pattern does not cover.
    """
    from pyspark.sql import functions as F

    accepted = _is_accepted(rule, names, rule.pattern.document)
    records = F.coalesce(F.from_json(TEXT, "array<string>"), F.array(TEXT))
    if rule.required_names:
        accepted &= F.forall(records, lambda record: _has_known_fields(rule, record))
    rejected_rows = _rejected_rows(rows, accepted, [path.alias("path")], _misread_values(judges, records))
    rejected = {row["path"]: row.asDict() for row in rejected_rows.collect()}
    bad_files: dict[str, BadFile] = {}
    bad_records: list[tuple[str, BadRecord]] = []
    unknown: dict[str, UnknownFields] = {}
    for file in files:
        if file.path not in rejected:
            continue
        if (decoding_error := undecodable(file.path)) is not None:
            bad_files[file.path] = decoding_error
            continue
        fault, items = rule.judge_document(content(file.path))
        bad_records += [(file.path, record) for record in bad_records_of(items)]
        first = next((item for item in items if item.verdict.fault is None), None)
        if first is not None:
            unknown[file.path] = UnknownFields(first.verdict.unknown, first.line)
        if fault is not None:
            bad_files[file.path] = bad_document_error(file.path, fault.reason)
        misread = _first_misread(judges, rejected[file.path])
        if misread is not None and fault is None and not items:
            number, value_fault = misread
            bad_records.append((file.path, BadRecord.of(value_fault, where=f"record {number}: ")))
    return CheckedFiles(bad_files, bad_records, unknown=unknown)


def bad_records_of(items: Sequence[JudgedRecord]) -> list[BadRecord]:
    """Return the bad records among the items of a document, or lines."""
    return [
        BadRecord.of(fault, item.text, item.line, where=f"record {item.number}: " if item.number else "")
        for item in items
        if (fault := item.verdict.fault) is not None
    ]


def _rejected_lines(
    rows: DataFrame,
    path: Column,
    rule: JsonRule,
    names: MemberOrder | None,
    judges: Sequence[SparkJudge],
) -> Iterator[_RejectedLine]:
    """Return the lines that the pattern does not accept."""
    from pyspark.sql import functions as F

    plain = None if names is None else rule.pattern.plain_line(names)
    accepted = _is_accepted(rule, names, rule.pattern.line, plain)
    text = F.try_validate_utf8(F.col(TEXT))
    if rule.required_names:
        accepted &= _has_known_fields(rule, F.col(TEXT))
    columns, misread = [path.alias("path"), text.alias(TEXT)], _misread_values(judges, F.array(TEXT))
    rejected = _rejected_rows(rows, accepted, columns, misread)
    first = rejected.limit(MAX_AT_ONCE + 1).collect()
    rows_to_judge = first if len(first) <= MAX_AT_ONCE else rejected.toLocalIterator()
    return (_rejected_line(row.asDict(), judges) for row in rows_to_judge)


def _rejected_rows(
    rows: DataFrame, accepted: Column, columns: Sequence[Column], misread: Mapping[str, Column]
) -> DataFrame:
    """Return columns of the rows that are not accepted, or that hold misread values; with these values."""
    for value in misread.values():
        accepted &= value.isNull()
    return rows.where(~accepted).select(*columns, *[value.alias(name) for name, value in misread.items()])


def _misread_values(judges: Sequence[SparkJudge], records: Column) -> dict[str, Column]:
    return {name: value for judge in judges for name, value in judge.values(records).items()}


def _first_misread(judges: Sequence[SparkJudge], row: Mapping[str, Any]) -> tuple[int, Fault] | None:
    return next((fault for judge in judges if (fault := judge.first(row)) is not None), None)


def _rejected_line(row: Mapping[str, Any], judges: Sequence[SparkJudge]) -> _RejectedLine:
    misread = _first_misread(judges, row)
    return _RejectedLine(row["path"], row[TEXT], None if misread is None else misread[1])


def is_deeper(text: Column, levels: int) -> Column:
    """Return whether a text nests objects and arrays more than ``levels`` deep."""
    from pyspark.sql import functions as F

    brackets = F.split(F.regexp_replace(text, BESIDE_BRACKETS, ""), "")
    depth = F.aggregate(
        brackets,
        F.struct(F.lit(0).alias("depth"), F.lit(0).alias("most")),
        _with_bracket,
        lambda state: state["most"],
    )
    opened = F.length(text) - F.length(F.translate(text, "[{", ""))
    return F.when(opened > levels, depth > levels).otherwise(F.lit(False))


def _with_bracket(state: Column, bracket: Column) -> Column:
    from pyspark.sql import functions as F

    step = F.when(bracket.isin("[", "{"), 1).when(bracket.isin("]", "}"), -1).otherwise(0)
    depth = state["depth"] + step
    return F.struct(depth.alias("depth"), F.greatest(state["most"], depth).alias("most"))
