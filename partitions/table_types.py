"""Types of columns that tables of a format do not hold: rows with such a column can be loaded by no run.

Belongs here: which types these are. Does not belong here: which columns a table has, and what becomes of others (:mod:`partitions.evolution`).
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
"""By format: how the types begin in Spark's JSON."""


def holds(table_format: str, data_type: str) -> bool:
    """Return whether columns of a format's tables may have a plain type, as Spark's JSON names it."""
    return not data_type.startswith(_NOT_HELD[table_format])


def not_held(table_format: str, columns: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first column, and its type, that tables of a format do not hold at any depth; None if they hold all.

    Args:
        table_format: as ``target.format`` names it.
        columns: Spark's JSON of them.
    """
    for field in columns["fields"]:
        data_type = _with_collation(field) if table_format == "delta" else None
        data_type = data_type or _not_held(table_format, field["type"])
        if data_type is not None:
            return field["name"], data_type
    return None


def _not_held(table_format: str, data_type: Any) -> str | None:
    if isinstance(data_type, str):
        return None if holds(table_format, data_type) else data_type
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
        refused = not_held(table_format, data_type)
        return refused and refused[1]
    parts = [data_type[name] for name in ("elementType", "keyType", "valueType") if name in data_type]
    if "void" in parts:  # a column without a type may be left out, and items of an array may not
        return "void"
    refusals = (_not_held(table_format, part) for part in parts)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _with_collation(field: Mapping[str, Any]) -> str | None:
    """The type of a column that has texts with a collation at any depth, which Spark keeps beside the type; None of any other."""
    collations = field.get("metadata", {}).get(_COLLATIONS, {})
    return next((f"string collate {name.rpartition('.')[2]}" for name in collations.values()), None)
