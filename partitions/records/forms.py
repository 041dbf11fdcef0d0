"""Patterns of the texts that a type holds exactly, for Java's and Python's regular expressions alike.

A pattern accepts only texts that Spark reads as exactly the value that they say; it may leave out some, which :mod:`partitions.records.judge`
decides about. Quantifiers are possessive, so that matching a text takes time in proportion to its length, and no stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partitions.records.options import by_lower_name

Type = str | Mapping[str, Any]
"""A type in Spark's JSON form of a schema: ``long``, ``decimal(10,2)``, or a struct, an array or a map."""

NO_TYPE = "void"
"""Of a field that had no value in any record: what has one there is unknown, so far."""

DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

INTEGER_BITS: Mapping[str, int] = {"byte": 8, "short": 16, "integer": 32, "long": 64}

SURE_DIGITS: Mapping[str, int] = {"byte": 2, "short": 4, "integer": 9, "long": 18}
"""As many digits always fit."""

WHOLE_BITS: Mapping[str, int] = {"float": 24, "double": 53}
"""Whole numbers of as many bits are exact in a type of fractions."""

_SURE_WHOLE: Mapping[str, int] = {"float": 7, "double": 15}
_SURE_EXPONENT: Mapping[str, str] = {"float": "[12]?[0-9]", "double": "[0-9]{1,2}+"}
_SURE_PLACES: Mapping[str, int] = {"float": 8, "double": 200}
"""Digits before the point of a number that is no larger than the type's largest, also times ten to a sure exponent."""

_YEAR = r"(?!0000)[0-9]{4}"
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
DATE = rf"{_YEAR}-{_DAY}"
_MINUTES = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":[0-5][0-9](?:\.[0-9]{1,6}+0*+)?+"
_ZONE = r"(?:Z| ?+(?:UTC|GMT)| ?+[+-](?:0[0-9]|1[0-7])(?::?+[0-5][0-9])?+)"
LOCAL_TIME = rf"{DATE}(?:[T ]{_MINUTES}(?:{_SECONDS})?+)?+"
INSTANT = rf"(?!0001-01-01|9999-12-31){DATE}(?:[T ]{_MINUTES}(?:{_SECONDS}{_ZONE}?+)?+)?+"
"""Not of the first day and the last of the calendar, on which an offset decides whether the instant has a year of four digits.

Spark reads an offset behind seconds only."""

PLAIN_INSTANT = (
    r"[1-9][0-9][0-9][0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{1,6}+)?+(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])?+"
)
"""Most instants, matched sooner than by :data:`INSTANT`: with seconds, up to the 28th of a month, from the year 1000 on."""

_DIGITS_OF_SECONDS = r":[0-9]{2}(?:\.[0-9]{1,6}+0*+)?+"
_DIGITS_OF_ZONE = r"(?:Z| ?+(?:UTC|GMT)| ?+[+-][0-9]{2}(?::?+[0-9]{2})?+)"
DATE_SHAPE = f"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}"
LOCAL_TIME_SHAPE = rf"{DATE_SHAPE}(?:[T ][0-9]{{2}}:[0-9]{{2}}(?:{_DIGITS_OF_SECONDS})?+)?+"
INSTANT_SHAPE = rf"{DATE_SHAPE}(?:[T ][0-9]{{2}}:[0-9]{{2}}(?:{_DIGITS_OF_SECONDS}{_DIGITS_OF_ZONE}?+)?+)?+"
"""Shapes alone: nothing is missing or stands behind, but whether there is such a day or hour a cast must tell."""
WHOLE_SHAPE = "-?+(?:0|[1-9][0-9]*+)"
SIGNED_WHOLE_SHAPE = "[-+]?+[0-9]++"
NUMBER_SHAPE = r"[-+]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+"
"""Numbers of any size: whether a type holds them a cast must tell."""


@dataclass(frozen=True)
class Reading:
    """What a definition says of texts.

    Attributes:
        own_dates: whether an option names the form of dates, which Spark then holds texts against.
        own_times: the same of timestamps.
        own_numbers: whether an option names a locale, in which decimals are written.
        inferred: whether the types were inferred, so that a text that inference takes for no number is none either.
        null: the text that stands for NULL beside the empty one.
        specials: the texts of fractions that are no number: not a number, and both infinities.
    """

    own_dates: bool = False
    own_times: bool = False
    own_numbers: bool = False
    inferred: bool = False
    null: str = ""
    specials: tuple[str, str, str] = ("NaN", "Inf", "-Inf")

    @classmethod
    def of(cls, options: Mapping[str, Any], *, inferred: bool = False) -> Reading:
        """Return what the options of a reader say; their names count in any case."""
        names = by_lower_name(options)
        return cls(
            own_dates="dateformat" in names,
            own_times=bool(names.keys() & {"timestampformat", "timestampntzformat"}),
            own_numbers="locale" in names,
            inferred=inferred,
            null=names.get("nullvalue", ""),
            specials=(
                names.get("nanvalue", "NaN"),
                names.get("positiveinf", "Inf"),
                names.get("negativeinf", "-Inf"),
            ),
        )


def in_a_row(patterns: Sequence[str], between: str = "") -> str:
    """Return the pattern of what stands in a row; no part may need another one to try again.

    Java takes stack for each part of a pattern, but for those of a group that is over: groups keep that low, also of thousands of parts.
    """
    size = max(1, math.isqrt(len(patterns)))
    groups = (between.join(patterns[start : start + size]) for start in range(0, len(patterns), size))
    return between.join(f"(?>{group})" for group in groups)


def lacks_part_of_date(form: str) -> bool:
    """Return whether the form of a date or a time, in Spark's letters, leaves a year, a month or a day out, which would be filled in."""
    letters = set(re.sub(r"'[^']*'", "", form))
    return not (letters & set("yu") and (letters & {"D"} or (letters & set("ML") and "d" in letters)))


def fraction_form(type_name: str, sign: str, whole: str, *, inferred: bool = False) -> str:
    """Return the pattern of numbers that a ``float`` or ``double`` holds: whole ones that are exact, others as the nearest.

    Args:
        type_name: ``float`` or ``double``.
        sign: the pattern of a sign.
        whole: that of the digits before the point, for a number of places: ``{0}`` stands for the places behind the first.
        inferred: whether the type was inferred: then ``3E5``, without a fraction, is text.
    """
    places, exponent = _SURE_PLACES[type_name], _SURE_EXPONENT[type_name]
    exact = whole.format(_SURE_WHOLE[type_name] - 1)
    near = whole.format(places - 1)
    power = f"[eE][-+]?+{exponent}"
    alone = "" if inferred else f"|{power}"
    return f"{sign}(?:{near}(?:\\.[0-9]++(?:{power})?+{alone})|{exact})"


def decimal_form(precision: int, scale: int, sign: str, whole: str) -> str:
    """Return the pattern of numbers that a decimal holds without losing a digit."""
    before = whole.format(precision - scale - 1) if precision > scale else "0"
    behind = f"(?:\\.[0-9]{{1,{scale}}}+0*+)?+" if scale else "(?:\\.0++)?+"
    return f"{sign}{before}{behind}"


def text_form(data_type: Type, reading: Reading) -> str | None:
    """Return the pattern of the whole texts of a file that a type without parts holds; None if it holds any text, or has parts."""
    if not isinstance(data_type, str):
        return None
    whole = "(?:0|[1-9][0-9]{{0,{0}}}+)" if reading.inferred else "[0-9]{{1,{0}}}+"
    if data_type in INTEGER_BITS:
        places = SURE_DIGITS[data_type]
        return f"-?+{whole.format(places - 1)}" if reading.inferred else f"[-+]?+[0-9]{{1,{places}}}+"
    if data_type in WHOLE_BITS:
        near = "(?:0|[1-9][0-9]{{0,{0}}}+)" if reading.inferred else "[0-9]{{1,{0}}}+"
        numbers = fraction_form(
            data_type, "-?+" if reading.inferred else "[-+]?+", near, inferred=reading.inferred
        )
        return f"(?:{numbers}|{'|'.join(map(re.escape, reading.specials))})"
    if match := DECIMAL.fullmatch(data_type):
        if reading.own_numbers:
            return None
        precision, scale = int(match[1]), int(match[2])
        digits = "(?:0|[1-9][0-9]{{0,{0}}}+)" if reading.inferred else "(?:0*+[1-9][0-9]{{0,{0}}}+|0++)"
        return decimal_form(precision, scale, "-?+" if reading.inferred else "[-+]?+", digits)
    if data_type == "boolean":
        return "(?:[tT][rR][uU][eE]|[fF][aA][lL][sS][eE])"
    if data_type == "date":
        return None if reading.own_dates else DATE
    if data_type in ("timestamp", "timestamp_ntz"):
        return None if reading.own_times else INSTANT if data_type == "timestamp" else LOCAL_TIME
    return None
