"""A pattern of the JSON records that a schema holds exactly, for Java's and Python's regular expressions alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partitions.records.forms import (
    DATE,
    DECIMAL,
    INSTANT,
    INTEGER_BITS,
    LOCAL_TIME,
    NO_TYPE,
    PLAIN_INSTANT,
    SURE_DIGITS,
    WHOLE_BITS,
    Reading,
    Type,
    decimal_form,
    fraction_form,
    in_a_row,
)
from partitions.records.json_decoding import MemberOrder

_SPACE = r"[ \t\r\n]*+"
_LETTER = r"u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
"""A letter by its number, or one by two halves: half of one is no text."""
_STRING = rf'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|{_LETTER})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+"
_WHOLE = "(?:0|[1-9][0-9]{{0,{0}}}+)"
_NUMBER_OF_VARIANT = r"-?+(?:0|[1-9][0-9]{0,37}+)(?![0-9])(?:\.[0-9]++(?:[eE][-+]?+[0-9]{1,2}+)?+|[eE][-+]?+[0-9]{1,2}+)?+(?![0-9.eE])"
_NEXT = rf"{_SPACE}(?:,{_SPACE}(?=\")|(?=\}}))"
_NEXT_ITEM = rf"{_SPACE}(?:,{_SPACE}(?!\])|(?=\]))"
_END = r"(?![\s\S])"
_AS_DECLARED = MemberOrder((), {})
"""The order of the schema, where the first record does not tell another: each name is accepted once all the same."""
_DEPTH = 2
"""Levels of objects and arrays inside of a text or an unknown value, that the pattern follows."""


@dataclass(frozen=True)
class JsonPattern:
    """The pattern of records of a schema.

    Attributes:
        schema: of the columns, in Spark's JSON form; None: any object, whatever its names and types.
        takes_unknown: whether fields that the schema lacks may have a value, and are no matter here.
        reading: what the definition says of texts.
    """

    schema: Mapping[str, Any] | None
    takes_unknown: bool = False
    reading: Reading = field(default_factory=Reading)

    @property
    def may_repeat_names(self) -> bool:
        """Whether the pattern accepts a name that stands twice, also in the order of names: in arrays of objects, in maps, in variants."""
        return self.schema is None or _may_repeat(self.schema)

    def line(self, names: MemberOrder | None = None) -> str:
        """Return the pattern of a whole line, blank or with one record.

        Args:
            names: the order of the members. With it, each name is accepted once. Without it, in any order and number: a parser that refuses
                a name that stands twice must look as well.
        """
        return rf"^\uFEFF?+{_SPACE}(?:{self._record(names)}{_SPACE})?+{_END}"

    def plain_line(self, names: MemberOrder) -> str | None:
        """Return the pattern of lines as most programs write them, which Java matches in two thirds of the time of :meth:`line`.

        Such a line holds a record with the first of its names, members in the order of ``names``, at most one space between two tokens, and texts in
        columns of text. What it accepts :meth:`line` accepts; None if a name may stand twice, or there are fields that the schema lacks.
        """
        if self.schema is None or self.may_repeat_names:
            return None
        fields = {column["name"] for column in self.schema["fields"]}
        if not fields or set(names.order) - fields:
            return None
        return f"^{self._plain_object(self.schema, names)}{_END}"

    def _plain_object(self, schema: Mapping[str, Any], names: MemberOrder) -> str:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        if not fields:
            return self._object(schema, names)
        order = dict.fromkeys([*(name for name in names.order if name in fields), *fields])
        first, *others = [
            f"{re.escape(_quoted(name))} ?: ?(?:{self._plain_value(fields[name], names.inner.get(name, _AS_DECLARED))}|null)"
            for name in order
        ]
        return rf"\{{ ?{in_a_row([first, *(f'(?:, ?{member})?+' for member in others)])} ?\}}"

    def _plain_value(self, data_type: Type, names: MemberOrder) -> str:
        if isinstance(data_type, Mapping) and data_type["type"] == "struct":
            return self._plain_object(data_type, names)
        if data_type == "string":
            return _STRING
        value = self._value(data_type, names)
        is_instant = data_type == "timestamp" and not self.reading.own_times
        return f'(?:"{PLAIN_INSTANT}"|{value})' if is_instant else value

    def document(self, names: MemberOrder | None = None) -> str:
        """Return the pattern of a whole document: one record, or an array of records; ``names`` as for :meth:`line`."""
        record = self._record(names)
        return rf"^\uFEFF?+{_SPACE}(?:(?:{record}|\[{_SPACE}(?:{record}{_NEXT_ITEM})*+\]){_SPACE})?+{_END}"

    def _record(self, names: MemberOrder | None) -> str:
        return (
            _object_of_any(_DEPTH, _NUMBER_OF_VARIANT)
            if self.schema is None
            else self._object(self.schema, names)
        )

    def _object(self, schema: Mapping[str, Any], names: MemberOrder | None) -> str:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        columns = "|".join(re.escape(_quoted(name)) for name in fields)
        value = _any(_DEPTH, _NUMBER) if self.takes_unknown else rf"(?:\{{{_SPACE}\}}|\[{_SPACE}\])"
        other = rf'{f"(?!(?:{columns}))" if fields else ""}"[^"\\\x00-\x1f]*+"{_SPACE}:{_SPACE}{value}'
        if names is None:
            members = [self._member(name, data_type, None) for name, data_type in fields.items()]
            return rf"\{{{_SPACE}(?:(?:{'|'.join([*members, other])}){_NEXT})*+\}}"
        order = dict.fromkeys([*(name for name in names.order if name in fields), *fields])
        others = f"(?:{other}{_NEXT})*+" if set(names.order) - fields.keys() else ""
        once = [
            f"(?:{self._member(name, fields[name], names.inner.get(name, _AS_DECLARED))}{_NEXT})?+{others}"
            for name in order
        ]
        return rf"\{{{_SPACE}{others}{in_a_row(once)}\}}"

    def _member(self, name: str, data_type: Type, names: MemberOrder | None) -> str:
        return f"{re.escape(_quoted(name))}{_SPACE}:{_SPACE}(?:{self._value(data_type, names)}|null)"

    def _value(self, data_type: Type, names: MemberOrder | None) -> str:
        if not isinstance(data_type, str):
            kind = data_type["type"]
            if kind == "struct":
                return self._object(data_type, names)
            if kind == "array":
                item = self._value(data_type["elementType"], None)
                return rf"\[{_SPACE}(?:(?:{item}|null){_NEXT_ITEM})*+\]"
            if kind == "map":
                item = self._value(data_type["valueType"], None)
                return rf"\{{{_SPACE}(?:{_STRING}{_SPACE}:{_SPACE}(?:{item}|null){_NEXT})*+\}}"
            return self._value(data_type["sqlType"], names)
        return _value_form(data_type, self.reading)


def begins_with_one_of(names: Iterable[str]) -> str:
    """Return the pattern of objects whose first member has one of these names, in the letters that JSON writes by default."""
    members = "|".join(re.escape(_quoted(name)) for name in names)
    return rf"^\uFEFF?+{_SPACE}\{{{_SPACE}(?:{members}){_SPACE}:"


def _value_form(data_type: str, reading: Reading) -> str:
    """Return the pattern of the JSON values that a type without parts holds exactly, but for null."""
    if data_type == NO_TYPE:
        return rf"(?:\{{{_SPACE}\}}|\[{_SPACE}\])"
    if data_type in INTEGER_BITS:
        return f"-?+{_WHOLE.format(SURE_DIGITS[data_type] - 1)}(?![.eE0-9])"
    if data_type in WHOLE_BITS:
        special = "NaN|-?Infinity"
        return f'(?:{fraction_form(data_type, "-?+", _WHOLE)}(?![.eE0-9])|{special}|"(?:{special})")'
    if match := DECIMAL.fullmatch(data_type):
        number = decimal_form(int(match[1]), int(match[2]), "-?+", _WHOLE)
        text = _STRING if reading.own_numbers else f'"{number}"'
        return f"(?:{number}(?![.eE0-9])|{text})"
    if data_type == "boolean":
        return "(?:true|false)"
    if data_type == "date":
        return _STRING if reading.own_dates else f'"{DATE}"'
    if data_type == "timestamp":
        text = _STRING if reading.own_times else f'"{INSTANT}"'
        return f"(?:{text}|-?+(?:0|[1-9][0-9]{{0,9}}+)(?![.eE0-9]))"
    if data_type == "timestamp_ntz":
        return _STRING if reading.own_times else f'"{LOCAL_TIME}"'
    if data_type == "binary":
        return '"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?+"'
    return _any(_DEPTH, _NUMBER_OF_VARIANT if data_type == "variant" else _NUMBER)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _any(depth: int, number: str) -> str:
    scalar = f"(?:{_STRING}|{number}|true|false|null)"
    if depth == 0:
        return scalar
    items = rf"\[{_SPACE}(?:{_any(depth - 1, number)}{_NEXT_ITEM})*+\]"
    return f"(?:{scalar}|{_object_of_any(depth, number)}|{items})"


def _object_of_any(depth: int, number: str) -> str:
    return rf"\{{{_SPACE}(?:{_STRING}{_SPACE}:{_SPACE}{_any(depth - 1, number)}{_NEXT})*+\}}"


def _may_repeat(data_type: Type, *, inside: bool = False) -> bool:
    """Whether names may stand twice in values of a type without the pattern telling: in the objects of arrays, in maps, in what is read as text."""
    if isinstance(data_type, str):
        return data_type == "variant"
    kind = data_type["type"]
    if kind == "struct":
        return inside or any(_may_repeat(column["type"]) for column in data_type["fields"])
    return kind == "map" or _may_repeat(
        data_type.get("elementType", data_type.get("sqlType", "")), inside=True
    )
