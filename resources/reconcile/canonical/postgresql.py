"""Canonical texts in PostgreSQL's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from partitions.reconcile.families import SEPARATOR, Family
from partitions.sources.database_types import ColumnType
from resources.reconcile.canonical.canonical_sql import CHECKSUM_DIGITS, CanonicalSql

_NAN = "7ff8000000000000"
"""The bits of NaN as Java writes them; a computed one may have others."""


class PostgreSqlTexts(CanonicalSql):
    """Texts as the session writes them, whose zone and style of dates the client sets."""

    def written(self, expression: str, type_: ColumnType, family: Family) -> str:
        """Return the text; a ``char`` keeps its blanks, which a cast would take."""
        match family:
            case "flag" if type_.form == "flag":
                return f"CASE WHEN {expression} = B'1' THEN 'true' ELSE 'false' END"
            case "float":
                # Adding zero takes the sign off a zero.
                bits = f"encode(float8send(CAST({expression} AS float8) + 0), 'hex')"
                return f"CASE WHEN CAST({expression} AS float8) = 'NaN' THEN '{_NAN}' ELSE {bits} END"
            case "text" if type_.form == "plain":
                return f"concat({expression})"
            case "bytes":
                return f"encode({expression}, 'hex')"
            case "instant":
                return f"CAST({expression} AT TIME ZONE 'UTC' AS text)"
        return f"CAST({expression} AS text)"

    def array(self, expression: str, type_: ColumnType) -> str:
        """Return the lengths, then the texts of all elements in order."""
        lengths = [
            f"coalesce(array_length({expression}, {number + 1}), 0)" for number in range(type_.dimensions)
        ]
        element = self.value_text("element", replace(type_, dimensions=0))
        elements = (
            f"coalesce((SELECT string_agg({element}, '{SEPARATOR}' ORDER BY place)"  # noqa: S608 - names are quoted
            f" FROM unnest({expression}) WITH ORDINALITY AS elements (element, place)), '')"
        )
        dimensions = f"coalesce(array_ndims({expression}), {type_.dimensions})"
        return f"concat_ws('x', {', '.join(lengths)}, nullif({dimensions}, {type_.dimensions})) || '[' || {elements} || ']'"

    def joined(self, texts: Sequence[str]) -> str:
        """Return the texts with ``||``."""
        return f"({' || '.join(f'({text})' if text.startswith('CASE') else text for text in texts)})"

    def hashed(self, text: str, *, is_ascii: bool) -> str:
        """Return the MD5; in a database of another encoding than UTF-8, too."""
        return f"md5({text})" if is_ascii else f"md5(convert_to({text}, 'UTF8'))"

    def checksum(self, hash_: str) -> str:
        """Return the digits as a bit string, and that as a number."""
        return f"('x' || left({hash_}, {CHECKSUM_DIGITS}))::bit({CHECKSUM_DIGITS * 4})::bigint"


POSTGRESQL_TEXTS = PostgreSqlTexts()
