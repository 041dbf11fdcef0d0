"""The types that a first run gives to columns, told from the records of one file's beginning, without Spark.

The rules are those by which Spark infers them in a run: what only looks like a number or a time is text, and a field without a value has no type yet.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from partitions.ddl import column_name
from partitions.json_faults import in_plain_words
from partitions.json_types import json_type
from partitions.plan import counted
from partitions.records.forms import NO_TYPE, Reading
from partitions.records.json_decoding import MOST_LEVELS, is_deeper
from partitions.records.judge import fault_of_text

_OF_TEXTS = ("integer", "long", "double", "boolean", "date", "timestamp")
_READING = Reading(inferred=True)
_MOST_DIGITS = 38
_LONG = range(-(2**63), 2**63)
_LONGEST_NUMBER, _LONGEST_NAME = 1000, 50_000
"""Digits and letters that Spark's parser of JSON takes."""

_BLANK = "it holds blank lines alone"
_SQL = {"integer": "int", NO_TYPE: "void"}


class Unclear(Exception):
    """A file's beginning does not tell its columns; the message says why.

    Attributes:
        effect: ``bad`` if a run does not load the file, ``empty`` if it has no record, ``long`` if only a run tells.
    """

    def __init__(self, why: str, effect: Literal["bad", "empty", "long"] = "bad") -> None:
        """Take the reason."""
        super().__init__(why)
        self.effect = effect


@dataclass(frozen=True)
class FirstTypes:
    """What the beginning of a file tells of its columns.

    Attributes:
        columns: names and types, as DDL has them.
        valueless: columns that have no value, and so no type yet; they are not among the others.
        texts: the values of a text format's columns, by name; empty ones left out.
    """

    columns: Sequence[tuple[str, str]]
    valueless: Sequence[str] = ()
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)


def type_of_texts(texts: Iterable[str]) -> str:
    """Return the first type that holds all texts exactly; text if there is none, or no text."""
    values = [text for text in texts if text]
    if not values:
        return "string"
    fitting = next(
        (kind for kind in _OF_TEXTS if all(fault_of_text(value, kind, _READING) is None for value in values)),
        None,
    )
    if fitting in (None, "double"):
        digits = max(map(_digits, values))
        if digits <= _MOST_DIGITS:
            return f"decimal({digits},0)"
    return fitting or "string"


def _digits(text: str) -> int:
    bare = text.removeprefix("-")
    is_whole = bare.isascii() and bare.isdigit() and (bare == "0" or not bare.startswith("0"))
    return len(bare) if is_whole else _MOST_DIGITS + 1


def types_of_csv(text: str, separator: str) -> FirstTypes:
    """Return the columns under a header.

    Args:
        text: whole lines, the header first.
        separator: of the values.

    Raises:
        Unclear: there is no header, or its names do not tell the columns apart.
    """
    before = csv.field_size_limit(sys.maxsize)
    try:
        records = list(csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True))
    except csv.Error as error:
        raise Unclear(f"its records do not read as CSV: {error}") from None
    finally:
        csv.field_size_limit(before)
    rows = [record for record in records if record]
    if not rows:
        raise Unclear(_BLANK, "empty")
    names, rows = rows[0], rows[1:]
    _check_names(names, "its header")
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise Unclear(f"its record {number} has {counted(len(row), 'value')}, its header {len(names)}")
        if any("\n" in value or "\r" in value for value in row):
            raise Unclear(
                f"a value of its record {number} goes over several lines: set options: {{multiLine: true}}"
            )
    texts = {name: [row[place] for row in rows if row[place]] for place, name in enumerate(names)}
    return FirstTypes([(name, _sql(type_of_texts(values))) for name, values in texts.items()], (), texts)


def types_of_lines(text: str) -> FirstTypes:
    """Return the fields of the objects that stand one in a line.

    Raises:
        Unclear: a line holds another value, or names of one differ in upper and lower case only.
    """
    merged: Any = NO_TYPE
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        value = _parsed(line, f"its line {number}")
        if not isinstance(value, _Object):
            raise Unclear(f"its line {number} holds {_in_words(value)}, expected an object")
        merged = _merged(merged, _type_of(value))
    return _of_struct(merged, _BLANK)


def types_of_document(text: str) -> FirstTypes:
    """Return the fields of a document, which is an object or an array of objects.

    Raises:
        Unclear: it is another value, is nested too deep, or names of an object differ in upper and lower case only.
    """
    if not text.strip():
        raise Unclear(_BLANK, "empty")
    value = _parsed(text, "it")
    merged: Any = NO_TYPE
    for number, record in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(record, _Object):
            where = f"element {number} of its array" if isinstance(value, list) else "it"
            raise Unclear(f"{where} is {_in_words(record)}, expected an object")
        merged = _merged(merged, _type_of(record))
    return _of_struct(merged, "it holds no record")


class _Whole(str):
    """A number without a fraction, as it is written; as an integer it would take time that grows with the square of its digits."""

    __slots__ = ()


class _Fraction(str):
    """Another number."""

    __slots__ = ()


class _Object(dict[str, Any]):
    """An object whose names stand in it once."""


class _Struct(dict[str, Any]):
    """The types of fields, by name."""


def _parsed(text: str, where: str) -> Any:
    try:
        value = json.loads(
            text,
            parse_int=_Whole,
            parse_float=_Fraction,
            parse_constant=_Fraction,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise Unclear(f"{where} is nested more than {MOST_LEVELS} levels deep") from None
    except ValueError as error:
        raise Unclear(f"{where} is no whole JSON: {in_plain_words(error)}") from None
    if is_deeper(value, MOST_LEVELS):
        raise Unclear(f"{where} is nested more than {MOST_LEVELS} levels deep")
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> _Object:
    members = _Object(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {_quoted(twice)} stands twice in an object")
    return members


def _in_words(value: Any) -> str:
    return "a number" if isinstance(value, _Whole | _Fraction) else json_type(value)


def _type_of(value: Any) -> Any:
    match value:
        case None:
            return NO_TYPE
        case bool():
            return "boolean"
        case _Whole():
            digits = len(value.lstrip("-"))
            if digits > _LONGEST_NUMBER:
                raise Unclear(f"a number has {digits:,} digits, and Spark reads {_LONGEST_NUMBER:,} at most")
            if digits < 19 or (digits == 19 and int(value) in _LONG):
                return "long"
            return f"decimal({digits},0)" if digits <= _MOST_DIGITS else "double"
        case _Fraction():
            return "double"
        case str():
            return "string"
        case list():
            element: Any = NO_TYPE
            for item in value:
                element = _merged(element, _type_of(item))
            return [element]
    return _Struct({name: _type_of(member) for name, member in value.items()})


def _merged(one: Any, other: Any) -> Any:
    """The type that holds values of both; text if nothing else does."""
    if one == other or other == NO_TYPE:
        return one
    if one == NO_TYPE:
        return other
    if isinstance(one, _Struct) and isinstance(other, _Struct):
        return _Struct(
            {name: _merged(one.get(name, NO_TYPE), other.get(name, NO_TYPE)) for name in {**one, **other}}
        )
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0])]
    numbers = [_digits_of(data_type) for data_type in (one, other)]
    if "double" in (one, other) and all(numbers):
        return "double"
    return f"decimal({max(numbers)},0)" if all(numbers) else "string"


def _digits_of(data_type: Any) -> int:
    """The digits of a type of numbers; 0 of another type."""
    if not isinstance(data_type, str):
        return 0
    if data_type.startswith("decimal"):
        return int(data_type[len("decimal(") :].partition(",")[0])
    return {"long": 20, "double": _MOST_DIGITS}.get(data_type, 0)


def _of_struct(merged: Any, nothing: str) -> FirstTypes:
    if not isinstance(merged, _Struct):
        raise Unclear(nothing, "empty")
    _check_struct(merged, "it")
    columns = {name: _ddl(kind) for name, kind in _in_order(merged)}
    return FirstTypes(
        [(name, kind) for name, kind in columns.items() if kind is not None],
        [name for name, kind in columns.items() if kind is None],
    )


def _in_order(struct: _Struct) -> list[tuple[str, Any]]:
    """The fields in the order in which Spark infers them: by name."""
    return sorted(struct.items())


def _check_struct(data_type: Any, where: str) -> None:
    if isinstance(data_type, list):
        _check_struct(data_type[0], where)
    if isinstance(data_type, _Struct):
        _check_names(list(data_type), where)
        for name, inner in data_type.items():
            _check_struct(inner, f"its field {_quoted(name)}")


def _check_names(names: Sequence[str], where: str) -> None:
    """Refuse names that do not tell columns apart, or that no line of text can hold."""
    spelt: dict[str, str] = {}
    for name in names:
        if not name.strip() or not name.isprintable():
            raise Unclear(f"{where} has a name that is empty, or cannot be printed: {_quoted(name)}")
        if len(name) > _LONGEST_NAME:
            raise Unclear(
                f"{where} has a name of {len(name):,} letters, and Spark reads {_LONGEST_NAME:,} at most"
            )
        if (other := spelt.get(name.lower())) is not None:
            raise Unclear(f"{where} names {_quoted(other)} and {_quoted(name)}, which are one column")
        spelt[name.lower()] = name


def _ddl(data_type: Any) -> str | None:
    """A type as DDL has it, without the parts that have no value; None if nothing has one."""
    if data_type == NO_TYPE:
        return None
    if isinstance(data_type, str):
        return data_type
    if isinstance(data_type, list):
        inner = _ddl(data_type[0])
        return None if inner is None else f"array<{inner}>"
    fields = [(name, kind) for name, inner in _in_order(data_type) if (kind := _ddl(inner)) is not None]
    return f"struct<{', '.join(f'{column_name(name)}: {kind}' for name, kind in fields)}>" if fields else None


def _sql(data_type: str) -> str:
    return _SQL.get(data_type, data_type)


def _quoted(name: str) -> str:
    shown = name if len(name) <= 40 else f"{name[:40]}…"
    return json.dumps(shown, ensure_ascii=not shown.isprintable())
