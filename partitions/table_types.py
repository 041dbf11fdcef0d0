"""Column types that the tables of a format cannot hold, so that no run can load such rows.

Does not belong here: which columns a table has, and what happens to others (:mod:`partitions.evolution`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

VARIANT = "variant"
_COLLATIONS = "__COLLATIONS"

_NEVER = ("interval", "time(")
_NOT_HELD: Mapping[str, tuple[str, ...]] = {
    "delta": _NEVER,
    "iceberg": (*_NEVER, VARIANT, "void"),
    "parquet": (*_NEVER, VARIANT, "void"),
}
"""By format: prefixes of type names in Spark's JSON."""


def can_hold(table_format: str, data_type: str) -> bool:
    """Return whether a format's tables can have a plain type, named as in Spark's JSON."""
    return not data_type.startswith(_NOT_HELD[table_format])


def first_unsupported_column(table_format: str, columns: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first column, and its type, that a format's tables cannot hold at any depth, or None.

    Args:
        table_format: as ``target.format`` names it.
        columns: in Spark's JSON form.
    """
    for field in columns["fields"]:
        data_type = _with_collation(field) if table_format == "delta" else None
        data_type = data_type or _not_held(table_format, field["type"])
        if data_type is not None:
            return field["name"], data_type
    return None


def _not_held(table_format: str, data_type: Any) -> str | None:
    if isinstance(data_type, str):
        return None if can_hold(table_format, data_type) else data_type
    if data_type["type"] == "struct":
        if all(
            field["type"] == "void" for field in data_type["fields"]
        ):  # which holds if there are no fields
            return "struct without a field that has a type"
        names = Counter(field["name"].casefold() for field in data_type["fields"])
        if twice := next(
            (field["name"] for field in data_type["fields"] if names[field["name"].casefold()] > 1), None
        ):
            return f"struct with two fields {twice}, whose names differ in upper and lower case at most"
        refused = first_unsupported_column(table_format, data_type)
        return refused and refused[1]
    parts = [data_type[name] for name in ("elementType", "keyType", "valueType") if name in data_type]
    if "void" in parts:  # a column without a type may be left out, and items of an array may not
        return "void"
    refusals = (_not_held(table_format, part) for part in parts)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _with_collation(field: Mapping[str, Any]) -> str | None:
    """Return the type of a column with collated texts at any depth; None for any other column.

    Spark keeps the collation beside the type, in the metadata.
    """
    collations = field.get("metadata", {}).get(_COLLATIONS, {})
    return next((f"string collate {name.rpartition('.')[2]}" for name in collations.values()), None)
