"""Canonical texts in MariaDB's and MySQL's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from partitions.reconcile.families import Family
from partitions.sources.database_types import ColumnType
from resources.reconcile.canonical.canonical_sql import CHECKSUM_DIGITS, CanonicalSql

_LOWEST_NORMAL, _LOWEST = "2.2250738585072014E-308", "POW(2E0, -1074)"
"""The lowest double with all its digits, and the lowest one."""


class MariaDbTexts(CanonicalSql):
    """Texts in the connection's character set, which is utf8mb4."""

    writes_whole_fractions: ClassVar[bool] = True

    def written(self, expression: str, type_: ColumnType, family: Family) -> str:
        """Return the text; a bit and a year are numbers."""
        match family:
            case "flag":
                return f"CASE WHEN {expression} + 0 = 1 THEN 'true' ELSE 'false' END"
            case "float":
                return _bits(f"({expression} + 0E0)")
            case "number" if type_.form == "whole":
                return f"CAST({expression} + 0 AS CHAR)"
            case "text":
                return f"CONVERT(CAST({expression} AS CHAR) USING utf8mb4)"
            case "bytes":
                return f"LOWER(HEX({expression}))"
        return f"CAST({expression} AS CHAR)"

    @override
    def array(self, expression: str, type_: ColumnType) -> str:
        """Raise: these databases have no arrays."""
        raise AssertionError(type_)

    def joined(self, texts: Sequence[str]) -> str:
        """Return the texts with CONCAT."""
        return f"CONCAT({', '.join(texts)})"

    def hashed(self, text: str, *, is_ascii: bool) -> str:
        """Return the MD5; MD5 reads the bytes of the text's own character set."""
        return f"MD5({text})" if is_ascii else f"MD5(CONVERT({text} USING utf8mb4))"

    def checksum(self, hash_: str) -> str:
        """Return the digits as a number."""
        return f"CAST(CONV(LEFT({hash_}, {CHECKSUM_DIGITS}), 16, 10) AS UNSIGNED)"


def _bits(double: str) -> str:
    """Return the 64 bits of a double in hexadecimal, which no function of the database tells.

    A power of two divides and multiplies a double exactly. LOG2 may be a little off: where it is, the
    quotient is below 1 or reaches 2.
    """
    size = f"ABS({double})"
    power = f"LEAST(1023, FLOOR(LOG2({size})))"
    quotient = f"({size} / POW(2E0, {power}))"
    off = f"(({quotient} >= 2) - ({quotient} < 1))"
    mantissa = f"CAST({quotient} / POW(2E0, {off}) * 4503599627370496E0 AS UNSIGNED)"
    normal = f"(CAST({power} + {off} + 1022 AS UNSIGNED) * 4503599627370496 + {mantissa})"
    bits = f"CASE WHEN {size} < {_LOWEST_NORMAL} THEN CAST({size} / {_LOWEST} AS UNSIGNED) ELSE {normal} END"
    sign = f"CASE WHEN {double} < 0 THEN 9223372036854775808 ELSE 0 END"
    # HEX takes a decimal, which the sum is, through a double.
    return f"LPAD(LOWER(HEX(CAST({bits} + {sign} AS UNSIGNED))), 16, '0')"


MARIADB_TEXTS = MariaDbTexts()
