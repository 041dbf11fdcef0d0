"""Decide whether a text expresses a value that its column's type holds exactly, and if not, why."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from partitions.records.forms import DECIMAL, INTEGER_BITS, WHOLE_BITS, TextOptions, Type
from partitions.spelling import first_few

_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Spark's DDL type names, where they differ from its JSON type names."""

_MAX_NAMES = 5
"""The most names that a fault lists."""

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?( ?(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?)?",
    re.ASCII,
)
_NUMBER = re.compile(r"[-+]?(\d+)(\.\d*)?([eE][-+]?\d+)?|[-+]?\.\d+([eE][-+]?\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[-+]?[\d.]*\d,\d+", re.ASCII)
_OTHER_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\d{4}[./]\d{1,2}[./]\d{1,2}\b|\d{8}$", re.ASCII)
_CLOCK_ALONE = re.compile(r"T?\d{1,2}(:\d{2}(:\d{2}(\.\d+)?)?)?", re.ASCII)
_PART_OF_DATE = re.compile(r"\d{4}(-\d{1,2})?", re.ASCII)


class Fault(NamedTuple):
    """Why a record cannot be loaded.

    Attributes:
        reason: what was expected and what was found; it quotes no value.
        value: the raw text that does not fit; None if there is none to show.
        hint: a remedy, the same for every record with this fault; "" if there is none.
    """

    reason: str
    value: str | None = None
    hint: str = ""


def no_known_field_fault(expected: Sequence[str], names: Sequence[str]) -> Fault:
    """Return the fault of a record that has none of the schema's fields."""
    return Fault(
        f"expected fields of the schema ({first_few(expected, _MAX_NAMES)}), found only {first_few(list(dict.fromkeys(names)), _MAX_NAMES)}"
    )


def sql_type_name(data_type: Type) -> str:
    """Return a type as a user writes it."""
    return _SQL_NAMES.get(data_type, data_type) if isinstance(data_type, str) else str(data_type["type"])


def fault_of_text(text: str, data_type: Type, options: TextOptions) -> str | None:
    """Return why a text of a file is no exact value of a simple type; None if it is one.

    Args:
        text: one value without quotes; not the text of NULL.
        data_type: the column's type, in Spark's JSON form.
        options: how the definition reads texts.
    """
    if not isinstance(data_type, str):
        return None
    if data_type in INTEGER_BITS:
        return _integer_fault(text, data_type, options)
    if data_type in WHOLE_BITS:
        return None if text in options.specials else number_fault(text, data_type, options)
    if DECIMAL.fullmatch(data_type):
        return None if options.own_numbers else number_fault(text, data_type, options)
    if data_type == "boolean":
        return None if text.lower() in ("true", "false") else "other text than true or false"
    if data_type == "date":
        return None if options.own_dates else date_fault(text)
    if data_type in ("timestamp", "timestamp_ntz"):
        return None if options.own_times else time_fault(text, zoned=data_type == "timestamp")
    return None


def _integer_fault(text: str, data_type: str, options: TextOptions) -> str | None:
    if re.fullmatch(r"[-+]?[0-9]+", text) is None:
        if _NUMBER.fullmatch(text):
            return "a number with a fraction or an exponent"
        return "other text"
    if options.inferred and (leading := _inference_fault(text)):
        return leading
    return whole_fault(text, data_type)


def _inference_fault(text: str) -> str | None:
    """Return why inference takes a number for text; None if it does not."""
    digits = text.lstrip("-")
    if digits.startswith("+"):
        return "a number with a plus sign, which is text where types are inferred: declare source.schema"
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return "a number with a leading zero, which is text where types are inferred: declare the type in source.schema"
    return None


def whole_fault(text: str, data_type: str) -> str | None:
    """Return why a whole number, as it is written, does not fit an integer type; None if it does."""
    half = 2 ** (INTEGER_BITS[data_type] - 1)
    return None if is_between(text, -half, half - 1) else "a number beyond its range"


def is_between(text: str, lowest: int, highest: int) -> bool:
    """Return whether a whole number, as it is written, lies between two bounds, both inclusive.

    Args:
        text: any number of digits, optionally after a sign.
        lowest: the lower bound.
        highest: the upper bound.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > max(len(str(abs(lowest))), len(str(abs(highest)))):
        return False  # Python refuses to parse an integer of thousands of digits
    return lowest <= (-int(digits) if text.startswith("-") else int(digits)) <= highest


def number_fault(text: str, data_type: str, options: TextOptions) -> str | None:
    """Return why a ``float``, ``double`` or decimal cannot hold a number's text; None if it can.

    Whole numbers and decimals must be exact; other fractions are held as the nearest value.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        if _DECIMAL_COMMA.fullmatch(text.strip()):
            return "a number with a decimal comma, which a decimal holds if options.locale names a country that writes it so"
        return "other text"
    if options.inferred:
        if leading := _inference_fault(text):
            return leading
        if match[3] and match[2] is None:
            return "a number with an exponent and without a fraction, which is text where types are inferred"
    if decimal := DECIMAL.fullmatch(data_type):
        return _decimal_fault(text, int(decimal[1]), int(decimal[2]))
    nearest_value = float(text)
    if data_type == "float":
        try:
            nearest_value = struct.unpack("f", struct.pack("f", nearest_value))[0]
        except OverflowError:
            nearest_value = float("inf")
    if nearest_value in (float("inf"), float("-inf")):
        return "a number beyond its range"
    is_whole = match[1] is not None and not (match[2] or "").strip(".") and match[3] is None
    if is_whole and Decimal(match[0]) != Decimal(nearest_value):
        return f"a whole number of more digits than a {data_type} holds exactly"
    return None


def _decimal_fault(text: str, precision: int, scale: int) -> str | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return "other text"
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if number == 0:
        return None
    while digits[-1] == 0 and len(digits) > 1:
        digits, exponent = digits[:-1], exponent + 1
    if -exponent > scale:
        return f"a number with more than {scale} digits after the point"
    if len(digits) + exponent > precision - scale:
        return f"a number with more than {precision - scale} digits before the point"
    return None


def date_fault(text: str) -> str | None:
    """Return why a text is no complete date of the years 1 to 9999; None if it is one."""
    if match := _DATE.fullmatch(text):
        try:
            date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            return "a day that does not exist"
        return None
    if _DATE.match(text):
        return "more text after the date"
    return _other_time(text, "dateFormat")


def time_fault(text: str, *, zoned: bool) -> str | None:
    """Return why a text is no complete time of the years 1 to 9999, to the microsecond; None if it is one.

    Args:
        text: the value.
        zoned: whether the column is an instant, so that a text may name its offset.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        if _TIME.match(text):
            return "more text after the time, or a part of it is missing"
        return _other_time(text, "timestampFormat")
    day, clock, seconds, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}:{seconds or '00'}")
    except ValueError:
        return "a time that does not exist"
    if fraction and fraction[6:].strip("0"):
        return "a time with more than 6 digits of a second"
    if offset and not zoned:
        return "a time with an offset, which a timestamp_ntz does not hold"
    if offset and seconds is None:
        return "a time with an offset and without seconds, which Spark does not read"
    if offset and offset.strip()[0] in "+-":
        hours, minutes = int(offset.strip()[1:3]), int(offset.strip()[3:].strip(":") or 0)
        if minutes > 59 or hours * 60 + minutes > 18 * 60:
            return "a time with an impossible offset"
        shift = timedelta(hours=hours, minutes=minutes)
        try:
            moment = moment - shift if offset.strip()[0] == "+" else moment + shift
        except OverflowError:
            return "a time that lies beyond the years 1 to 9999 in UTC"
    return None


def _other_time(text: str, option: str) -> str:
    """Describe a text that is neither a date nor a time in the expected form."""
    stripped = text.strip()
    if (_CLOCK_ALONE.fullmatch(stripped) and ":" in stripped) or stripped.startswith("T"):
        return "a time of day without a date"
    if _PART_OF_DATE.fullmatch(stripped):
        return "a part of a date"
    if _OTHER_DATE.match(stripped):
        return f"a date in another form, which options.{option} names"
    return "other text"
