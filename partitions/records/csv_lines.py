"""Records of CSV: a pattern of those that a schema holds exactly, and a judge of all others (docs/reference/files.md, Exact values).

Values stand by their place. One in quotes ends with its quote; nothing stands behind it but the separator. A text is of its column's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.plan import counted
from partitions.records.csv_form import BEHIND, BREAK, BREAKS, END, LINE, OPEN, CsvForm, Tokens
from partitions.records.forms import Reading, Type, in_a_row, text_form
from partitions.records.judge import Fault, fault_of_text, shown

_BREAK_NAMES = {"\r\n": "CR LF", "\n": "LF", "\r": "CR"}
_NOT_SKIPPED = rf"(?![\x00-\x20]++{END})"


class CsvItem(NamedTuple):
    """A record that cannot be loaded.

    Attributes:
        line: in which it begins, from 1; None if no line tells.
        text: of the record.
        fault: why.
        is_open: whether a quote in it is not closed.
    """

    line: int | None
    text: str
    fault: Fault
    is_open: bool


@dataclass(frozen=True)
class CsvRule:
    """What records must be.

    Attributes:
        form: how they are written.
        fields: the names and types of the columns, in the order of the values.
        reading: what the definition says of texts.
        misread: values that Spark has judged, since options name their forms: by place the text, and what is wrong with it.
    """

    form: CsvForm
    fields: Sequence[tuple[str, Type]]
    reading: Reading = field(default_factory=Reading)
    misread: Mapping[int, tuple[str, Fault]] = field(default_factory=dict)

    def pattern(self, header: str | None = None) -> str:
        """Return the pattern of a whole line: blank, a comment, or one record; not of the header, which the judge counts.

        Args:
            header: the text of the first line of a file; None if it has none.
        """
        unless = "" if header is None else f"(?!{re.escape(header)}{END})"
        return rf"^{unless}(?:{self._blank}{END}|{_NOT_SKIPPED}(?:{self._comment}{self._record}){END})"

    def text_pattern(self) -> str:
        """Return the pattern of the whole text of a file."""
        texts = CsvRule(self.form, [(name, "string") for name, _ in self.fields], Reading())
        line_break = re.escape(self.form.line_break) or BREAK
        skipped = rf"(?:{self._comment}{self._blank}){line_break}"
        header = f"(?:{skipped})*+{texts._record}(?:{line_break}|{END})" if self.form.header else ""
        record = rf"(?:{self._comment}{self._record}|{self._blank})(?:{line_break}|(?={END}))"
        return rf"^\uFEFF?+(?:{header}(?:(?!{END}){record})*+)?+{END}"

    def judge(self, line: str) -> CsvItem | None:
        """Judge one line; None if it is a record that the schema holds, or none at all. A byte order mark is a letter of it: a file's own is no part of its first line."""
        return next(self._judge(line, 0, has_header=False), None)

    def judge_text(self, text: str, *, has_header: bool) -> Iterator[CsvItem]:
        """Yield the records of a file's text that cannot be loaded; behind one whose end cannot be told there is no other."""
        return self._judge(text, 1 if text.startswith("\ufeff") else 0, has_header=has_header)

    def _judge(self, text: str, position: int, *, has_header: bool) -> Iterator[CsvItem]:
        number = 1
        while position < len(text):
            begin, line = position, number
            stop = LINE.match(text, position)
            assert stop is not None
            if self.form.is_none(stop[0]):
                end, fault, is_open = stop.end(), None, False
            else:
                tokens = self.form.tokens(text, position)
                is_open = tokens.fault == OPEN
                end = stop.end() if tokens.fault and not self.form.is_whole else tokens.end
                fault = None if has_header and tokens.fault is None else self._fault(tokens)
                has_header = False
            if is_open and self.form.is_whole:
                end = len(text)
            step = BREAKS.match(text, end)
            if fault is None and step is not None and self.form.is_whole:
                fault = self._fault_of_break(step[0])
            if fault is not None:
                yield CsvItem(line, text[begin:end], fault, is_open)
                if tokens.fault is not None and self.form.is_whole:
                    return
            position = step.end() if step is not None else len(text) if end >= len(text) else end
            number += text.count("\n", begin, position) or text.count("\r", begin, position)

    def _fault_of_break(self, line_break: str) -> Fault | None:
        """Spark ends records of a whole text at one kind of line break only, and would take the next record for a part of this one."""
        expected = self.form.line_break
        if not expected or line_break == expected:
            return None
        return Fault(
            f"expected {_BREAK_NAMES.get(expected, repr(expected))} at its end, as behind the first record, found"
            f" {_BREAK_NAMES[line_break]}: where values may go over several lines, all records of a file end alike"
        )

    def _fault(self, tokens: Tokens) -> Fault | None:
        if tokens.fault == OPEN:
            return Fault(OPEN)
        if tokens.fault == BEHIND:
            escape = "\\" if self.form.escape == self.form.quote else self.form.quote
            option = '"\\\\"' if escape == "\\" else f"'{escape}'"
            return Fault(
                f"{BEHIND}: a quote within quotes is written {self.form.escape}{self.form.quote}; if files write {escape}{self.form.quote},"
                f" set `options: {{escape: {option}}}` of the source",
                tokens.values[-1].text,
            )
        if len(tokens.values) != len(self.fields):
            return Fault(f"expected {counted(len(self.fields), 'value')}, found {len(tokens.values)}")
        for place, ((name, data_type), token) in enumerate(zip(self.fields, tokens.values, strict=True)):
            if any(letter in token.text for letter in self.form.unread):
                return Fault(
                    f"field {name}: expected text, found a letter in it that Spark loses (U+FFFF or NUL)"
                )
            if not token.text and token.is_quoted and self.reading.null and data_type != "string":
                return Fault(
                    f"field {name}: expected {shown(data_type)}, found an empty text in quotes, which is no NULL beside options.nullValue"
                )
            if token.text in ("", self.reading.null) or data_type == "string":
                continue
            text, fault_by_spark = self.misread.get(place, (None, None))
            if token.text == (text.strip(" \t") if text is not None and self.form.trims else text):
                return fault_by_spark
            why = fault_of_text(token.text, data_type, self.reading)
            if why is not None:
                return Fault(f"field {name}: expected {shown(data_type)}, found {why}", token.text)
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
        return in_a_row(values, re.escape(self.form.separator))

    def _value(self, data_type: Type) -> str:
        form = self.form
        quote = re.escape(form.quote)
        texts = None if data_type == "string" else text_form(data_type, self.reading)
        null = f"|{re.escape(self.reading.null)}" if self.reading.null else ""
        if texts is None:
            plain = f"(?!{quote}){form.read_bare}" if form.quote else form.read_bare
            value = f"{quote}{form.read_inside}{quote}|{plain}" if form.quote else plain
        else:
            blank = "|[ \\t]" if form.trims else ""
            ends = rf"(?={re.escape(form.separator)}|[\r\n]|{END}{blank})"
            value = f"(?:{texts}{null}){ends}|{ends}"
            empty = "" if null else "?+"  # beside another text for NULL one without a letter is none
            value = f"{quote}(?:{texts}{null}){empty}{quote}|{value}" if form.quote else value
        return (
            rf"(?:[ \t]*+(?:{value})[ \t]*+)"
            if form.trims and form.separator not in " \t"
            else f"(?:{value})"
        )
