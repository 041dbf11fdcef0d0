"""CSV records: a pattern for records that a schema holds exactly, and a judge of all others.

Values belong to columns by position. A quoted value ends with its quote, and only a separator may follow.
Each text must be exact for its column's type (docs/reference/files.md, Exact values).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.plan import pluralize
from partitions.records.csv_form import (
    LINE_BREAK,
    LINE_BREAK_PATTERN,
    LINE_PATTERN,
    TEXT_AFTER_QUOTE,
    TEXT_END,
    UNCLOSED_QUOTE,
    CsvForm,
    Tokens,
)
from partitions.records.forms import TextOptions, Type, concatenate_patterns, text_form
from partitions.records.judge import Fault, fault_of_text, sql_type_name

_BREAK_NAMES = {"\r\n": "CR LF", "\n": "LF", "\r": "CR"}
_NOT_SKIPPED = rf"(?![\x00-\x20]++{TEXT_END})"


class CsvItem(NamedTuple):
    """A record that cannot be loaded.

    Attributes:
        line: the line in which it begins, from 1; None if unknown.
        text: the raw text of the record.
        fault: why it cannot be loaded.
        is_open: whether one of its quotes is not closed.
    """

    line: int | None
    text: str
    fault: Fault
    is_open: bool


@dataclass(frozen=True)
class CsvRule:
    """What a valid record looks like.

    Attributes:
        form: the CSV dialect.
        fields: the names and types of the columns, in the order of the values.
        options: how the definition reads texts.
        spark_faults: by position, a text in a user-defined form that Spark refused, and its fault.
    """

    form: CsvForm
    fields: Sequence[tuple[str, Type]]
    options: TextOptions = field(default_factory=TextOptions)
    spark_faults: Mapping[int, tuple[str, Fault]] = field(default_factory=dict)

    def pattern(self, header: str | None = None) -> str:
        """Return the pattern of a valid line: blank, a comment, or one record, but not the header.

        The judge counts header lines.

        Args:
            header: the text of a file's first line; None if it has no header.
        """
        not_header = "" if header is None else f"(?!{re.escape(header)}{TEXT_END})"
        return rf"^{not_header}(?:{self._blank}{TEXT_END}|{_NOT_SKIPPED}(?:{self._comment}{self._record}){TEXT_END})"

    def text_pattern(self) -> str:
        """Return the pattern of a file's whole text if all its records are valid."""
        texts = CsvRule(self.form, [(name, "string") for name, _ in self.fields], TextOptions())
        line_break = re.escape(self.form.line_break) or LINE_BREAK
        skipped = rf"(?:{self._comment}{self._blank}){line_break}"
        header = f"(?:{skipped})*+{texts._record}(?:{line_break}|{TEXT_END})" if self.form.header else ""
        record = rf"(?:{self._comment}{self._record}|{self._blank})(?:{line_break}|(?={TEXT_END}))"
        return rf"^\uFEFF?+(?:{header}(?:(?!{TEXT_END}){record})*+)?+{TEXT_END}"

    def judge(self, line: str) -> CsvItem | None:
        """Return the faulty record of one line; None if the line is a valid record, blank or a comment.

        A byte order mark counts as a character of the line: remove the file's own before.
        """
        return next(self._judge(line, 0, has_header=False), None)

    def judge_text(self, text: str, *, has_header: bool) -> Iterator[CsvItem]:
        """Yield the records of a file's text that cannot be loaded.

        Stops after a record whose end cannot be determined.
        """
        return self._judge(text, 1 if text.startswith("\ufeff") else 0, has_header=has_header)

    def _judge(self, text: str, position: int, *, has_header: bool) -> Iterator[CsvItem]:
        number = 1
        while position < len(text):
            begin, line = position, number
            stop = LINE_PATTERN.match(text, position)
            assert stop is not None
            if self.form.is_skippable(stop[0]):
                end, fault, is_open = stop.end(), None, False
            else:
                tokens = self.form.tokens(text, position)
                is_open = tokens.fault == UNCLOSED_QUOTE
                end = stop.end() if tokens.fault and not self.form.needs_whole_text else tokens.end
                fault = None if has_header and tokens.fault is None else self._fault(tokens)
                has_header = False
            if is_open and self.form.needs_whole_text:
                end = len(text)
            step = LINE_BREAK_PATTERN.match(text, end)
            if fault is None and step is not None and self.form.needs_whole_text:
                fault = self._fault_of_break(step[0])
            if fault is not None:
                yield CsvItem(line, text[begin:end], fault, is_open)
                if tokens.fault is not None and self.form.needs_whole_text:
                    return
            position = step.end() if step is not None else len(text) if end >= len(text) else end
            number += text.count("\n", begin, position) or text.count("\r", begin, position)

    def _fault_of_break(self, line_break: str) -> Fault | None:
        """Return a fault if the record's line break differs from the first record's; else None.

        In a whole text Spark ends records at one kind of line break only, and would join the next record
        to this one.
        """
        expected = self.form.line_break
        if not expected or line_break == expected:
            return None
        return Fault(
            f"expected {_BREAK_NAMES.get(expected, repr(expected))} at its end, as after the first record, found"
            f" {_BREAK_NAMES[line_break]}: where values may span several lines, all records of a file must end alike"
        )

    def _fault(self, tokens: Tokens) -> Fault | None:
        if tokens.fault == UNCLOSED_QUOTE:
            return Fault(UNCLOSED_QUOTE)
        if tokens.fault == TEXT_AFTER_QUOTE:
            escape = "\\" if self.form.escape == self.form.quote else self.form.quote
            option = '"\\\\"' if escape == "\\" else f"'{escape}'"
            return Fault(
                f"{TEXT_AFTER_QUOTE}: a quote within quotes is written {self.form.escape}{self.form.quote}; if files write {escape}{self.form.quote},"
                f" set `options: {{escape: {option}}}` of the source",
                tokens.values[-1].text,
            )
        if len(tokens.values) != len(self.fields):
            return Fault(f"expected {pluralize(len(self.fields), 'value')}, found {len(tokens.values)}")
        for place, ((name, data_type), token) in enumerate(zip(self.fields, tokens.values, strict=True)):
            if any(letter in token.text for letter in self.form.lost_characters):
                return Fault(
                    f"field {name}: expected text, found a character that Spark loses (U+FFFF or NUL)"
                )
            if not token.text and token.is_quoted and self.options.null and data_type != "string":
                return Fault(
                    f"field {name}: expected {sql_type_name(data_type)}, found an empty text in quotes, which is not NULL if options.nullValue is set"
                )
            if token.text in ("", self.options.null) or data_type == "string":
                continue
            text, fault_by_spark = self.spark_faults.get(place, (None, None))
            if token.text == (text.strip(" \t") if text is not None and self.form.trims else text):
                return fault_by_spark
            reason = fault_of_text(token.text, data_type, self.options)
            if reason is not None:
                return Fault(f"field {name}: expected {sql_type_name(data_type)}, found {reason}", token.text)
        return None

    @property
    def _blank(self) -> str:
        return f"[{self.form.blanks}]*+" if self.form.blanks else ""

    @property
    def _comment(self) -> str:
        return rf"{re.escape(self.form.comment)}[^\r\n]*+|" if self.form.comment else ""

    @property
    def _record(self) -> str:
        values = [self._value(data_type) for _, data_type in self.fields]
        return concatenate_patterns(values, re.escape(self.form.separator))

    def _value(self, data_type: Type) -> str:
        form = self.form
        quote = re.escape(form.quote)
        texts = None if data_type == "string" else text_form(data_type, self.options)
        null = f"|{re.escape(self.options.null)}" if self.options.null else ""
        if texts is None:
            plain = f"(?!{quote}){form.readable_bare_pattern}" if form.quote else form.readable_bare_pattern
            value = f"{quote}{form.readable_quoted_pattern}{quote}|{plain}" if form.quote else plain
        else:
            blank = "|[ \\t]" if form.trims else ""
            ends = rf"(?={re.escape(form.separator)}|[\r\n]|{TEXT_END}{blank})"
            value = f"(?:{texts}{null}){ends}|{ends}"
            empty = "" if null else "?+"  # beside another text for NULL one without a letter is none
            value = f"{quote}(?:{texts}{null}){empty}{quote}|{value}" if form.quote else value
        return (
            rf"(?:[ \t]*+(?:{value})[ \t]*+)"
            if form.trims and form.separator not in " \t"
            else f"(?:{value})"
        )
