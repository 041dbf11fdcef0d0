"""Report a declared schema that changed after it was pinned: with Spark, or without it for a plan."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from partitions.ddl import Column, parse_ddl
from partitions.errors import SchemaError
from partitions.schema_types import type_text
from resources.sources.files.failures import schema_mismatch
from resources.sources.files.pinned import PinnedSchema

_OTHER_NAMES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}


def changed_schema(
    was: Mapping[str, str], declared: Mapping[str, str], own: Collection[str], dataflow: str
) -> SchemaError:
    """Return the error for a declared schema that differs from the pinned one.

    Args:
        was: the types of the pinned columns.
        declared: the types of the columns that are declared now.
        own: the pinned columns that no folder names.
        dataflow: its name.
    """
    undeclared = [name for name in own if name not in declared]
    changed = [name for name in declared if was.get(name) != declared[name]] + undeclared
    differences = [f"{name} {declared[name]}" if name in declared else f"no {name}" for name in changed]
    pinned_columns = ", ".join(f"{name} {data_type}" for name, data_type in was.items())
    return schema_mismatch(
        f"source.schema: expected the schema that was pinned ({pinned_columns}), found another ({', '.join(differences) or 'another order'})",
        "Put it back",
        dataflow,
        changed[0] if changed else None,
    )


def change_without_spark(declared: str, pinned: PinnedSchema, dataflow: str) -> SchemaError | None:
    """Return the error that a run in mode strict will raise for a declared schema.

    None if the schema is the pinned one, or if only Spark can compare them.
    """
    if declared == pinned.declared:
        return None
    was = {field["name"]: type_text(field["type"]) for field in json.loads(pinned.columns)["fields"]}
    now = {column.name: _shown_as(column, was.get(column.name)) for column in parse_ddl(declared)}
    own = [name for name in was if name not in pinned.folders]
    if list(now.items()) == list(was.items())[: len(now)] and set(own) <= now.keys():
        return None
    return changed_schema(was, now, own, dataflow)


def _shown_as(column: Column, was: str | None) -> str:
    """Return a declared type as it is shown; nested types are not compared and count as the pinned one."""
    name = _OTHER_NAMES.get(column.type, column.type)
    if name == "decimal":
        digits, scale = (*column.numbers, 10, 0)[:2] if not column.numbers else (*column.numbers, 0)[:2]
        return f"decimal({digits},{scale})"
    is_same = was is not None and was.partition("<")[0].partition(" ")[0] == name
    return was if is_same and was is not None else name
