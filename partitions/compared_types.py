"""Which type a delete's condition compares, if a column has another one than when the delete was made.

The result must be that of the values themselves. A value that is converted and loses a part could match
by mistake, or no longer match; then there is no such type (docs/how-to/deleting-and-keeping.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partitions.schema_types import DECIMAL, widens

_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""Names of types in Spark's JSON, where they differ from those in its SQL."""


def compared_type(of_delete: str, of_rows: str) -> str | None:
    """Return the type as which a condition compares a column of the rows; None if none is exact.

    Args:
        of_delete: the column's type when the delete was made, in Spark's SQL.
        of_rows: its type in the rows.

    Returns:
        one of both: that of the delete only if it holds each value of the rows.
    """
    if of_delete == of_rows or _grows_exactly(of_delete, of_rows):
        return of_rows
    if _widens(of_rows, of_delete):
        return of_delete
    return of_rows if _have_same_parts(of_delete, of_rows) else None


def _grows_exactly(narrow: str, wide: str) -> bool:
    """Return whether a wider column holds what the narrower one held, and shows it as the same text.

    A float is not among them: a source that is read as double has other values, such as 0.1.
    """
    if not _widens(narrow, wide) or narrow == "float":
        return False
    before, after = DECIMAL.fullmatch(narrow), DECIMAL.fullmatch(wide)
    return not (before and after) or before.group(2) == after.group(2)


def _widens(narrow: str, wide: str) -> bool:
    return widens(_NAMES.get(narrow, narrow), _NAMES.get(wide, wide))


def _have_same_parts(of_delete: str, of_rows: str) -> bool:
    """Return whether a condition finds the same values in two nested types: fields may come and go."""
    (kind, parts), (other_kind, other_parts) = _nested(of_delete), _nested(of_rows)
    return (
        bool(kind)
        and kind == other_kind
        and all(
            compared_type(part, other_parts[name]) is not None
            for name, part in parts.items()
            if name in other_parts
        )
    )


def _nested(data_type: str) -> tuple[str, Mapping[str, str]]:
    """Return the kind of a nested type, and its parts' types by name; "" and none for any other type."""
    kind, opening, rest = data_type.partition("<")
    if not opening or kind not in ("array", "map", "struct") or not rest.endswith(">"):
        return "", {}
    parts = list(_split(rest[:-1]))
    if kind != "struct":
        return kind, {str(place): part for place, part in enumerate(parts)}
    fields = (part.partition(":") for part in parts)
    return kind, {name.casefold(): field_type for name, _, field_type in fields}


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that stand in no brackets."""
    part, depth = "", 0
    for sign in text:
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            yield part
            part = ""
        else:
            part += sign
    if part:
        yield part
