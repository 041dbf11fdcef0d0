"""What the text of a condition in Spark's SQL tells before an engine reads it: its columns and words.

``strandline delete`` keeps such a condition in the state, and every later slice is tested with it. So it
must mean the same at any time: no clock, no chance, no other table (docs/how-to/deleting-and-keeping.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from partitions.history import DEFAULT_NAMES
from partitions.predicate import EVERYTHING, Among, Between, Predicate, all_of
from partitions.target import RUN_COLUMNS

_TOKEN = re.compile(
    r"""
    (?P<comment>--|/\*)
    | (?P<text>[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | `(?P<quoted>(?:[^`]|``)*)`
    | (?P<number>[0-9]\w*(?:\.[0-9]\w*)?)
    | (?P<word>\w+)
    | (?P<sign>[][()<>=!+\-*/%&|^~.,:;?])
    | (?P<unclear>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens as Spark's own lexer splits them. In a raw text (``r'\\d'``) a backslash escapes nothing, and no quote is doubled."""

_CHANGING = frozenset(
    {
        # clocks
        "curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now",
        # chance
        "aes_encrypt", "rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid",
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
_FIXED_TIME = re.compile(r"""[rR]?['"]\s*[+-]?[0-9]{4}""")
"""Beginning of a text with a year. Behind a type above, Spark takes ``'now'`` and ``'12:30'`` from the clock."""


_QUOTES = frozenset("'\"`")

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
        the part for people: ``rand()``, ``current_date``, ``a subquery``, ``a comment``. What cannot be told
        apart counts as such a part: ``a quote without its end``, ``the variable ${…}``.
    """
    if "${" in condition:  # a session may replace it, also in texts
        return "the variable ${…}"
    tokens, column_names = list(_tokens(condition)), {name.casefold() for name in columns}
    for number, (kind, text) in enumerate(tokens):
        following = tokens[number + 1 : number + 3]
        is_field = number > 0 and tokens[number - 1] == ("sign", ".")
        part = None
        if kind in ("word", "quoted"):
            part = _changing_name(_Token(kind, _folded(text)), following, column_names, is_field=is_field)
        elif kind == "comment":
            part = "a comment"
        elif kind == "unclear":
            part = "a quote without its end" if text in _QUOTES else f"the character {text}"
        elif (kind, text) == ("sign", ";"):
            part = "a semicolon"
        if part:
            return part
    return None


def _folded(word: str) -> str:
    """Return a word in small letters, as Spark compares it: a long s (U+017F) counts as ``s``."""
    return word.upper().casefold()


def _changing_name(
    name: _Token, following: Sequence[_Token], column_names: Collection[str], *, is_field: bool
) -> str | None:
    """Return the part that a name in small letters begins; None if its value never changes.

    Spark calls a function by a name in backquotes, too.
    """
    word, texts = name.text, [token.text for token in following]
    is_call = following[:1] == [("sign", "(")]
    if is_field:
        return f"the function {word}() of a catalog" if is_call else None
    if name.kind == "word" and word in _QUERIES:
        return "a subquery"
    if is_call and (word in _CHANGING or word == "identifier"):
        return f"{word}()"
    if word in _CLOCK_IF_EMPTY and texts == ["(", ")"]:
        return f"{word}()"
    if word in _WITHOUT_PARENTHESES and word not in column_names:
        return word
    is_typed = name.kind == "word" and word in _TIMES and bool(following) and following[0].kind == "text"
    return f"{word} {texts[0]}" if is_typed and not _FIXED_TIME.match(texts[0]) else None


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


def column_of_run(names: Sequence[str], added_by_load: Sequence[str] = ()) -> str | None:
    """Return the first column whose value depends on the run or the load; None if there is none.

    A row that is loaded again has another value there, so a condition on it would not find the row.

    Args:
        names: names of columns.
        added_by_load: columns that the load adds under names of the definition.
    """
    added = {*RUN_COLUMNS, *DEFAULT_NAMES.of_versions, *(name.casefold() for name in added_by_load)}
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
