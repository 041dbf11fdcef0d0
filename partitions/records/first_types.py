"""Types that a first run gives to columns, inferred without Spark from the first records of files.

The rules are Spark's: a text that only looks like a number or a time is text, and a field without a value
has no type yet.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

from partitions.ddl import ddl_name
from partitions.json_faults import explain_json_error
from partitions.json_types import json_type
from partitions.plan import pluralize
from partitions.records.forms import NO_TYPE, TextOptions
from partitions.records.json_decoding import MAX_LEVELS, is_deeper
from partitions.records.judge import fault_of_text

_TEXT_TYPES = ("integer", "long", "double", "boolean", "date", "timestamp")
_READING = TextOptions(inferred=True)
_MAX_DIGITS = 38
_LONG = range(-(2**63), 2**63)
_LONGEST_NUMBER, _LONGEST_NAME = 1000, 50_000
"""The longest number, in digits, and name, in letters, that Spark's JSON parser accepts."""

_BLANK = "it holds blank lines alone"
_SQL = {"integer": "int", NO_TYPE: "void"}


class UnclearColumns(Exception):
    """The beginning of a file does not reveal its columns; the message says why.

    Attributes:
        effect: ``bad`` if a run does not load the file, ``empty`` if it has no record, ``long`` if only a
        run can tell.
    """

    def __init__(self, why: str, effect: Literal["bad", "empty", "long"] = "bad") -> None:
        """Store the reason and its effect."""
        super().__init__(why)
        self.effect = effect


@dataclass(frozen=True)
class FirstTypes:
    """The columns that the beginning of a file reveals.

    Attributes:
        columns: names and DDL types.
        valueless: columns that have no value, and so no type yet; not among ``columns``.
        texts: by column, the non-empty values of a text format.
        struct: the type of a JSON record; None of a text format.
    """

    columns: Sequence[tuple[str, str]]
    valueless: Sequence[str] = ()
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    struct: Any = field(default=None, repr=False, compare=False)


def merge_first_types(types: Sequence[FirstTypes]) -> FirstTypes:
    """Return the columns of several files of one format, each of the narrowest type for all values.

    Raises:
        UnclearColumns: names of two files differ in upper and lower case only.
    """
    structs = [of_file.struct for of_file in types]
    if None not in structs:
        return _columns_of_struct(reduce(_merge_types, structs), _BLANK)
    texts: dict[str, list[str]] = {}
    for of_file in types:
        for name, values in of_file.texts.items():
            texts.setdefault(name, []).extend(values)
    _check_names(list(texts), "their headers")
    return _of_texts(texts)


def _of_texts(texts: Mapping[str, Sequence[str]]) -> FirstTypes:
    return FirstTypes(
        [(name, _sql_type_name(type_of_texts(values))) for name, values in texts.items()], (), texts
    )


def type_of_texts(texts: Iterable[str]) -> str:
    """Return the narrowest type that holds all texts exactly; ``string`` if there is none, or no text."""
    values = [text for text in texts if text]
    if not values:
        return "string"
    data_type = next(
        (
            kind
            for kind in _TEXT_TYPES
            if all(fault_of_text(value, kind, _READING) is None for value in values)
        ),
        None,
    )
    if data_type in (None, "double"):
        digits = max(map(_digits, values))
        if digits <= _MAX_DIGITS:
            return f"decimal({digits},0)"
    return data_type or "string"


def _digits(text: str) -> int:
    bare = text.removeprefix("-")
    is_whole = bare.isascii() and bare.isdigit() and (bare == "0" or not bare.startswith("0"))
    return len(bare) if is_whole else _MAX_DIGITS + 1


def types_of_csv(text: str, separator: str) -> FirstTypes:
    """Return the columns of CSV text with a header.

    Args:
        text: whole lines, the header first.
        separator: the values' separator.

    Raises:
        UnclearColumns: there is no header, or its names do not tell the columns apart.
    """
    previous_limit = csv.field_size_limit(sys.maxsize)
    try:
        records = list(csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True))
    except csv.Error as error:
        raise UnclearColumns(f"its records do not read as CSV: {error}") from None
    finally:
        csv.field_size_limit(previous_limit)
    rows = [record for record in records if record]
    if not rows:
        raise UnclearColumns(_BLANK, "empty")
    names, rows = rows[0], rows[1:]
    _check_names(names, "its header")
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise UnclearColumns(
                f"its record {number} has {pluralize(len(row), 'value')}, its header {len(names)}"
            )
        if any("\n" in value or "\r" in value for value in row):
            raise UnclearColumns(
                f"a value of its record {number} spans several lines: set options: {{multiLine: true}}"
            )
    texts = {name: [row[place] for row in rows if row[place]] for place, name in enumerate(names)}
    return _of_texts(texts)


def types_of_lines(text: str) -> FirstTypes:
    """Return the fields of JSON objects, one a line.

    Raises:
        UnclearColumns: a line holds another value, or names of an object differ in upper and lower case
        only.
    """
    merged: Any = NO_TYPE
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        value = _parse_json(line, f"its line {number}")
        if not isinstance(value, _Object):
            raise UnclearColumns(f"its line {number} holds {_describe_value(value)}, expected an object")
        merged = _merge_types(merged, _type_of(value))
    return _columns_of_struct(merged, _BLANK)


def types_of_document(text: str) -> FirstTypes:
    """Return the fields of a JSON document: an object, or an array of objects.

    Raises:
        UnclearColumns: it is another value, is nested too deep, or names of an object differ in upper and
        lower case only.
    """
    if not text.strip():
        raise UnclearColumns(_BLANK, "empty")
    value = _parse_json(text, "it")
    merged: Any = NO_TYPE
    for number, record in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(record, _Object):
            where = f"element {number} of its array" if isinstance(value, list) else "it"
            raise UnclearColumns(f"{where} is {_describe_value(record)}, expected an object")
        merged = _merge_types(merged, _type_of(record))
    return _columns_of_struct(merged, "it holds no record")


class _Whole(str):
    """A whole number as it is written; parsing it takes time that grows with the square of its digits."""

    __slots__ = ()


class _Fraction(str):
    """A number with a fraction or an exponent, as it is written."""

    __slots__ = ()


class _Object(dict[str, Any]):
    """An object without a repeated name."""


class _Struct(dict[str, Any]):
    """The types of an object's fields, by name."""


def _parse_json(text: str, where: str) -> Any:
    try:
        value = json.loads(
            text,
            parse_int=_Whole,
            parse_float=_Fraction,
            parse_constant=_Fraction,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise UnclearColumns(f"{where} is nested more than {MAX_LEVELS} levels deep") from None
    except ValueError as error:
        raise UnclearColumns(f"{where} is not complete JSON: {explain_json_error(error)}") from None
    if is_deeper(value, MAX_LEVELS):
        raise UnclearColumns(f"{where} is nested more than {MAX_LEVELS} levels deep")
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> _Object:
    members = _Object(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {_quoted(twice)} occurs twice in an object")
    return members


def _describe_value(value: Any) -> str:
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
                raise UnclearColumns(
                    f"a number has {digits:,} digits, and Spark reads {_LONGEST_NUMBER:,} at most"
                )
            if digits < 19 or (digits == 19 and int(value) in _LONG):
                return "long"
            return f"decimal({digits},0)" if digits <= _MAX_DIGITS else "double"
        case _Fraction():
            return "double"
        case str():
            return "string"
        case list():
            element: Any = NO_TYPE
            for item in value:
                element = _merge_types(element, _type_of(item))
            return [element]
    return _Struct({name: _type_of(member) for name, member in value.items()})


def _merge_types(first_type: Any, second_type: Any) -> Any:
    """Return the type that holds values of both types; ``string`` if no other does."""
    if first_type == second_type or second_type == NO_TYPE:
        return first_type
    if first_type == NO_TYPE:
        return second_type
    if isinstance(first_type, _Struct) and isinstance(second_type, _Struct):
        return _Struct(
            {
                name: _merge_types(first_type.get(name, NO_TYPE), second_type.get(name, NO_TYPE))
                for name in {**first_type, **second_type}
            }
        )
    if isinstance(first_type, list) and isinstance(second_type, list):
        return [_merge_types(first_type[0], second_type[0])]
    numbers = [_type_digits(data_type) for data_type in (first_type, second_type)]
    if "double" in (first_type, second_type) and all(numbers):
        return "double"
    return f"decimal({max(numbers)},0)" if all(numbers) else "string"


def _type_digits(data_type: Any) -> int:
    """Return the digits of a number type; 0 for any other type."""
    if not isinstance(data_type, str):
        return 0
    if data_type.startswith("decimal"):
        return int(data_type[len("decimal(") :].partition(",")[0])
    return {"long": 20, "double": _MAX_DIGITS}.get(data_type, 0)


def _columns_of_struct(merged: Any, nothing: str) -> FirstTypes:
    if not isinstance(merged, _Struct):
        raise UnclearColumns(nothing, "empty")
    _check_struct(merged, "it")
    columns = {name: _ddl(kind) for name, kind in _sort_fields(merged)}
    return FirstTypes(
        [(name, kind) for name, kind in columns.items() if kind is not None],
        [name for name, kind in columns.items() if kind is None],
        struct=merged,
    )


def _sort_fields(struct: _Struct) -> list[tuple[str, Any]]:
    """Return the fields sorted by name, as Spark infers them."""
    return sorted(struct.items())


def _check_struct(data_type: Any, where: str) -> None:
    if isinstance(data_type, list):
        _check_struct(data_type[0], where)
    if isinstance(data_type, _Struct):
        _check_names(list(data_type), where)
        for name, inner in data_type.items():
            _check_struct(inner, f"its field {_quoted(name)}")


def _check_names(names: Sequence[str], where: str) -> None:
    """Raise UnclearColumns if names do not distinguish columns, or cannot be printed."""
    spellings: dict[str, str] = {}
    for name in names:
        if not name.strip() or not name.isprintable():
            raise UnclearColumns(f"{where} has a name that is empty, or cannot be printed: {_quoted(name)}")
        if len(name) > _LONGEST_NAME:
            raise UnclearColumns(
                f"{where} has a name of {len(name):,} letters, and Spark reads {_LONGEST_NAME:,} at most"
            )
        if (earlier := spellings.get(name.lower())) is not None:
            raise UnclearColumns(
                f"{where} names {_quoted(earlier)} and {_quoted(name)}, which are one column"
            )
        spellings[name.lower()] = name


def _ddl(data_type: Any) -> str | None:
    """Return a type as DDL without its valueless parts; None if it has no other part."""
    if data_type == NO_TYPE:
        return None
    if isinstance(data_type, str):
        return data_type
    if isinstance(data_type, list):
        inner = _ddl(data_type[0])
        return None if inner is None else f"array<{inner}>"
    fields = [(name, kind) for name, inner in _sort_fields(data_type) if (kind := _ddl(inner)) is not None]
    return f"struct<{', '.join(f'{ddl_name(name)}: {kind}' for name, kind in fields)}>" if fields else None


def _sql_type_name(data_type: str) -> str:
    return _SQL.get(data_type, data_type)


def _quoted(name: str) -> str:
    printable = name if len(name) <= 40 else f"{name[:40]}…"
    return json.dumps(printable, ensure_ascii=not printable.isprintable())
