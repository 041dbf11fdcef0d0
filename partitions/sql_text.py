"""Tell code from quotes and comments in a user's SQL, without further parsing.

A value may only stand in code: inside quotes or a comment its own quotes would not protect it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

SpanType = Literal["comment", "quoted"]

_DOLLAR = re.compile(r"\$([^\W\d]\w*)?\$")
_DASHES = {"standard": re.compile(r"--"), "spaced": re.compile(r"--(?=\s|\Z)")}
_NESTING = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class LexicalRules:
    """How a database reads quotes and comments.

    Attributes:
        backslash: whether a backslash escapes a quote in every text, not only in ``E'…'``.
        hashes: whether ``#`` starts a comment.
        spaced: whether ``--`` starts a comment only before white space.
        dollars: whether ``$tag$ … $tag$`` quotes.
        nested: whether a comment may hold comments.
    """

    backslash: bool
    hashes: bool
    spaced: bool
    dollars: bool
    nested: bool


POSTGRESQL = LexicalRules(backslash=False, hashes=False, spaced=False, dollars=True, nested=True)
MARIADB = LexicalRules(backslash=True, hashes=True, spaced=True, dollars=False, nested=False)
SPARK = LexicalRules(backslash=True, hashes=False, spaced=False, dollars=False, nested=True)

_GROUPS = re.compile(r"\bgroup\s+by\b", re.IGNORECASE)


@dataclass(frozen=True)
class QuotedSpan:
    """A quoted text or a comment; ``end`` is exclusive, and the text's end if it is never closed."""

    start: int
    end: int
    kind: SpanType


def non_code_spans(text: str, rules: LexicalRules) -> Iterator[QuotedSpan]:
    """Yield the quoted texts and comments, in order."""
    position = 0
    while position < len(text):
        span = _span(text, position, rules)
        if span:
            yield span
        position = span.end if span else position + 1


def strip_end(text: str, rules: LexicalRules) -> str:
    """Return a statement without trailing semicolons, blanks and comments.

    It can then stand in parentheses.
    """
    end = len(text)
    comments = [span for span in non_code_spans(text, rules) if span.kind == "comment"]
    while True:
        code = text[:end].rstrip("; \t\r\n\f\v")
        last = next((span for span in comments if span.start < len(code) <= span.end), None)
        if last is None:
            return code
        end = last.start


def groups_rows(text: str) -> bool:
    """Return whether a query of Spark's SQL has a GROUP BY."""
    code, position = list[str](), 0
    for span in non_code_spans(text, SPARK):
        code += [text[position : span.start], " "]
        position = span.end
    return _GROUPS.search("".join([*code, text[position:]])) is not None


def replace_in_code(text: str, old: str, new: str, rules: LexicalRules) -> str:
    """Replace a text in code only; quotes and comments stay as they are."""
    pieces, position = list[str](), 0
    for span in non_code_spans(text, rules):
        pieces += [text[position : span.start].replace(old, new), text[span.start : span.end]]
        position = span.end
    return "".join([*pieces, text[position:].replace(old, new)])


def _span(text: str, at: int, rules: LexicalRules) -> QuotedSpan | None:
    letter = text[at]
    if letter in "'\"`":
        return QuotedSpan(at, _quote_end(text, at, rules), "quoted")
    if letter == "$" and rules.dollars and (opened := _DOLLAR.match(text, at)) and not _in_word(text, at):
        closed = text.find(opened[0], opened.end())
        return QuotedSpan(at, len(text) if closed < 0 else closed + len(opened[0]), "quoted")
    if text.startswith("/*", at):
        return QuotedSpan(at, _comment_end(text, at, rules.nested), "comment")
    dashes = _DASHES["spaced" if rules.spaced else "standard"].match(text, at)
    if dashes or (letter == "#" and rules.hashes):
        line = text.find("\n", at)
        return QuotedSpan(at, len(text) if line < 0 else line, "comment")
    return None


def _quote_end(text: str, at: int, rules: LexicalRules) -> int:
    """Return the position after the closing quote; a doubled quote does not close."""
    quote, position = text[at], at + 1
    own = quote == "'" and at > 0 and text[at - 1] in "eE" and not _in_word(text, at - 1)
    escapes = quote != "`" and (rules.backslash or own)
    while position < len(text):
        if (text[position] == "\\" and escapes) or text.startswith(quote * 2, position):
            position += 1
        elif text[position] == quote:
            return position + 1
        position += 1
    return len(text)


def _comment_end(text: str, at: int, nested: bool) -> int:
    depth = 0
    for mark in _NESTING.finditer(text, at):
        depth += (1 if nested or not depth else 0) if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _in_word(text: str, at: int) -> bool:
    """Return whether the character before a position belongs to the same word."""
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_$")
