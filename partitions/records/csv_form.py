"""The CSV dialect of a file: separators, quotes, line breaks, and where a value ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from partitions.records.options import non_utf8_encoding, with_lower_names

TEXT_END = r"(?![\s\S])"
"""Pattern: the end of a text."""
LINE_BREAK = r"(?:\r\n|\n|\r)"
"""Pattern: one line break."""

UNUSED_CHARACTER = "\uffff"
"""A code that Unicode gives to no character, passed to Spark's parser as ``charToEscapeQuoteEscaping``: its default is NUL, which would be lost."""

SKIPPED_CHARACTERS = "".join(map(chr, range(33)))
"""Spark's line reader skips a line of these characters alone, even if the line is a record."""


REFUSED_OPTIONS: Mapping[str, str] = {
    "enforceschema": "no such option: Strandline compares each header with the schema, so that no columns are mixed up",
    "chartoescapequoteescaping": "no such option: write a quote within quotes twice, or put `escape` before it",
    "unescapedquotehandling": "no such option: write a quote within quotes twice, or put `escape` before it",
    "enabledatetimeparsingfallback": "no such option: set timestampFormat to the form of times",
}
"""Options of Spark's reader, in lower case, that would silently change or lose rows; with the advice for each."""

_WIDE = ("16", "32")


@dataclass(frozen=True)
class CsvForm:
    """The dialect in which a file's records are written.

    Attributes:
        separator: between values; one character or more.
        quote: the character around a value; "" for none.
        escape: the character before a quote inside quotes; equal to the quote if quotes are doubled.
        comment: the prefix of comment lines; "" for none.
        header: whether the first line names the columns.
        over_lines: whether quoted values may contain line breaks.
        trims: whether blanks around values are dropped.
        encoding: the text encoding, as the user names it; None for UTF-8.
        line_break: the line break that ends every record, if records are split in the whole text only; ""
        for any.
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
        """Return the dialect that reader options describe.

        ``separator`` is used if the options name none; the file's extension gives it.
        """
        names = with_lower_names(options)
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
            encoding=non_utf8_encoding(options),
            line_break=names.get("linesep", ""),
        )

    @property
    def is_wide(self) -> bool:
        """Whether one byte of a line break may be part of another character.

        Only the decoded text can be split into lines then.
        """
        return any(size in (self.encoding or "") for size in _WIDE)

    @property
    def needs_whole_text(self) -> bool:
        """Whether records can be split in the whole text of a file only."""
        return self.over_lines or self.is_wide

    @property
    def blanks(self) -> str:
        """Characters of a blank line: spaces and tabs, unless they separate values.

        "" if Spark reads the whole text, since it then skips empty lines only.
        """
        return "" if self.needs_whole_text else " \t".replace(self.separator, "")

    def is_skippable(self, line: str) -> bool:
        """Return whether a line is blank or a comment, and so no record."""
        is_comment = bool(self.comment) and line.startswith(self.comment)
        return is_comment or not line.strip(self.blanks)

    def first_record(self, text: str) -> tuple[str, list[str]] | None:
        """Return the raw text and the values of the first record; None if there is none.

        The first record may be a header.
        """
        position = 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            line = LINE_PATTERN.match(text, position)
            assert line is not None
            if not self.is_skippable(line[0]):
                tokens = self.tokens(text, position)
                end = line.end() if tokens.fault else tokens.end
                return text[position:end], [value.text for value in tokens.values]
            step = LINE_BREAK_PATTERN.match(text, line.end())
            position = line.end() if step is None else step.end()
            if step is None:
                break
        return None

    def first_break(self, text: str) -> str:
        """Return the line break after the first record of a text; "" if there is none."""
        record = self.first_record(text)
        step = (
            None if record is None else LINE_BREAK_PATTERN.match(text, text.index(record[0]) + len(record[0]))
        )
        return "" if step is None else step[0]

    def values(self, line: str) -> list[str] | None:
        """Return the unquoted values of one record's text; None if it is not exactly one record."""
        tokens = self.tokens(line, 0)
        return None if tokens.fault or tokens.end < len(line) else [value.text for value in tokens.values]

    def tokens(self, text: str, position: int) -> Tokens:
        """Return the values of one record, from a position up to a line break or the text's end."""
        values: list[Token] = []
        blank = _BLANKS if self.trims else _NOTHING
        while True:
            position = _match_end(blank, text, position)
            if self.quote and text.startswith(self.quote, position):
                match = self._quoted_regex.match(text, position)
                if match is None:
                    return Tokens(values, position, UNCLOSED_QUOTE)
                inner = match[1]
                if self.escape == self.quote:
                    inner = inner.replace(self.quote * 2, self.quote)
                else:
                    inner = inner.replace(self.escape + self.quote, self.quote).replace(
                        self.escape * 2, self.escape
                    )
                values.append(Token(inner, is_quoted=True))
                position = _match_end(blank, text, match.end())
                if not text.startswith(self.separator, position) and not _at_end(text, position):
                    return Tokens(values, position, TEXT_AFTER_QUOTE)
            else:
                match = self._bare_regex.match(text, position)
                assert match is not None
                value = match[0].rstrip(" \t") if self.trims else match[0]
                values.append(Token(value, is_quoted=False))
                position = match.end()
            if not text.startswith(self.separator, position):
                return Tokens(values, position, None)
            position += len(self.separator)

    @cached_property
    def _quoted_regex(self) -> re.Pattern[str]:
        return re.compile(f"{re.escape(self.quote)}({self.quoted_pattern}){re.escape(self.quote)}")

    @cached_property
    def _bare_regex(self) -> re.Pattern[str]:
        return re.compile(self.bare_pattern)

    @property
    def lost_characters(self) -> str:
        """Characters that Spark's parser uses as markers, and would lose in values.

        They are :data:`UNUSED_CHARACTER`, and NUL if the dialect has no quote.
        """
        return UNUSED_CHARACTER if self.quote else f"{UNUSED_CHARACTER}\0"

    @property
    def quoted_pattern(self) -> str:
        """The pattern of the text between quotes."""
        return self._quoted_body("")

    @property
    def readable_quoted_pattern(self) -> str:
        """The pattern of the text between quotes, without characters that Spark would lose."""
        return self._quoted_body(self.lost_characters)

    def _quoted_body(self, excluded: str) -> str:
        quote, escape = _class(self.quote), _class(self.escape)
        unquotable = excluded + ("" if self.needs_whole_text else r"\r\n")
        if self.escape == self.quote:
            return f"[^{quote}{unquotable}]*+(?:{re.escape(self.quote * 2)}[^{quote}{unquotable}]*+)*+"
        plain = f"[^{quote}{escape}{unquotable}]*+"
        return (
            f"{plain}(?:{re.escape(self.escape)}[^{excluded}]{plain})*+"
            if excluded
            else f"{plain}(?:{re.escape(self.escape)}[\\s\\S]{plain})*+"
        )

    @property
    def bare_pattern(self) -> str:
        """The pattern of an unquoted value."""
        return self._bare_without("")

    @property
    def readable_bare_pattern(self) -> str:
        """The pattern of an unquoted value, without characters that Spark would lose."""
        return self._bare_without(self.lost_characters)

    def _bare_without(self, excluded: str) -> str:
        if len(self.separator) == 1:
            return rf"[^{_class(self.separator)}{excluded}\r\n]*+"
        return rf"(?:(?!{re.escape(self.separator)})[^{excluded}\r\n])*+"


class Token(NamedTuple):
    """A value of a record.

    Attributes:
        text: the value without its quotes.
        is_quoted: whether it was quoted.
    """

    text: str
    is_quoted: bool


class Tokens(NamedTuple):
    """The values of a record.

    Attributes:
        values: all values, or those before the fault.
        end: the position after the last value.
        fault: UNCLOSED_QUOTE or TEXT_AFTER_QUOTE; None if the record is sound.
    """

    values: Sequence[Token]
    end: int
    fault: str | None


UNCLOSED_QUOTE = "a quote opens a value and is not closed in its line"
TEXT_AFTER_QUOTE = "more text follows the quote that closes a value"


def _is_true(text: str) -> bool:
    return text.lower() == "true"


_UNESCAPED = {"\\t": "\t", "\\\\": "\\", "\\u0000": "\0"}
_BLANKS = re.compile(r"[ \t]*+")
_NOTHING = re.compile("")
LINE_PATTERN = re.compile(r"[^\r\n]*+")
LINE_BREAK_PATTERN = re.compile(LINE_BREAK)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None
    return match.end()


def _at_end(text: str, position: int) -> bool:
    return position >= len(text) or text[position] in "\r\n"


def _class(character: str) -> str:
    """Return a character escaped for a regular expression's character class."""
    return "".join(f"\\{letter}" if letter in r"\]^[-&~" else letter for letter in character)
