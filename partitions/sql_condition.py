"""What the text of a condition in Spark's SQL tells before an engine reads it: its columns and words.

``strandline delete`` keeps such a condition in the state, and every later slice is tested with it. So it
must mean the same at any time: no clock, no chance, no other table (docs/how-to/deleting-and-keeping.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from partitions.predicate import EVERYTHING, Among, Between, Predicate, all_of
from partitions.target import HISTORY_COLUMNS, RUN_COLUMNS

_TOKEN = re.compile(
    r"""
    (?P<comment>--|/\*)
    | (?P<text>[rR]?'(?:[^'\\]|\\.|'')*' | [rR]?"(?:[^"\\]|\\.|"")*")
    | `(?P<quoted>(?:[^`]|``)*)`
    | (?P<number>\d[\w.]*)
    | (?P<word>\w+)
    | (?P<sign>\S)
    """,
    re.VERBOSE | re.DOTALL,
)

_CHANGING = frozenset(
    {
        # clocks
        "curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now",
        # chance
        "rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid",
        # the place of a row in one run of a query
        "input_file_block_length", "input_file_block_start", "input_file_name", "monotonically_increasing_id", "spark_partition_id",
        # the session, and code
        "current_catalog", "current_database", "current_schema", "current_timezone", "current_user", "java_method", "reflect",
        "session_user", "try_reflect", "user", "version",
    }
)  # fmt: skip
"""Functions whose value differs from one call to the next, or from one session to another."""

_WITHOUT_PARENTHESES = frozenset(
    {"current_date", "current_time", "current_timestamp", "current_user", "localtimestamp", "session_user", "user"}
)  # fmt: skip
"""Functions that SQL calls by their bare name."""

_CLOCK_IF_EMPTY = frozenset({"unix_timestamp"})
"""Functions that read the clock if they have no argument."""

_QUERIES = frozenset({"select", "values", "with"})
"""Words that begin a query, and stand nowhere else in a condition."""

_TIMES = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_CLOCK_TEXTS = frozenset({"now", "today", "tomorrow", "yesterday"})
"""Texts that Spark reads as times of the clock if one of the types above precedes them."""


_WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})


class _Token(NamedTuple):
    kind: str
    text: str


def changing_part(condition: str, columns: Sequence[str]) -> str | None:
    """Return the first part of a condition whose value may change without the row; None if there is none.

    Args:
        condition: condition in Spark's SQL.
        columns: names of the table's columns; Spark takes ``user`` for a column if there is one.

    Returns:
        the part for people: ``rand()``, ``current_date``, ``a subquery``, ``a comment``.
    """
    tokens, column_names = list(_tokens(condition)), {name.casefold() for name in columns}
    for number, (kind, text) in enumerate(tokens):
        following = [token.text for token in tokens[number + 1 : number + 3]]
        is_field = number > 0 and tokens[number - 1].text == "."
        part = None
        if kind == "word" and not is_field:
            part = _changing_word(text.lower(), following, column_names)
        if kind == "comment":
            part = "a comment"
        elif (kind, text) == ("sign", ";"):
            part = "a semicolon"
        if part:
            return part
    return None


def _changing_word(word: str, following: Sequence[str], column_names: Collection[str]) -> str | None:
    is_call = following[:1] == ["("]
    if word in _QUERIES:
        return "a subquery"
    if word in _CHANGING and is_call:
        return f"{word}()"
    if word in _CLOCK_IF_EMPTY and following == ["(", ")"]:
        return f"{word}()"
    if word in _WITHOUT_PARENTHESES and word not in column_names:
        return word
    clock_text = following[0].strip("'\"").strip().lower() if following else ""
    if word in _TIMES and following and following[0][:1] in ("'", '"') and clock_text in _CLOCK_TEXTS:
        return f"{word} '{clock_text}'"
    return None


def named_columns(condition: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a condition names, in the order and spelling of ``columns``.

    A name that the text uses otherwise, such as a field's or a parameter's, may count as well.

    Args:
        condition: condition in Spark's SQL.
        columns: names of a table's columns.
    """
    tokens = list(_tokens(condition))
    names = {
        token.text.casefold()
        for before, token in zip((None, *tokens), tokens, strict=False)
        if token.kind in ("word", "quoted") and (before is None or before.text != ".")
    }
    return tuple(name for name in columns if name.casefold() in names)


def column_of_run(names: Sequence[str]) -> str | None:
    """Return the first column whose value depends on the run or the load; None if there is none.

    A row that is loaded again has another value there, so a condition on it would not find the row.
    """
    added = {*RUN_COLUMNS, *HISTORY_COLUMNS}
    return next((name for name in names if name.casefold() in added), None)


def bounds_of(condition: str, types: Mapping[str, str]) -> Predicate:
    """Return a predicate that every matching row meets, by which statistics rule files out.

    It reads comparisons of a column with whole numbers and plain texts that AND joins; anything else counts
    as met by every row.

    Args:
        condition: condition in Spark's SQL.
        types: types of the table's columns by name, in Spark's words.
    """
    tokens = list(_tokens(condition))
    if any(text.upper() in ("OR", "NOT", "CASE") for kind, text in tokens if kind == "word"):
        return EVERYTHING
    by_name = {name.casefold(): (name, data_type) for name, data_type in types.items()}
    parts: list[Predicate] = []
    for comparison in _conjuncts(tokens):
        column = comparison[0] if comparison else None
        if column is None or column.kind not in ("word", "quoted"):
            continue
        name, data_type = by_name.get(column.text.casefold(), ("", ""))
        part = _comparison(name, data_type, comparison[1:]) if name else None
        if part is not None:
            parts.append(part)
    return all_of(parts)


def _conjuncts(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield the parts of a condition between ANDs that stand in no parentheses."""
    part: list[_Token] = []
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind == "word" and token.text.upper() == "AND":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _comparison(name: str, data_type: str, rest: Sequence[_Token]) -> Predicate | None:
    """Return the predicate of a column's comparison with literals; None if it is anything else."""
    texts = [token.text for token in rest]
    if texts[:1] == ["="] and len(rest) == 2:
        value = _literal(rest[1], data_type)
        return None if value is None else Among(name, (value,))
    if texts[:1] and texts[0].upper() == "IN" and texts[1:2] == ["("] and texts[-1:] == [")"]:
        values = [_literal(token, data_type) for token in rest[2:-1:2]]
        has_commas = all(token.text == "," for token in rest[3:-1:2])
        return Among(name, tuple(dict.fromkeys(values))) if has_commas and None not in values else None
    if data_type not in _WHOLE_NUMBERS or texts[:1] not in (["<"], [">"]):
        return None
    inclusive = texts[1:2] == ["="]
    if len(rest) != (3 if inclusive else 2) or (value := _literal(rest[-1], data_type)) is None:
        return None
    if texts[0] == "<":
        return Between(name, None, value, upper_inclusive=inclusive)
    return Between(name, value, None, lower_inclusive=inclusive)


def _literal(token: _Token, data_type: str) -> int | str | None:
    """Return the value of a literal of a column's own type; None if it is anything else."""
    if token.kind == "number" and token.text.isdecimal() and data_type in _WHOLE_NUMBERS:
        return int(token.text)
    is_plain_text = token.kind == "text" and token.text[0] == "'" and "\\" not in token.text
    if is_plain_text and data_type == "string" and "'" not in token.text[1:-1]:
        return token.text[1:-1]
    return None


def _tokens(condition: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(condition):
        kind = match.lastgroup or "sign"
        text = match.group(kind)
        yield _Token(kind, text.replace("``", "`") if kind == "quoted" else text)
