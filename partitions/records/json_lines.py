"""JSON records: a pattern of those that a schema holds exactly, and a judge of all others (docs/guide-files.md, Exact values).

A record is an object. Its end is proved, no name stands in it twice at any depth, and each value is of its column's type. Spark's reader sees
none of the three: it stops at the end of the first value, takes the last of two names, and cuts what is too long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from partitions.json_types import json_type
from partitions.records.forms import (
    _SURE_DIGITS,
    DATE,
    DECIMAL,
    INSTANT,
    INTEGER_BITS,
    LOCAL_TIME,
    NO_TYPE,
    WHOLE_BITS,
    Reading,
    Type,
    decimal_form,
    fraction_form,
)
from partitions.records.judge import Fault, date_fault, number_fault, shown, time_fault, whole_fault

_BLANK = " \t\r\n"
_BLANKS = re.compile(r"[ \t\r\n]*")
_SPACE = r"[ \t\r\n]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+"
_WHOLE = "(?:0|[1-9][0-9]{{0,{0}}}+)"
_SCALAR = f"(?:{_STRING}|{_NUMBER}|true|false|null)"
_NEXT = rf"{_SPACE}(?:,{_SPACE}(?=\")|(?=\}}))"
_NEXT_ITEM = rf"{_SPACE}(?:,{_SPACE}(?!\])|(?=\]))"
_END = r"(?![\s\S])"
_DEPTH = 2
"""Levels of objects and arrays inside of a text or an unknown value, that the pattern follows."""

LENIENT = frozenset(
    {
        "allowcomments",
        "allowunquotedfieldnames",
        "allowsinglequotes",
        "allownumericleadingzeros",
        "allowbackslashescapinganycharacter",
        "allowunquotedcontrolchars",
    }
)
"""Options of Spark's reader, in lower case, with which it takes text that is no JSON."""

_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})
_SECONDS = (-62_135_596_800, 253_402_300_799)
"""Of the years 1 to 9999, since 1970 in UTC."""


class Names(NamedTuple):
    """The members of an object in the order in which a writer puts them; ``inner`` holds those of objects inside, by name."""

    order: tuple[str, ...]
    inner: Mapping[str, Names]


@dataclass(frozen=True)
class Judgement:
    """What a record is, held against a schema.

    Attributes:
        fault: why it cannot be loaded; None if it can.
        unknown: fields that the schema lacks and that have a value, dotted.
    """

    fault: Fault | None = None
    unknown: tuple[str, ...] = ()


_SOUND = Judgement()


class Item(NamedTuple):
    """A record of a document that has a fault, or fields that the schema lacks.

    Attributes:
        number: of the record in its array, from 1; None if it stands alone.
        text: of the record.
        line: in which it begins, from 1.
        judgement: about it.
    """

    number: int | None
    text: str
    line: int
    judgement: Judgement


@dataclass(frozen=True)
class JsonRule:
    """What records must be.

    Attributes:
        schema: of the columns, in Spark's JSON form; None: any object, whatever its names and types.
        takes_unknown: whether fields that the schema lacks are no matter here.
        reading: what the definition says of texts.
    """

    schema: Mapping[str, Any] | None
    takes_unknown: bool = False
    reading: Reading = field(default_factory=Reading)

    @property
    def has_repeated_names(self) -> bool:
        """Whether :meth:`pattern` cannot tell that no name stands twice: in arrays of objects, in maps, in variants."""
        return self.schema is None or _may_repeat(self.schema)

    def pattern(self, names: Names | None = None) -> str:
        """Return the pattern of a whole line, blank or with one record.

        Args:
            names: the order of the members. With it, each name is accepted once. Without it, in any order and number: a parser that refuses
                a name that stands twice must look as well.
        """
        record = self.record_pattern(names)
        return rf"^\uFEFF?+{_SPACE}(?:{record}{_SPACE})?+{_END}"

    def document_pattern(self, names: Names | None = None) -> str:
        """Return the pattern of a whole document: one record, or an array of records."""
        record = self.record_pattern(names)
        return rf"^\uFEFF?+{_SPACE}(?:(?:{record}|\[{_SPACE}(?:{record}{_NEXT_ITEM})*+\]){_SPACE})?+{_END}"

    def record_pattern(self, names: Names | None = None) -> str:
        """Return the pattern of one record, without space around it."""
        if self.schema is None:
            return _object_of_any(_DEPTH)
        return self._object(self.schema, names)

    def judge(self, text: str) -> Judgement:
        """Judge one record: a line, or an item of a document; a blank line is none, and is no fault."""
        if not text.strip("\ufeff" + _BLANK):
            return _SOUND
        try:
            value, end = _DECODER.raw_decode(text, _begin(text))
        except RecursionError:
            return Judgement(Fault("expected a JSON object, found one that is nested too deeply"))
        except json.JSONDecodeError as error:
            return Judgement(
                Fault(
                    f"expected a JSON object, found text that is none ({error.msg}, character {error.pos + 1})"
                )
            )
        if text[end:].strip(_BLANK):
            return Judgement(
                Fault(
                    f"expected one JSON object, found more behind its end (from character {_skip(text, end) + 1} on)"
                )
            )
        return self.judge_value(value)

    def judge_value(self, value: Any) -> Judgement:
        """Judge a record that :data:`DECODER` has decoded."""
        if not isinstance(value, Members):
            return Judgement(Fault(f"expected a JSON object, found {type_of(value)}"))
        unknown: list[str] = []
        schema = self.schema
        fault = _repeated(value, "") if schema is None else self._struct_fault(value, schema, "", unknown)
        return Judgement(fault, () if self.takes_unknown else tuple(unknown))

    def judge_lines(self, text: str) -> list[Item]:
        """Judge the lines of a text, and return those that have a fault or unknown fields."""
        lines = enumerate(text.splitlines(), 1)
        items = (Item(None, line, number, self.judge(line)) for number, line in lines)
        return [item for item in items if item.judgement != _SOUND]

    def judge_document(self, text: str) -> tuple[Fault | None, list[Item]]:
        """Judge a document: an object, or an array of objects, and nothing behind its end.

        Returns:
            Why it cannot be read as a whole, if it cannot; and the records up to there that have a fault or unknown fields.
        """
        begin = _begin(text)
        items: list[Item] = []
        if begin == len(text):
            return None, items
        is_array = text[begin] == "["
        position, number = _skip(text, begin + 1 if is_array else begin), 0
        try:
            while not (is_array and text.startswith("]", position)):
                value, end = _DECODER.raw_decode(text, position)
                number += 1
                judgement = self.judge_value(value)
                if judgement != _SOUND:
                    place = number if is_array else None
                    items.append(Item(place, text[position:end], _line(text, position), judgement))
                position = _skip(text, end)
                if not is_array:
                    break
                position = _behind_item(text, position)
        except RecursionError:
            return Fault(
                f"record {number + 1}: expected a JSON object, found one that is nested too deeply"
            ), items
        except json.JSONDecodeError as error:
            why = f"expected a JSON document, found text that is none ({error.msg}, line {error.lineno}, column {error.colno})"
            return Fault(why), items
        end = position + 1 if is_array else position
        if text[end:].strip(_BLANK):
            hint = "" if is_array or number > 1 else ": for an object a line set format: ndjson"
            line = _line(text, _skip(text, end))
            return Fault(f"expected one JSON document, found more behind its end in line {line}{hint}"), items
        return None, items

    def _object(self, schema: Mapping[str, Any], names: Names | None) -> str:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        columns = "|".join(re.escape(_quoted(name)) for name in fields)
        value = _any(_DEPTH) if self.takes_unknown else rf"(?:\{{{_SPACE}\}}|\[{_SPACE}\])"
        other = rf'{f"(?!(?:{columns}))" if fields else ""}"[^"\\\x00-\x1f]*+"{_SPACE}:{_SPACE}{value}'
        if names is None:
            members = [self._member(name, data_type, None) for name, data_type in fields.items()]
            return rf"\{{{_SPACE}(?:(?:{'|'.join([*members, other])}){_NEXT})*+\}}"
        order = [name for name in names.order if name in fields]
        order += [name for name in fields if name not in order]
        others = f"(?:{other}{_NEXT})*+" if set(names.order) - fields.keys() else ""
        once = (
            f"(?:{self._member(name, fields[name], names.inner.get(name))}{_NEXT})?+{others}"
            for name in order
        )
        return rf"\{{{_SPACE}{others}{''.join(once)}\}}"

    def _member(self, name: str, data_type: Type, names: Names | None) -> str:
        return f"{re.escape(_quoted(name))}{_SPACE}:{_SPACE}(?:{self._value(data_type, names)}|null)"

    def _value(self, data_type: Type, names: Names | None) -> str:
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
        return value_form(data_type, self.reading)

    def _struct_fault(
        self, value: Members, schema: Mapping[str, Any], above: str, unknown: list[str]
    ) -> Fault | None:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        if (twice := _twice([member for member in value if member[0] in fields], above)) is not None:
            return twice
        for name, item in value:
            if name in fields:
                if fault := self._fault(item, fields[name], f"{above}{name}", unknown):
                    return fault
            elif not _is_hollow(item):
                unknown.append(f"{above}{name}")
        return None

    def _fault(self, value: Any, data_type: Type, where: str, unknown: list[str]) -> Fault | None:
        if value is None:
            return None
        if data_type == NO_TYPE:
            unknown.extend([where] if _has_value(value) else ())
            return None
        if isinstance(data_type, str):
            return _leaf_fault(value, data_type, where, self.reading)
        kind = data_type["type"]
        if kind == "struct" and isinstance(value, Members):
            return self._struct_fault(value, data_type, f"{where}.", unknown)
        if kind == "array" and isinstance(value, list):
            faults = (self._fault(item, data_type["elementType"], where, unknown) for item in value)
            return next((fault for fault in faults if fault is not None), None)
        if kind == "map" and isinstance(value, Members):
            inner = (self._fault(item, data_type["valueType"], where, unknown) for _, item in value)
            return _twice(value, f"{where}.") or next((fault for fault in inner if fault is not None), None)
        if kind == "udt":
            return self._fault(value, data_type["sqlType"], where, unknown)
        return _misfit(where, data_type, type_of(value))


def value_form(data_type: str, reading: Reading) -> str:
    """Return the pattern of the JSON values that a type without parts holds exactly, but for null."""
    if data_type == NO_TYPE:
        return rf"(?:\{{{_SPACE}\}}|\[{_SPACE}\])"
    if data_type in INTEGER_BITS:
        return f"-?+{_WHOLE.format(_SURE_DIGITS[data_type] - 1)}(?![.eE0-9])"
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
    return _STRING if data_type == "binary" else _any(_DEPTH)


class Members(list[tuple[str, Any]]):
    """The members of a JSON object, in their order, also if a name stands twice."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=Members, parse_int=_Number, parse_float=_Number, parse_constant=_Number
    )


_DECODER = _decoder()
DECODER = _DECODER
"""Decodes without a loss: objects as :class:`Members`, numbers as they are written."""


def first_names(text: str) -> Names | None:
    """Return the names of the first record in their order; None if it does not read, or has one of them twice.

    Args:
        text: the beginning of a file of lines, or of a document.
    """
    begin = _begin(text)
    if text.startswith("[", begin):
        begin = _skip(text, begin + 1)
    try:
        value, _ = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    return _names(value) if isinstance(value, Members) else None


def names_by_case(text: str) -> tuple[str, str, int | None]:
    """Return two names of an object that differ in upper and lower case only, and the line of the first such object, from 1.

    Raises:
        ValueError: there are none.
    """
    position = _begin(text)
    across: dict[str, str] = {}
    while position < len(text):
        if text[position] in "[,]":
            position = _skip(text, position + 1)
            continue
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if names := _in_two_cases(value, across):
            return *names, _line(text, position)
        position = _skip(text, end)
    raise ValueError("no two names differ in upper and lower case only")


def _in_two_cases(value: Any, spellings: dict[str, str]) -> tuple[str, str] | None:
    """Two names of an object, or of one inside, that differ in case only; ``spellings`` has the names seen so far, and gets those of this one."""
    if isinstance(value, list) and not isinstance(value, Members):
        return next((names for item in value if (names := _in_two_cases(item, {}))), None)
    if not isinstance(value, Members):
        return None
    for name, item in value:
        spelt = spellings.setdefault(name.casefold(), name)
        if spelt != name:
            return spelt, name
        if names := _in_two_cases(item, {}):
            return names
    return None


def type_of(value: Any) -> str:
    """Return the type of a decoded value in JSON's words."""
    if isinstance(value, _Number):
        return "a number"
    return json_type({}) if isinstance(value, Members) else json_type(value)


def _names(value: Members) -> Names | None:
    inner: dict[str, Names] = {}
    for name, item in value:
        if isinstance(item, Members) and (below := _names(item)) is not None:
            inner[name] = below
    order = tuple(name for name, _ in value)
    return Names(order, inner) if len(set(order)) == len(order) else None


def _begin(text: str) -> int:
    """Where the first value begins: behind a byte order mark and space."""
    return _skip(text, 1 if text.startswith("\ufeff") else 0)


def _skip(text: str, position: int) -> int:
    """The place of the first character from here on that is no space; the text's end if there is none."""
    match = _BLANKS.match(text, position)
    assert match is not None
    return match.end()


def _behind_item(text: str, position: int) -> int:
    """Return the place of the next item of an array, or of the bracket that closes it.

    Raises:
        JSONDecodeError: neither stands there.
    """
    if text.startswith(",", position):
        position = _skip(text, position + 1)
        if text.startswith("]", position):
            raise json.JSONDecodeError("Expecting value", text, position)
    elif not text.startswith("]", position):
        raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
    return position


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _any(depth: int) -> str:
    if depth == 0:
        return _SCALAR
    items = rf"\[{_SPACE}(?:{_any(depth - 1)}{_NEXT_ITEM})*+\]"
    return f"(?:{_SCALAR}|{_object_of_any(depth)}|{items})"


def _object_of_any(depth: int) -> str:
    return rf"\{{{_SPACE}(?:{_STRING}{_SPACE}:{_SPACE}{_any(depth - 1)}{_NEXT})*+\}}"


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


def _is_hollow(value: Any) -> bool:
    """Whether an object or array holds no value at any depth: an inferred schema lacks such a field."""
    if isinstance(value, Members):
        return all(_is_hollow(item) for _, item in value)
    return isinstance(value, list) and all(_is_hollow(item) for item in value)


def _has_value(value: Any) -> bool:
    """Whether a value, or one inside of it, is another than null."""
    if isinstance(value, Members):
        return any(_has_value(item) for _, item in value)
    if isinstance(value, list):
        return any(map(_has_value, value))
    return value is not None


def _twice(value: Sequence[tuple[str, Any]], above: str) -> Fault | None:
    seen: set[str] = set()
    for name, _ in value:
        if name in seen:
            return Fault(f"field {above}{name} stands twice in it")
        seen.add(name)
    return None


def _repeated(value: Any, above: str) -> Fault | None:
    """The fault of a name that stands twice in an object, at any depth."""
    if isinstance(value, Members):
        inner = (_repeated(item, f"{above}{name}.") for name, item in value)
        return _twice(value, above) or next((fault for fault in inner if fault is not None), None)
    if isinstance(value, list):
        return next((fault for item in value if (fault := _repeated(item, above)) is not None), None)
    return None


def _leaf_fault(value: Any, data_type: str, where: str, reading: Reading) -> Fault | None:
    why = _reason(value, data_type, reading)
    if why is None:
        return _repeated(value, f"{where}.") if data_type == "variant" else None
    return _misfit(where, data_type, why, value)


def _reason(value: Any, data_type: str, reading: Reading) -> str | None:
    """What a value is, if a type without parts does not hold it."""
    is_number, is_text = isinstance(value, _Number), isinstance(value, str) and not isinstance(value, _Number)
    other = type_of(value)
    if data_type in INTEGER_BITS:
        if not is_number:
            return other
        is_whole = re.fullmatch(r"-?[0-9]+", value) is not None
        return whole_fault(int(value), data_type) if is_whole else "a number with a fraction or an exponent"
    if data_type in WHOLE_BITS:
        if value in _SPECIAL:
            return None
        return number_fault(value, data_type, Reading()) if is_number else other
    if DECIMAL.fullmatch(data_type):
        if is_number:
            return number_fault(value, data_type, Reading())
        if not is_text:
            return other
        return None if reading.own_numbers else number_fault(value, data_type, Reading())
    if data_type == "boolean":
        return None if isinstance(value, bool) else other
    if data_type == "date":
        if not is_text:
            return other
        return None if reading.own_dates else date_fault(value)
    if data_type in ("timestamp", "timestamp_ntz"):
        if is_number and data_type == "timestamp":
            return _seconds_fault(value)
        if not is_text:
            return other
        return None if reading.own_times else time_fault(value, zoned=data_type == "timestamp")
    if data_type == "binary":
        return None if is_text else other
    return None


def _seconds_fault(text: str) -> str | None:
    """Why a number is no time, counted in seconds since 1970."""
    if re.fullmatch(r"-?[0-9]+", text) is None:
        return "a number with a fraction or an exponent, where seconds since 1970 are whole"
    if not _SECONDS[0] <= int(text) <= _SECONDS[1]:
        return "a number that, as seconds since 1970, lies beyond the years 1 to 9999: milliseconds are a column of type long"
    return None


def _misfit(where: str, data_type: Type, found: str, value: Any = None) -> Fault:
    text = value if isinstance(value, str) else None
    return Fault(f"field {where}: expected {shown(data_type)}, found {found}", text)
