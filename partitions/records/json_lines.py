"""JSON records: a pattern for records that a schema holds exactly, and a judge of all others.

A valid record is an object that ends its text, repeats no name at any depth, and holds values of its
columns' types. Spark's reader checks none of the three: it stops after the first value, takes the last of
two equal names, and truncates what is too long (docs/reference/files.md, Exact values).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from partitions.json_faults import explain_json_error
from partitions.records.forms import DECIMAL, INTEGER_BITS, NO_TYPE, WHOLE_BITS, TextOptions, Type
from partitions.records.json_decoding import (
    BLANK,
    DECODER,
    MAX_LEVELS,
    Members,
    Number,
    is_deeper,
    line_of,
    next_item_start,
    skip_blanks,
    type_of,
    value_start,
)
from partitions.records.json_fields import (
    HALF_LETTER,
    case_conflict_fault,
    depth_fault,
    escape_half_letters,
    half_letter_fault,
    names_fault,
    new_field_fault,
    repeated_name_fault,
    type_evidence,
)
from partitions.records.json_pattern import JsonPattern
from partitions.records.judge import (
    Fault,
    date_fault,
    is_between,
    no_known_field_fault,
    number_fault,
    sql_type_name,
    time_fault,
    whole_fault,
)

_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})
_DIGITS_OF_VARIANT = 38
_BREAK = re.compile(r"\r\n|\n|\r")
_BEGIN_OF_DOCUMENT = re.compile(r"\[\s*(?:\{|\Z)|\{\s*\Z")
"""The start of a document of several lines, or of an array: never the start of a one-line record."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_SECONDS = (-62_135_596_800, 253_402_300_799)
"""The first and last second of the years 1 to 9999, counted from 1970 in UTC."""


@dataclass(frozen=True)
class Verdict:
    """The result of checking a record against a schema.

    Attributes:
        fault: why it cannot be loaded; None if it can.
        unknown: dotted paths of fields that the schema lacks and that have a value.
    """

    fault: Fault | None = None
    unknown: tuple[str, ...] = ()


_SOUND = Verdict()
_TOO_DEEP = Verdict(Fault("expected a JSON object, found one that is nested too deeply"))


class JudgedRecord(NamedTuple):
    """A record with a fault, or with fields that the schema lacks.

    Attributes:
        number: its position in the document's array, from 1; None outside an array.
        text: its raw text.
        line: the line in which it begins, from 1.
        verdict: the result of its check.
    """

    number: int | None
    text: str
    line: int
    verdict: Verdict


@dataclass(frozen=True)
class JsonRule:
    """What a valid record looks like.

    Attributes:
        pattern: accepts only texts without a fault, but not all of them; :meth:`judge` decides about the
        others.
    """

    pattern: JsonPattern

    @classmethod
    def of(
        cls, schema: Mapping[str, Any] | None, takes_unknown: bool = False, options: TextOptions | None = None
    ) -> JsonRule:
        """Return the rule of a schema; the arguments are those of :class:`JsonPattern`."""
        return cls(JsonPattern(schema, takes_unknown, options or TextOptions()))

    def judge(self, text: str) -> Verdict:
        """Judge one record: a line, or an item of a document. A blank line has no fault."""
        if not text.strip("\ufeff" + BLANK):
            return _SOUND
        try:
            value, end = DECODER.raw_decode(text, value_start(text))
        except RecursionError:
            return _TOO_DEEP
        except json.JSONDecodeError as error:
            reason = f"found text that is not JSON ({explain_json_error(error)})"
            return Verdict(Fault(f"expected a JSON object, {reason}{_hint_of_document(text)}"))
        if text[end:].strip(BLANK):
            return Verdict(
                Fault(
                    f"expected one JSON object, found more behind its end (from character {skip_blanks(text, end) + 1} on)"
                )
            )
        if isinstance(value, list) and not isinstance(value, Members):
            return Verdict(Fault(f"expected a JSON object, found {type_of(value)}{_hint_of_document(text)}"))
        return self.judge_value(value)

    def judge_value(self, value: Any) -> Verdict:
        """Judge a record that :data:`DECODER` has decoded."""
        if not isinstance(value, Members):
            return Verdict(Fault(f"expected a JSON object, found {type_of(value)}"))
        unknown: list[str] = []
        schema = self.pattern.schema
        try:
            fault = (
                _any_fault(value, "") if schema is None else self._struct_fault(value, schema, "", unknown)
            )
        except RecursionError:
            return _TOO_DEEP
        if fault is None and unknown and not self.pattern.takes_unknown and is_deeper(value, MAX_LEVELS):
            fault = depth_fault(unknown[0])
        if fault is None and self.required_names and value and not self._has_known_name(value):
            fault = no_known_field_fault(
                self.required_names, [escape_half_letters(name) for name, _ in value]
            )
        return Verdict(fault, () if self.pattern.takes_unknown else tuple(unknown))

    @cached_property
    def required_names(self) -> Sequence[str]:
        """Names of which a record needs at least one, unless it is empty.

        Where unknown fields are ignored, a record without a known field would load nothing.
        """
        schema = self.pattern.schema if self.pattern.takes_unknown else None
        return [] if schema is None else [column["name"] for column in schema["fields"]]

    def _has_known_name(self, value: Members) -> bool:
        return any(name in self.required_names for name, _ in value)

    def judge_lines(self, text: str) -> list[JudgedRecord]:
        """Return the lines of a text that have a fault or unknown fields."""
        lines = enumerate(_BREAK.split(text), 1)
        items = (JudgedRecord(None, line, number, self.judge(line)) for number, line in lines)
        return [item for item in items if item.verdict != _SOUND]

    def judge_document(self, text: str) -> tuple[Fault | None, list[JudgedRecord]]:
        """Judge a document: an object or an array of objects, with nothing after its end.

        Returns:
            The fault of the document as a whole, or None; and the records before it that have a fault or
            unknown fields.
        """
        begin = value_start(text)
        items: list[JudgedRecord] = []
        if begin == len(text):
            return None, items
        is_array = text[begin] == "["
        position, number = skip_blanks(text, begin + 1 if is_array else begin), 0
        try:
            while not (is_array and text.startswith("]", position)):
                value, end = DECODER.raw_decode(text, position)
                number += 1
                verdict = self.judge_value(value)
                if verdict != _SOUND:
                    place = number if is_array else None
                    items.append(JudgedRecord(place, text[position:end], line_of(text, position), verdict))
                position = skip_blanks(text, end)
                if not is_array:
                    break
                position = next_item_start(text, position)
        except RecursionError:
            return Fault(
                f"record {number + 1}: expected a JSON object, found one that is nested too deeply"
            ), items
        except json.JSONDecodeError as error:
            reason = f"expected a JSON document, found text that is not JSON ({explain_json_error(error, over_lines=True)})"
            return Fault(reason), items
        end = position + 1 if is_array else position
        if text[end:].strip(BLANK):
            is_of_lines = "\n" not in text[:end].strip(BLANK)
            how = "for one object per line" if is_of_lines else "write one object per line and"
            hint = "" if is_array or number > 1 else f": {how} set format: ndjson"
            line = line_of(text, skip_blanks(text, end))
            return Fault(f"expected one JSON document, found more behind its end in line {line}{hint}"), items
        return None, items

    def _struct_fault(
        self, value: Members, schema: Mapping[str, Any], above: str, unknown: list[str]
    ) -> Fault | None:
        fields = {column["name"]: column["type"] for column in schema["fields"]}
        members = [member for member in value if member[0] in fields] if self.pattern.takes_unknown else value
        if (repeated_name := repeated_name_fault(members, above)) is not None:
            return repeated_name
        spellings = {name.casefold(): name for name in fields}
        for name, item in value:
            if name in fields:
                if fault := self._fault(item, fields[name], f"{above}{name}", unknown):
                    return fault
            elif HALF_LETTER.search(name):
                return half_letter_fault(name, above)
            elif not self.pattern.takes_unknown and (fault := new_field_fault(name, item, above)):
                return fault
            elif not _has_no_value_inside(item):
                first = spellings.setdefault(name.casefold(), name)
                if first != name and not self.pattern.takes_unknown:
                    return case_conflict_fault(first, name, above)
                unknown.append(f"{above}{name}")
        return None

    def _fault(self, value: Any, data_type: Type, where: str, unknown: list[str]) -> Fault | None:
        if value is None:
            return None
        if data_type == NO_TYPE:
            unknown.extend([where] if _has_value(value) else ())
            return type_evidence(value, where).fault
        if isinstance(data_type, str):
            return _leaf_fault(value, data_type, where, self.pattern.options)
        kind = data_type["type"]
        if kind == "struct" and isinstance(value, Members):
            return self._struct_fault(value, data_type, f"{where}.", unknown)
        if kind == "array" and isinstance(value, list) and not isinstance(value, Members):
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
    """Return the remedy for a line that begins a multi-line document or an array; "" for any other line."""
    begins = _BEGIN_OF_DOCUMENT.match(text, value_start(text))
    return ": if each file is one document, set format: json" if begins else ""


def _has_no_value_inside(value: Any) -> bool:
    """Return whether an object or array contains no value at any depth; inference drops such a field."""
    if isinstance(value, Members):
        return all(_has_no_value_inside(item) for _, item in value)
    return isinstance(value, list) and all(_has_no_value_inside(item) for item in value)


def _has_value(value: Any) -> bool:
    """Return whether a value is, or contains, anything but null."""
    if isinstance(value, Members):
        return any(_has_value(item) for _, item in value)
    if isinstance(value, list):
        return any(map(_has_value, value))
    return value is not None


def _any_fault(value: Any, where: str) -> Fault | None:
    """Return why a variant cannot hold a value unchanged; None if it can.

    A variant refuses repeated names, and texts and numbers that it would change, at any depth.
    """
    if isinstance(value, Members):
        above = f"{where}." if where else ""
        inner = (_any_fault(item, f"{above}{name}") for name, item in value)
        return names_fault(value, above) or next((fault for fault in inner if fault is not None), None)
    if isinstance(value, list):
        return next((fault for item in value if (fault := _any_fault(item, where)) is not None), None)
    reason = _number_of_variant_fault(value) if isinstance(value, Number) else _text_fault(value)
    return None if reason is None else _misfit(where, "variant", reason, value)


def _number_of_variant_fault(text: str) -> str | None:
    if text in _SPECIAL:
        return "a word that is not a JSON number"
    digits = text.lstrip("-")
    return (
        number_fault(text, "double", TextOptions())
        if len(digits) > _DIGITS_OF_VARIANT or "e" in digits.lower()
        else None
    )


def _text_fault(value: Any) -> str | None:
    """Return why a text column cannot hold a value as it is written; None if it can."""
    if isinstance(value, Number):
        return "a word that is not a JSON number" if value in _SPECIAL else None
    if isinstance(value, str):
        return "an unpaired surrogate escape, which is not text" if HALF_LETTER.search(value) else None
    inner = (
        [item for _, item in value]
        if isinstance(value, Members)
        else value
        if isinstance(value, list)
        else ()
    )
    texts = (_text_fault(item) for item in inner if not isinstance(item, str) or isinstance(item, Number))
    return next((reason for reason in texts if reason is not None), None)


def _leaf_fault(value: Any, data_type: str, where: str, options: TextOptions) -> Fault | None:
    if data_type == "variant":
        return _any_fault(value, where)
    reason = _reason(value, data_type, options)
    return None if reason is None else _misfit(where, data_type, reason, value)


def _reason(value: Any, data_type: str, options: TextOptions) -> str | None:
    """Return a description of a value that a simple type cannot hold; None if it can."""
    is_number, is_text = isinstance(value, Number), isinstance(value, str) and not isinstance(value, Number)
    found_type = type_of(value)
    if data_type in INTEGER_BITS:
        if not is_number:
            return found_type
        is_whole = re.fullmatch(r"-?[0-9]+", value) is not None
        return whole_fault(value, data_type) if is_whole else "a number with a fraction or an exponent"
    if data_type in WHOLE_BITS:
        if not is_number and not (is_text and value in _SPECIAL):
            return found_type
        return None if value in _SPECIAL else number_fault(value, data_type, TextOptions())
    if DECIMAL.fullmatch(data_type):
        if is_number:
            return number_fault(value, data_type, TextOptions())
        if not is_text:
            return found_type
        return None if options.own_numbers else number_fault(value, data_type, TextOptions())
    if data_type == "boolean":
        return None if isinstance(value, bool) else found_type
    if data_type == "date":
        if not is_text:
            return found_type
        return None if options.own_dates else date_fault(value)
    if data_type in ("timestamp", "timestamp_ntz"):
        if is_number and data_type == "timestamp":
            return _seconds_fault(value)
        if not is_text:
            return found_type
        return None if options.own_times else time_fault(value, zoned=data_type == "timestamp")
    if data_type == "binary":
        return (None if _BASE64.fullmatch(value) else "text that is not base64") if is_text else found_type
    return _text_fault(value)


def _seconds_fault(text: str) -> str | None:
    """Return why a number is no time in seconds since 1970; None if it is one."""
    if re.fullmatch(r"-?[0-9]+", text) is None:
        return "a number with a fraction or an exponent, where seconds since 1970 are whole"
    if not is_between(text, *_SECONDS):
        return "a number that, as seconds since 1970, lies beyond the years 1 to 9999: for milliseconds declare the column as long"
    return None


def _misfit(where: str, data_type: Type, description: str, value: Any = None) -> Fault:
    text = escape_half_letters(value) if isinstance(value, str) else None
    return Fault(f"field {where}: expected {sql_type_name(data_type)}, found {description}", text)
