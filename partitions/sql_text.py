"""What of a user's SQL is code, and what is quoted or a comment. Nothing is parsed beyond that.

A value may only stand in code: inside quotes or a comment its own quotes would not protect it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["comment", "quoted"]

_DOLLAR = re.compile(r"\$([^\W\d]\w*)?\$")
_DASHES = {"standard": re.compile(r"--"), "spaced": re.compile(r"--(?=\s|\Z)")}
_NESTING = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class LexicalRules:
    """How a database reads quotes and comments.

    Attributes:
        backslash: whether a backslash escapes a quote in every text, not only in ``E'…'``.
        hashes: whether ``#`` starts a comment.
        spaced: whether ``--`` starts a comment only before a blank.
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


@dataclass(frozen=True)
class QuotedSpan:
    """A stretch that is no code; ``end`` is exclusive, and the text's end if it is never closed."""

    start: int
    end: int
    kind: Kind


def spans(text: str, reading: LexicalRules) -> Iterator[QuotedSpan]:
    """All that is no code, in order."""
    position = 0
    while position < len(text):
        span = _span(text, position, reading)
        if span:
            yield span
        position = span.end if span else position + 1


def without_end(text: str, reading: LexicalRules) -> str:
    """A statement without the semicolons, blanks and comments after it, so that it can stand in parentheses."""
    end = len(text)
    comments = [span for span in spans(text, reading) if span.kind == "comment"]
    while True:
        kept = text[:end].rstrip("; \t\r\n\f\v")
        last = next((span for span in comments if span.start < len(kept) <= span.end), None)
        if last is None:
            return kept
        end = last.start


def replaced_in_code(text: str, old: str, new: str, reading: LexicalRules) -> str:
    """A text with a part of its code replaced, wherever it stands; quotes and comments stay as they are."""
    pieces, position = list[str](), 0
    for span in spans(text, reading):
        pieces += [text[position : span.start].replace(old, new), text[span.start : span.end]]
        position = span.end
    return "".join([*pieces, text[position:].replace(old, new)])


def _span(text: str, at: int, reading: LexicalRules) -> QuotedSpan | None:
    letter = text[at]
    if letter in "'\"`":
        return QuotedSpan(at, _quote_end(text, at, reading), "quoted")
    if letter == "$" and reading.dollars and (opened := _DOLLAR.match(text, at)) and not _in_word(text, at):
        closed = text.find(opened[0], opened.end())
        return QuotedSpan(at, len(text) if closed < 0 else closed + len(opened[0]), "quoted")
    if text.startswith("/*", at):
        return QuotedSpan(at, _comment_end(text, at, reading.nested), "comment")
    dashes = _DASHES["spaced" if reading.spaced else "standard"].match(text, at)
    if dashes or (letter == "#" and reading.hashes):
        line = text.find("\n", at)
        return QuotedSpan(at, len(text) if line < 0 else line, "comment")
    return None


def _quote_end(text: str, at: int, reading: LexicalRules) -> int:
    """After the closing quote; a doubled one closes nothing."""
    quote, position = text[at], at + 1
    own = quote == "'" and at > 0 and text[at - 1] in "eE" and not _in_word(text, at - 1)
    escapes = quote != "`" and (reading.backslash or own)
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
    """Whether the letter before this place is part of the same word."""
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] in "_$")
