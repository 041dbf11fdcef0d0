"""How records of CSV are written: what separates values and lines, what quotes hold, and where a value ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from partitions.records.options import by_lower_name, other_encoding

END = r"(?![\s\S])"
"""A pattern of the end of a text."""
BREAK = r"(?:\r\n|\n|\r)"
"""A pattern of what ends a line."""

NO_MARK = "\uffff"
"""A letter that no text has. Spark's parser is told that it stands before an escape; else a NUL does, and is lost."""

SKIPPED = "".join(map(chr, range(33)))
"""A line of these letters alone Spark's reader of lines skips, also if it is a record."""


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

    def is_none(self, line: str) -> bool:
        """Return whether a line is no record: blank, or a comment."""
        is_comment = bool(self.comment) and line.startswith(self.comment)
        return is_comment or not line.strip(self.blanks)

    def first_record(self, text: str) -> tuple[str, list[str]] | None:
        """Return the first record of a text, which may be a header, as it stands there, and its values; None if there is none."""
        position = 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            line = LINE.match(text, position)
            assert line is not None
            if not self.is_none(line[0]):
                tokens = self.tokens(text, position)
                end = line.end() if tokens.fault else tokens.end
                return text[position:end], [value.text for value in tokens.values]
            step = BREAKS.match(text, line.end())
            position = line.end() if step is None else step.end()
            if step is None:
                break
        return None

    def first_break(self, text: str) -> str:
        """Return the line break behind the first record of a text; "" if there is none."""
        record = self.first_record(text)
        step = None if record is None else BREAKS.match(text, text.index(record[0]) + len(record[0]))
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


def _is_true(text: str) -> bool:
    return text.lower() == "true"


_UNESCAPED = {"\\t": "\t", "\\\\": "\\", "\\u0000": "\0"}
_BLANKS = re.compile(r"[ \t]*+")
_NOTHING = re.compile("")
LINE = re.compile(r"[^\r\n]*+")
BREAKS = re.compile(BREAK)


def _ends(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None
    return match.end()


def _at_end(text: str, position: int) -> bool:
    return position >= len(text) or text[position] in "\r\n"


def _class(character: str) -> str:
    """Return a character as it stands within a class of a pattern."""
    return "".join(f"\\{letter}" if letter in r"\]^[-&~" else letter for letter in character)
