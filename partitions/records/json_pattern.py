"""A pattern of the JSON records that a schema holds exactly, for Java's and Python's engines."""

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
    TextOptions,
    Type,
    concatenate_patterns,
    decimal_form,
    fraction_form,
)
from partitions.records.json_decoding import MemberOrder

_SPACE = r"[ \t\r\n]*+"
_LETTER = r"u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
"""An escaped character, or both halves of a surrogate pair: one half alone is no text."""
_STRING = rf'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|{_LETTER})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+"
_WHOLE = "(?:0|[1-9][0-9]{{0,{0}}}+)"
_NUMBER_OF_VARIANT = r"-?+(?:0|[1-9][0-9]{0,37}+)(?![0-9])(?:\.[0-9]++(?:[eE][-+]?+[0-9]{1,2}+)?+|[eE][-+]?+[0-9]{1,2}+)?+(?![0-9.eE])"
_NEXT = rf"{_SPACE}(?:,{_SPACE}(?=\")|(?=\}}))"
_NEXT_ITEM = rf"{_SPACE}(?:,{_SPACE}(?!\])|(?=\]))"
_END = r"(?![\s\S])"
_AS_DECLARED = MemberOrder((), {})
"""Members in schema order, for objects that the first record lacks; each name is still accepted once."""
_DEPTH = 2
"""The most nesting levels that the pattern follows inside a string column's value or an unknown value."""


@dataclass(frozen=True)
class JsonPattern:
    """The pattern of a schema's records.

    Attributes:
        schema: the columns, in Spark's JSON form; None: any object, whatever its names and types.
        takes_unknown: whether fields that the schema lacks may have values, which are then ignored.
        options: how the definition reads texts.
    """

    schema: Mapping[str, Any] | None
    takes_unknown: bool = False
    options: TextOptions = field(default_factory=TextOptions)

    @property
    def may_repeat_names(self) -> bool:
        """Whether the pattern accepts a repeated name even if it knows the order of names.

        It does in arrays of objects, in maps and in variants.
        """
        return self.schema is None or _may_repeat(self.schema)

    def line(self, names: MemberOrder | None = None) -> str:
        """Return the pattern of a whole line that is blank or holds one record.

        Args:
            names: the order of the members; each name is then accepted once. Without it, members may come
            in any order and number: a parser that refuses repeated names must check as well.
        """
        return rf"^\uFEFF?+{_SPACE}(?:{self._record(names)}{_SPACE})?+{_END}"

    def plain_line(self, names: MemberOrder) -> str | None:
        """Return the pattern of lines as most programs write them; None if the schema allows none.

        Java matches it in two thirds of the time of :meth:`line`. Such a line has the first name of
        ``names`` in each object, its members in that order, at most one space between tokens, and texts in
        text columns. :meth:`line` accepts all of them. None if a name may repeat, or ``names`` has fields
        that the schema lacks.
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
        first, *more_members = [
            f"{re.escape(_quoted(name))} ?: ?(?:{self._plain_value(fields[name], names.inner.get(name, _AS_DECLARED))}|null)"
            for name in order
        ]
        return (
            rf"\{{ ?{concatenate_patterns([first, *(f'(?:, ?{member})?+' for member in more_members)])} ?\}}"
        )

    def _plain_value(self, data_type: Type, names: MemberOrder) -> str:
        if isinstance(data_type, Mapping) and data_type["type"] == "struct":
            return self._plain_object(data_type, names)
        if data_type == "string":
            return _STRING
        value = self._value(data_type, names)
        is_instant = data_type == "timestamp" and not self.options.own_times
        return f'(?:"{PLAIN_INSTANT}"|{value})' if is_instant else value

    def document(self, names: MemberOrder | None = None) -> str:
        """Return the pattern of a whole document: one record, or an array of records.

        ``names`` is as for :meth:`line`.
        """
        record = self._record(names)
        return rf"^\uFEFF?+{_SPACE}(?:(?:{record}|\[{_SPACE}(?:{record}{_NEXT_ITEM})*+\]){_SPACE})?+{_END}"

    def _record(self, names: MemberOrder | None) -> str:
        return (
            _any_object(_DEPTH, _NUMBER_OF_VARIANT)
            if self.schema is None
            else self._object(self.schema, names)
        )

    def _object(self, schema: Mapping[str, Any], names: MemberOrder | None) -> str:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        columns = "|".join(re.escape(_quoted(name)) for name in fields)
        value = _any_value(_DEPTH, _NUMBER) if self.takes_unknown else rf"(?:\{{{_SPACE}\}}|\[{_SPACE}\])"
        unknown_member = (
            rf'{f"(?!(?:{columns}))" if fields else ""}"[^"\\\x00-\x1f]*+"{_SPACE}:{_SPACE}{value}'
        )
        if names is None:
            members = [self._member(name, data_type, None) for name, data_type in fields.items()]
            return rf"\{{{_SPACE}(?:(?:{'|'.join([*members, unknown_member])}){_NEXT})*+\}}"
        order = dict.fromkeys([*(name for name in names.order if name in fields), *fields])
        more_members = f"(?:{unknown_member}{_NEXT})*+" if set(names.order) - fields.keys() else ""
        members_once = [
            f"(?:{self._member(name, fields[name], names.inner.get(name, _AS_DECLARED))}{_NEXT})?+{more_members}"
            for name in order
        ]
        return rf"\{{{_SPACE}{more_members}{concatenate_patterns(members_once)}\}}"

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
        return _value_form(data_type, self.options)


def begins_with_one_of(names: Iterable[str]) -> str:
    """Return the pattern of objects whose first member has one of the names, without escaped letters."""
    members = "|".join(re.escape(_quoted(name)) for name in names)
    return rf"^\uFEFF?+{_SPACE}\{{{_SPACE}(?:{members}){_SPACE}:"


def _value_form(data_type: str, options: TextOptions) -> str:
    """Return the pattern of the JSON values that a simple type holds exactly, except null."""
    if data_type == NO_TYPE:
        return rf"(?:\{{{_SPACE}\}}|\[{_SPACE}\])"
    if data_type in INTEGER_BITS:
        return f"-?+{_WHOLE.format(SURE_DIGITS[data_type] - 1)}(?![.eE0-9])"
    if data_type in WHOLE_BITS:
        special = "NaN|-?Infinity"
        return f'(?:{fraction_form(data_type, "-?+", _WHOLE)}(?![.eE0-9])|{special}|"(?:{special})")'
    if match := DECIMAL.fullmatch(data_type):
        number = decimal_form(int(match[1]), int(match[2]), "-?+", _WHOLE)
        text = _STRING if options.own_numbers else f'"{number}"'
        return f"(?:{number}(?![.eE0-9])|{text})"
    if data_type == "boolean":
        return "(?:true|false)"
    if data_type == "date":
        return _STRING if options.own_dates else f'"{DATE}"'
    if data_type == "timestamp":
        text = _STRING if options.own_times else f'"{INSTANT}"'
        return f"(?:{text}|-?+(?:0|[1-9][0-9]{{0,9}}+)(?![.eE0-9]))"
    if data_type == "timestamp_ntz":
        return _STRING if options.own_times else f'"{LOCAL_TIME}"'
    if data_type == "binary":
        return '"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?+"'
    return _any_value(_DEPTH, _NUMBER_OF_VARIANT if data_type == "variant" else _NUMBER)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _any_value(depth: int, number: str) -> str:
    scalar = f"(?:{_STRING}|{number}|true|false|null)"
    if depth == 0:
        return scalar
    items = rf"\[{_SPACE}(?:{_any_value(depth - 1, number)}{_NEXT_ITEM})*+\]"
    return f"(?:{scalar}|{_any_object(depth, number)}|{items})"


def _any_object(depth: int, number: str) -> str:
    return rf"\{{{_SPACE}(?:{_STRING}{_SPACE}:{_SPACE}{_any_value(depth - 1, number)}{_NEXT})*+\}}"


def _may_repeat(data_type: Type, *, inside: bool = False) -> bool:
    """Return whether the pattern of a type cannot exclude repeated names.

    That is so in objects inside arrays, in maps, and in values that are read as text.
    """
    if isinstance(data_type, str):
        return data_type == "variant"
    kind = data_type["type"]
    if kind == "struct":
        return inside or any(_may_repeat(column["type"]) for column in data_type["fields"])
    return kind == "map" or _may_repeat(
        data_type.get("elementType", data_type.get("sqlType", "")), inside=True
    )
