"""Canonical texts in Spark's SQL, for sessions in UTC and ANSI mode, as all sessions are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from partitions.reconcile.families import SEPARATOR, Family
from partitions.sources.database_types import ColumnType
from resources.reconcile.canonical.canonical_sql import CHECKSUM_DIGITS, CanonicalSql

_ELEMENT = "strandline_element"


class SparkTexts(CanonicalSql):
    """Texts by casts: in ANSI mode a decimal's has no exponent."""

    @override
    def written(self, expression: str, type_: ColumnType, family: Family) -> str:
        """Return the text; the bits of a double are those that Java tells."""
        match family:
            case "float":
                double = f"(CAST({expression} AS double) + 0D)"
                bits = f"java_method('java.lang.Double', 'doubleToLongBits', {double})"
                return f"lpad(lower(hex(CAST({bits} AS bigint))), 16, '0')"
            case "bytes":
                return f"lower(hex({expression}))"
            case "time":
                return self.short_fraction(f"CAST({expression} AS string)")
        return f"CAST({expression} AS string)"

    def array(self, expression: str, type_: ColumnType) -> str:
        """Return the lengths, then the texts of all elements in order."""
        first, lengths, flat = expression, list[str](), expression
        for number in range(type_.dimensions):
            lengths.append(f"coalesce(array_size({first}), 0)")
            first = f"get({first}, 0)"
            flat = f"flatten({flat})" if number else flat
        element = self.value_text(_ELEMENT, replace(type_, dimensions=0))
        elements = f"array_join(transform({flat}, {_ELEMENT} -> {element}), '{SEPARATOR}')"
        return f"concat(concat_ws('x', {', '.join(lengths)}), '[', {elements}, ']')"

    def joined(self, texts: Sequence[str]) -> str:
        """Return the texts with concat."""
        return f"concat({', '.join(texts)})"

    @override
    def hashed(self, text: str, *, is_ascii: bool) -> str:
        """Return the MD5."""
        return f"md5(CAST({text} AS binary))"

    def checksum(self, hash_: str) -> str:
        """Return the digits as a number."""
        return f"CAST(conv(left({hash_}, {CHECKSUM_DIGITS}), 16, 10) AS bigint)"


SPARK_TEXTS = SparkTexts()
