"""Patterns of the texts that a type holds exactly, for Java's and Python's regular expressions alike.

A pattern accepts only texts that Spark reads as exactly the value that they express. It may miss some,
which :mod:`partitions.records.judge` decides about. Quantifiers are possessive, so that matching takes
linear time and no stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partitions.records.options import with_lower_names

Type = str | Mapping[str, Any]
"""A type in Spark's JSON form of a schema: ``long``, ``decimal(10,2)``, or a struct, an array or a map."""

NO_TYPE = "void"
"""The type of a field that no record has had a value for yet."""

DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

INTEGER_BITS: Mapping[str, int] = {"byte": 8, "short": 16, "integer": 32, "long": 64}

SURE_DIGITS: Mapping[str, int] = {"byte": 2, "short": 4, "integer": 9, "long": 18}
"""The number of digits that always fits the type."""

WHOLE_BITS: Mapping[str, int] = {"float": 24, "double": 53}
"""The number of bits up to which whole numbers are exact in a floating-point type."""

_SURE_WHOLE: Mapping[str, int] = {"float": 7, "double": 15}
_SURE_EXPONENT: Mapping[str, str] = {"float": "[12]?[0-9]", "double": "[0-9]{1,2}+"}
_SURE_PLACES: Mapping[str, int] = {"float": 8, "double": 200}
"""Digits before the point that never exceed the type's largest value, even multiplied by ten to a sure exponent."""

_YEAR = r"(?!0000)[0-9]{4}"
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
DATE = rf"{_YEAR}-{_DAY}"
_MINUTES = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECONDS = r":[0-5][0-9](?:\.[0-9]{1,6}+0*+)?+"
_ZONE = r"(?:Z| ?+(?:UTC|GMT)| ?+[+-](?:0[0-9]|1[0-7])(?::?+[0-5][0-9])?+)"
LOCAL_TIME = rf"{DATE}(?:[T ]{_MINUTES}(?:{_SECONDS})?+)?+"
INSTANT = rf"(?!0001-01-01|9999-12-31){DATE}(?:[T ]{_MINUTES}(?:{_SECONDS}{_ZONE}?+)?+)?+"
"""Instants, except on the calendar's first and last day, where the offset decides whether the year has four digits.

Spark reads an offset after seconds only."""

PLAIN_INSTANT = (
    r"[1-9][0-9][0-9][0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{1,6}+)?+(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])?+"
)
"""Most instants, matched faster than by :data:`INSTANT`: with seconds, up to the 28th of a month, from the year 1000 on."""

_DIGITS_OF_SECONDS = r":[0-9]{2}(?:\.[0-9]{1,6}+0*+)?+"
_DIGITS_OF_ZONE = r"(?:Z| ?+(?:UTC|GMT)| ?+[+-][0-9]{2}(?::?+[0-9]{2})?+)"
DATE_SHAPE = f"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}"
LOCAL_TIME_SHAPE = rf"{DATE_SHAPE}(?:[T ][0-9]{{2}}:[0-9]{{2}}(?:{_DIGITS_OF_SECONDS})?+)?+"
INSTANT_SHAPE = rf"{DATE_SHAPE}(?:[T ][0-9]{{2}}:[0-9]{{2}}(?:{_DIGITS_OF_SECONDS}{_DIGITS_OF_ZONE}?+)?+)?+"
"""Complete dates and times by shape alone: a cast must tell whether the day or hour exists."""
WHOLE_SHAPE = "-?+(?:0|[1-9][0-9]*+)"
SIGNED_WHOLE_SHAPE = "[-+]?+[0-9]++"
NUMBER_SHAPE = r"[-+]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+"
"""Numbers of any size: a cast must tell whether the type holds them."""


@dataclass(frozen=True)
class TextOptions:
    """How a definition reads texts.

    Attributes:
        own_dates: whether an option gives the format of dates; Spark then checks the texts.
        own_times: whether an option gives the format of timestamps.
        own_numbers: whether an option names a locale, in which decimals are written.
        inferred: whether the types were inferred, so that a text must look like a number to inference,
        too.
        null: the text that stands for NULL beside the empty one.
        specials: the texts of not-a-number and of both infinities.
    """

    own_dates: bool = False
    own_times: bool = False
    own_numbers: bool = False
    inferred: bool = False
    null: str = ""
    specials: tuple[str, str, str] = ("NaN", "Inf", "-Inf")

    @classmethod
    def of(cls, options: Mapping[str, Any], *, inferred: bool = False) -> TextOptions:
        """Return the options that a reader's options describe; names count in any case."""
        names = with_lower_names(options)
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


def concatenate_patterns(patterns: Sequence[str], between: str = "") -> str:
    """Return one pattern that matches the given patterns in a row, without backtracking into one.

    Java takes stack for each part of a pattern, but not for parts of a finished group: groups keep the
    stack low, also for thousands of parts.
    """
    size = max(1, math.isqrt(len(patterns)))
    groups = (between.join(patterns[start : start + size]) for start in range(0, len(patterns), size))
    return between.join(f"(?>{group})" for group in groups)


def lacks_part_of_date(form: str) -> bool:
    """Return whether a date or time format, in Spark's letters, lacks the year, the month or the day.

    Spark would fill in the missing part.
    """
    letters = set(re.sub(r"'[^']*'", "", form))
    return not (letters & set("yu") and (letters & {"D"} or (letters & set("ML") and "d" in letters)))


def fraction_form(type_name: str, sign: str, whole: str, *, inferred: bool = False) -> str:
    """Return the pattern of numbers that a ``float`` or ``double`` holds.

    Whole numbers must be exact, others are held as the nearest value.

    Args:
        type_name: ``float`` or ``double``.
        sign: the pattern of a sign.
        whole: the pattern of the digits before the point; ``{0}`` stands for the number of digits after
        the first.
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


def text_form(data_type: Type, options: TextOptions) -> str | None:
    """Return the pattern of texts that a simple type holds exactly.

    None if the type holds any text, has parts, or leaves the check to Spark.
    """
    if not isinstance(data_type, str):
        return None
    whole = "(?:0|[1-9][0-9]{{0,{0}}}+)" if options.inferred else "[0-9]{{1,{0}}}+"
    if data_type in INTEGER_BITS:
        places = SURE_DIGITS[data_type]
        return f"-?+{whole.format(places - 1)}" if options.inferred else f"[-+]?+[0-9]{{1,{places}}}+"
    if data_type in WHOLE_BITS:
        near = "(?:0|[1-9][0-9]{{0,{0}}}+)" if options.inferred else "[0-9]{{1,{0}}}+"
        numbers = fraction_form(
            data_type, "-?+" if options.inferred else "[-+]?+", near, inferred=options.inferred
        )
        return f"(?:{numbers}|{'|'.join(map(re.escape, options.specials))})"
    if match := DECIMAL.fullmatch(data_type):
        if options.own_numbers:
            return None
        precision, scale = int(match[1]), int(match[2])
        digits = "(?:0|[1-9][0-9]{{0,{0}}}+)" if options.inferred else "(?:0*+[1-9][0-9]{{0,{0}}}+|0++)"
        return decimal_form(precision, scale, "-?+" if options.inferred else "[-+]?+", digits)
    if data_type == "boolean":
        return "(?:[tT][rR][uU][eE]|[fF][aA][lL][sS][eE])"
    if data_type == "date":
        return None if options.own_dates else DATE
    if data_type in ("timestamp", "timestamp_ntz"):
        return None if options.own_times else INSTANT if data_type == "timestamp" else LOCAL_TIME
    return None
