"""JSON records: a pattern of those that a schema holds exactly, and a judge of all others (docs/reference/files.md, Exact values).

A record is an object. Its end is proved, no name stands in it twice at any depth, and each value is of its column's type. Spark's reader sees
none of the three: it stops at the end of the first value, takes the last of two names, and cuts what is too long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from partitions.json_faults import in_plain_words
from partitions.records.forms import DECIMAL, INTEGER_BITS, NO_TYPE, WHOLE_BITS, Reading, Type
from partitions.records.json_decoding import (
    BLANK,
    DECODER,
    MOST_LEVELS,
    Members,
    Number,
    begin_of,
    behind_item,
    is_deeper,
    line_of,
    skip_blanks,
    type_of,
)
from partitions.records.json_fields import (
    HALF,
    escaped,
    first_look,
    half_name,
    in_two_cases,
    name_twice,
    names_fault,
    new_field_fault,
    too_deep,
)
from partitions.records.json_pattern import JsonPattern
from partitions.records.judge import (
    Fault,
    date_fault,
    is_between,
    number_fault,
    shown,
    time_fault,
    whole_fault,
    without_known_fields,
)

_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})
_DIGITS_OF_VARIANT = 38
_BREAK = re.compile(r"\r\n|\n|\r")
_BEGIN_OF_DOCUMENT = re.compile(r"\[\s*(?:\{|\Z)|\{\s*\Z")
"""No record of one line begins so."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_SECONDS = (-62_135_596_800, 253_402_300_799)
"""Of the years 1 to 9999, since 1970 in UTC."""


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
_TOO_DEEP = Judgement(Fault("expected a JSON object, found one that is nested too deeply"))


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
        pattern: of texts that :meth:`judge` finds no fault with; it leaves out some of them.
    """

    pattern: JsonPattern

    @classmethod
    def of(
        cls, schema: Mapping[str, Any] | None, takes_unknown: bool = False, reading: Reading | None = None
    ) -> JsonRule:
        """Return the rule of a schema; the arguments are those of :class:`JsonPattern`."""
        return cls(JsonPattern(schema, takes_unknown, reading or Reading()))

    def judge(self, text: str) -> Judgement:
        """Judge one record: a line, or an item of a document; a blank line is none, and is no fault."""
        if not text.strip("\ufeff" + BLANK):
            return _SOUND
        try:
            value, end = DECODER.raw_decode(text, begin_of(text))
        except RecursionError:
            return _TOO_DEEP
        except json.JSONDecodeError as error:
            why = f"found text that is none ({in_plain_words(error)})"
            return Judgement(Fault(f"expected a JSON object, {why}{_hint_of_document(text)}"))
        if text[end:].strip(BLANK):
            return Judgement(
                Fault(
                    f"expected one JSON object, found more behind its end (from character {skip_blanks(text, end) + 1} on)"
                )
            )
        if isinstance(value, list) and not isinstance(value, Members):
            return Judgement(
                Fault(f"expected a JSON object, found {type_of(value)}{_hint_of_document(text)}")
            )
        return self.judge_value(value)

    def judge_value(self, value: Any) -> Judgement:
        """Judge a record that :data:`DECODER` has decoded."""
        if not isinstance(value, Members):
            return Judgement(Fault(f"expected a JSON object, found {type_of(value)}"))
        unknown: list[str] = []
        schema = self.pattern.schema
        try:
            fault = (
                _any_fault(value, "") if schema is None else self._struct_fault(value, schema, "", unknown)
            )
        except RecursionError:
            return _TOO_DEEP
        if fault is None and unknown and not self.pattern.takes_unknown and is_deeper(value, MOST_LEVELS):
            fault = too_deep(unknown[0])
        if fault is None and self.names_to_have and value and not self._has_known_name(value):
            fault = without_known_fields(self.names_to_have, [escaped(name) for name, _ in value])
        return Judgement(fault, () if self.pattern.takes_unknown else tuple(unknown))

    @cached_property
    def names_to_have(self) -> Sequence[str]:
        """The fields of which a record must have one, unless it has none at all: where others are left out, nothing of it would be loaded."""
        schema = self.pattern.schema if self.pattern.takes_unknown else None
        return [] if schema is None else [column["name"] for column in schema["fields"]]

    def _has_known_name(self, value: Members) -> bool:
        return any(name in self.names_to_have for name, _ in value)

    def judge_lines(self, text: str) -> list[Item]:
        """Judge the lines of a text, and return those that have a fault or unknown fields."""
        lines = enumerate(_BREAK.split(text), 1)
        items = (Item(None, line, number, self.judge(line)) for number, line in lines)
        return [item for item in items if item.judgement != _SOUND]

    def judge_document(self, text: str) -> tuple[Fault | None, list[Item]]:
        """Judge a document: an object, or an array of objects, and nothing behind its end.

        Returns:
            Why it cannot be read as a whole, if it cannot; and the records up to there that have a fault or unknown fields.
        """
        begin = begin_of(text)
        items: list[Item] = []
        if begin == len(text):
            return None, items
        is_array = text[begin] == "["
        position, number = skip_blanks(text, begin + 1 if is_array else begin), 0
        try:
            while not (is_array and text.startswith("]", position)):
                value, end = DECODER.raw_decode(text, position)
                number += 1
                judgement = self.judge_value(value)
                if judgement != _SOUND:
                    place = number if is_array else None
                    items.append(Item(place, text[position:end], line_of(text, position), judgement))
                position = skip_blanks(text, end)
                if not is_array:
                    break
                position = behind_item(text, position)
        except RecursionError:
            return Fault(
                f"record {number + 1}: expected a JSON object, found one that is nested too deeply"
            ), items
        except json.JSONDecodeError as error:
            why = f"expected a JSON document, found text that is none ({in_plain_words(error, over_lines=True)})"
            return Fault(why), items
        end = position + 1 if is_array else position
        if text[end:].strip(BLANK):
            is_of_lines = "\n" not in text[:end].strip(BLANK)
            how = "for an object a line" if is_of_lines else "write each on a line of its own, and"
            hint = "" if is_array or number > 1 else f": {how} set format: ndjson"
            line = line_of(text, skip_blanks(text, end))
            return Fault(f"expected one JSON document, found more behind its end in line {line}{hint}"), items
        return None, items

    def _struct_fault(
        self, value: Members, schema: Mapping[str, Any], above: str, unknown: list[str]
    ) -> Fault | None:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        members = [member for member in value if member[0] in fields] if self.pattern.takes_unknown else value
        if (twice := name_twice(members, above)) is not None:
            return twice
        spelt = {name.casefold(): name for name in fields}
        for name, item in value:
            if name in fields:
                if fault := self._fault(item, fields[name], f"{above}{name}", unknown):
                    return fault
            elif HALF.search(name):
                return half_name(name, above)
            elif not self.pattern.takes_unknown and (fault := new_field_fault(name, item, above)):
                return fault
            elif not _is_hollow(item):
                first = spelt.setdefault(name.casefold(), name)
                if first != name and not self.pattern.takes_unknown:
                    return in_two_cases(first, name, above)
                unknown.append(f"{above}{name}")
        return None

    def _fault(self, value: Any, data_type: Type, where: str, unknown: list[str]) -> Fault | None:
        if value is None:
            return None
        if data_type == NO_TYPE:
            unknown.extend([where] if _has_value(value) else ())
            return first_look(value, where).fault
        if isinstance(data_type, str):
            return _leaf_fault(value, data_type, where, self.pattern.reading)
        kind = data_type["type"]
        if kind == "struct" and isinstance(value, Members):
            return self._struct_fault(value, data_type, f"{where}.", unknown)
        if kind == "array" and isinstance(value, list):
            faults = (self._fault(item, data_type["elementType"], where, unknown) for item in value)
            return next((fault for fault in faults if fault is not None), None)
        if kind == "map" and isinstance(value, Members):
            inner = (self._fault(item, data_type["valueType"], where, unknown) for _, item in value)
            return names_fault(value, f"{where}.") or next(
                (fault for fault in inner if fault is not None), None
            )
        if kind == "udt":
            return self._fault(value, data_type["sqlType"], where, unknown)
        return _misfit(where, data_type, type_of(value))


def _hint_of_document(text: str) -> str:
    """Return the remedy for a line with which a document of several lines, or an array of objects, begins; "" for any other."""
    begins = _BEGIN_OF_DOCUMENT.match(text, begin_of(text))
    return ": for one document a file set format: json" if begins else ""


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


def _any_fault(value: Any, where: str) -> Fault | None:
    """Why a variant does not hold all of a value: a name that stands twice in an object, at any depth, or a text or a number that it would change."""
    if isinstance(value, Members):
        above = f"{where}." if where else ""
        inner = (_any_fault(item, f"{above}{name}") for name, item in value)
        return names_fault(value, above) or next((fault for fault in inner if fault is not None), None)
    if isinstance(value, list):
        return next((fault for item in value if (fault := _any_fault(item, where)) is not None), None)
    why = _number_of_variant_fault(value) if isinstance(value, Number) else _text_fault(value)
    return None if why is None else _misfit(where, "variant", why, value)


def _number_of_variant_fault(text: str) -> str | None:
    if text in _SPECIAL:
        return "a word that is no number of JSON"
    digits = text.lstrip("-")
    return (
        number_fault(text, "double", Reading())
        if len(digits) > _DIGITS_OF_VARIANT or "e" in digits.lower()
        else None
    )


def _text_fault(value: Any) -> str | None:
    """Why a text does not hold a value as it is written."""
    if isinstance(value, Number):
        return "a word that is no number of JSON" if value in _SPECIAL else None
    if isinstance(value, str):
        return "half of a letter that has two escapes, which is no text" if HALF.search(value) else None
    inner = (
        [item for _, item in value]
        if isinstance(value, Members)
        else value
        if isinstance(value, list)
        else ()
    )
    texts = (_text_fault(item) for item in inner if not isinstance(item, str) or isinstance(item, Number))
    return next((why for why in texts if why is not None), None)


def _leaf_fault(value: Any, data_type: str, where: str, reading: Reading) -> Fault | None:
    if data_type == "variant":
        return _any_fault(value, where)
    why = _reason(value, data_type, reading)
    return None if why is None else _misfit(where, data_type, why, value)


def _reason(value: Any, data_type: str, reading: Reading) -> str | None:
    """What a value is, if a type without parts does not hold it."""
    is_number, is_text = isinstance(value, Number), isinstance(value, str) and not isinstance(value, Number)
    other = type_of(value)
    if data_type in INTEGER_BITS:
        if not is_number:
            return other
        is_whole = re.fullmatch(r"-?[0-9]+", value) is not None
        return whole_fault(value, data_type) if is_whole else "a number with a fraction or an exponent"
    if data_type in WHOLE_BITS:
        if not is_number:
            return other
        return None if value in _SPECIAL else number_fault(value, data_type, Reading())
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
        return (None if _BASE64.fullmatch(value) else "text that is not base64") if is_text else other
    return _text_fault(value)


def _seconds_fault(text: str) -> str | None:
    """Why a number is no time, counted in seconds since 1970."""
    if re.fullmatch(r"-?[0-9]+", text) is None:
        return "a number with a fraction or an exponent, where seconds since 1970 are whole"
    if not is_between(text, *_SECONDS):
        return "a number that, as seconds since 1970, lies beyond the years 1 to 9999: milliseconds are a column of type long"
    return None


def _misfit(where: str, data_type: Type, found: str, value: Any = None) -> Fault:
    text = escaped(value) if isinstance(value, str) else None
    return Fault(f"field {where}: expected {shown(data_type)}, found {found}", text)
