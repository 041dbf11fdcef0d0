"""Records of CSV: a pattern of those that a schema holds exactly, and a judge of all others (docs/guide-files.md, Exact values).

Values stand by their place. One in quotes ends with its quote; nothing stands behind it but the separator. A text is of its column's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from partitions.plan import counted
from partitions.records.forms import Reading, Type, in_a_row, text_form
from partitions.records.judge import Fault, fault_of_text, shown
from partitions.records.options import by_lower_name, other_encoding

_END = r"(?![\s\S])"
BREAK = r"(?:\r\n|\n|\r)"
"""A pattern of what ends a line."""
_BREAK_NAMES = {"\r\n": "CR LF", "\n": "LF", "\r": "CR"}

NO_MARK = "\uffff"
"""A letter that no text has. Spark's parser is told that it stands before an escape; else a NUL does, and is lost."""

SKIPPED = "".join(map(chr, range(33)))
"""A line of these letters alone Spark's reader of lines skips, also if it is a record."""

_NOT_SKIPPED = rf"(?![\x00-\x20]++{_END})"

REFUSED: Mapping[str, str] = {
    "enforceschema": "no such option: each header is compared with the schema, so that no columns are mixed up",
    "chartoescapequoteescaping": "no such option: a quote within quotes is doubled, or `escape` stands before it",
    "unescapedquotehandling": "no such option: a quote within quotes is doubled, or `escape` stands before it",
    "enabledatetimeparsingfallback": "no such option: name the form of times in timestampFormat",
}
"""Options of Spark's reader, in lower case, that would change or lose rows without a word; with what is expected."""

_WIDE = ("16", "32")


@dataclass(frozen=True)
class CsvForm:
    """How records are written.

    Attributes:
        separator: between values, one character or more.
        quote: around a value; "" if none is.
        escape: before a quote within quotes; the quote itself if it is doubled.
        comment: how a line begins that is none; "" if there are none.
        header: whether the first line names the columns.
        over_lines: whether values in quotes may hold line breaks.
        trims: whether blanks around values are none of theirs.
        encoding: of the text, as the user names it; None for UTF-8.
        line_break: that ends each record of a file whose records are told apart in its whole text only; "" for any.
    """

    separator: str
    quote: str = '"'
    escape: str = '"'
    comment: str = ""
    header: bool = True
    over_lines: bool = False
    trims: bool = False
    encoding: str | None = None
    line_break: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any], separator: str) -> CsvForm:
        """Return what options say, with the separator that the file's ending tells if they name none."""
        names = by_lower_name(options)
        sep = names.get("sep", names.get("delimiter", separator))
        quote = names.get("quote", '"')
        return cls(
            separator=_UNESCAPED.get(sep, sep),
            quote=quote,
            escape=names.get("escape", quote or '"'),
            comment=names.get("comment", ""),
            header=_is_true(names.get("header", "true")),
            over_lines=_is_true(names.get("multiline", "")),
            trims=_is_true(names.get("ignoreleadingwhitespace", ""))
            or _is_true(names.get("ignoretrailingwhitespace", "")),
            encoding=other_encoding(options),
            line_break=names.get("linesep", ""),
        )

    @property
    def is_wide(self) -> bool:
        """Whether a byte of a line break may be part of another character, so that only the whole text has lines."""
        return any(size in (self.encoding or "") for size in _WIDE)

    @property
    def is_whole(self) -> bool:
        """Whether records are told apart in the whole text of a file only."""
        return self.over_lines or self.is_wide

    @property
    def blanks(self) -> str:
        """What a blank line may hold: what is no separator; nothing where Spark reads the whole text, since it skips empty lines alone then."""
        return "" if self.is_whole else " \t".replace(self.separator, "")

    def first_record(self, text: str) -> tuple[str, list[str]] | None:
        """Return the first record of a text, which may be a header, as it stands there, and its values; None if there is none."""
        rule, position = CsvRule(self, ()), 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            line = _LINE.match(text, position)
            assert line is not None
            if not rule.is_none(line[0]):
                tokens = self.tokens(text, position)
                end = line.end() if tokens.fault else tokens.end
                return text[position:end], [value.text for value in tokens.values]
            step = _BREAKS.match(text, line.end())
            position = line.end() if step is None else step.end()
            if step is None:
                break
        return None

    def first_break(self, text: str) -> str:
        """Return the line break behind the first record of a text; "" if there is none."""
        record = self.first_record(text)
        step = None if record is None else _BREAKS.match(text, text.index(record[0]) + len(record[0]))
        return "" if step is None else step[0]

    def values(self, line: str) -> list[str] | None:
        """Return the values in the text of one record, without their quotes; None if it is none."""
        tokens = self.tokens(line, 0)
        return None if tokens.fault or tokens.end < len(line) else [value.text for value in tokens.values]

    def tokens(self, text: str, position: int) -> Tokens:
        """Take the values of one record, from a place of a text up to a line break or the end."""
        values: list[Token] = []
        blank = _BLANKS if self.trims else _NOTHING
        while True:
            position = _ends(blank, text, position)
            if self.quote and text.startswith(self.quote, position):
                match = self._quoted.match(text, position)
                if match is None:
                    return Tokens(values, position, OPEN)
                inner = match[1]
                if self.escape == self.quote:
                    inner = inner.replace(self.quote * 2, self.quote)
                else:
                    inner = inner.replace(self.escape + self.quote, self.quote).replace(
                        self.escape * 2, self.escape
                    )
                values.append(Token(inner, is_quoted=True))
                position = _ends(blank, text, match.end())
                if not text.startswith(self.separator, position) and not _at_end(text, position):
                    return Tokens(values, position, BEHIND)
            else:
                match = self._bare.match(text, position)
                assert match is not None
                value = match[0].rstrip(" \t") if self.trims else match[0]
                values.append(Token(value, is_quoted=False))
                position = match.end()
            if not text.startswith(self.separator, position):
                return Tokens(values, position, None)
            position += len(self.separator)

    @cached_property
    def _quoted(self) -> re.Pattern[str]:
        return re.compile(f"{re.escape(self.quote)}({self.inside}){re.escape(self.quote)}")

    @cached_property
    def _bare(self) -> re.Pattern[str]:
        return re.compile(self.bare)

    @property
    def unread(self) -> str:
        """Letters that Spark's parser takes for marks of its own, and would lose: the one in place of a quote that there is not, and that of :data:`NO_MARK`."""
        return NO_MARK if self.quote else f"{NO_MARK}\0"

    @property
    def inside(self) -> str:
        """The pattern of what may stand between quotes."""
        return self._inside("")

    @property
    def read_inside(self) -> str:
        """The same, without letters that would be lost."""
        return self._inside(self.unread)

    def _inside(self, unless: str) -> str:
        quote, escape = _class(self.quote), _class(self.escape)
        others = unless + ("" if self.is_whole else r"\r\n")
        if self.escape == self.quote:
            return f"[^{quote}{others}]*+(?:{re.escape(self.quote * 2)}[^{quote}{others}]*+)*+"
        plain = f"[^{quote}{escape}{others}]*+"
        return (
            f"{plain}(?:{re.escape(self.escape)}[^{unless}]{plain})*+"
            if unless
            else f"{plain}(?:{re.escape(self.escape)}[\\s\\S]{plain})*+"
        )

    @property
    def bare(self) -> str:
        """The pattern of a value without quotes."""
        return self._bare_but("")

    @property
    def read_bare(self) -> str:
        """The same, without letters that would be lost."""
        return self._bare_but(self.unread)

    def _bare_but(self, unless: str) -> str:
        if len(self.separator) == 1:
            return rf"[^{_class(self.separator)}{unless}\r\n]*+"
        return rf"(?:(?!{re.escape(self.separator)})[^{unless}\r\n])*+"


class Token(NamedTuple):
    """A value of a record.

    Attributes:
        text: what it says, without quotes.
        is_quoted: whether it stands in quotes.
    """

    text: str
    is_quoted: bool


class Tokens(NamedTuple):
    """The values of a record.

    Attributes:
        values: up to the end, or to what is wrong.
        end: the place behind the last of them.
        fault: OPEN or BEHIND, if something is wrong.
    """

    values: Sequence[Token]
    end: int
    fault: str | None


OPEN = "a quote opens a value and is not closed in its line"
BEHIND = "more stands behind the quote that closes a value"


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
        unless = "" if header is None else f"(?!{re.escape(header)}{_END})"
        return rf"^{unless}(?:{self._blank}{_END}|{_NOT_SKIPPED}(?:{self._comment}{self._record}){_END})"

    def text_pattern(self) -> str:
        """Return the pattern of the whole text of a file."""
        texts = CsvRule(self.form, [(name, "string") for name, _ in self.fields], Reading())
        line_break = re.escape(self.form.line_break) or BREAK
        skipped = rf"(?:{self._comment}{self._blank}){line_break}"
        header = f"(?:{skipped})*+{texts._record}(?:{line_break}|{_END})" if self.form.header else ""
        record = rf"(?:{self._comment}{self._record}|{self._blank})(?:{line_break}|(?={_END}))"
        return rf"^\uFEFF?+(?:{header}(?:(?!{_END}){record})*+)?+{_END}"

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
            stop = _LINE.match(text, position)
            assert stop is not None
            if self.is_none(stop[0]):
                end, fault, is_open = stop.end(), None, False
            else:
                tokens = self.form.tokens(text, position)
                is_open = tokens.fault == OPEN
                end = stop.end() if tokens.fault and not self.form.is_whole else tokens.end
                fault = None if has_header and tokens.fault is None else self._fault(tokens)
                has_header = False
            if is_open and self.form.is_whole:
                end = len(text)
            step = _BREAKS.match(text, end)
            if fault is None and step is not None and self.form.is_whole:
                fault = self._fault_of_break(step[0])
            if fault is not None:
                yield CsvItem(line, text[begin:end], fault, is_open)
                if tokens.fault is not None and self.form.is_whole:
                    return
            position = step.end() if step is not None else len(text) if end >= len(text) else end
            number += text.count("\n", begin, position) or text.count("\r", begin, position)

    def is_none(self, line: str) -> bool:
        """Return whether a line is no record: blank, or a comment."""
        is_comment = bool(self.form.comment) and line.startswith(self.form.comment)
        return is_comment or not line.strip(self.form.blanks)

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
            ends = rf"(?={re.escape(form.separator)}|[\r\n]|{_END}{blank})"
            value = f"(?:{texts}{null}){ends}|{ends}"
            empty = "" if null else "?+"  # beside another text for NULL one without a letter is none
            value = f"{quote}(?:{texts}{null}){empty}{quote}|{value}" if form.quote else value
        return (
            rf"(?:[ \t]*+(?:{value})[ \t]*+)"
            if form.trims and form.separator not in " \t"
            else f"(?:{value})"
        )


def _is_true(text: str) -> bool:
    return text.lower() == "true"


_UNESCAPED = {"\\t": "\t", "\\\\": "\\", "\\u0000": "\0"}
_BLANKS = re.compile(r"[ \t]*+")
_NOTHING = re.compile("")
_LINE = re.compile(r"[^\r\n]*+")
_BREAKS = re.compile(BREAK)


def _ends(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None
    return match.end()


def _at_end(text: str, position: int) -> bool:
    return position >= len(text) or text[position] in "\r\n"


def _class(character: str) -> str:
    """Return a character as it stands within a class of a pattern."""
    return "".join(f"\\{one}" if one in r"\]^[-&~" else one for one in character)
