"""Report a declared schema that changed after it was pinned: with Spark, or without it for a plan."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from partitions.ddl import Column, parse_ddl
from partitions.errors import SchemaError
from partitions.schema_types import type_text
from resources.sources.files.failures import schema_mismatch_error
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


def changed_schema_error(
    pinned_types: Mapping[str, str], declared: Mapping[str, str], data_names: Collection[str], dataflow: str
) -> SchemaError:
    """Return the error for a declared schema that differs from the pinned one.

    Args:
        pinned_types: the types of the pinned columns.
        declared: the types of the columns that are declared now.
        data_names: the pinned columns that no folder names.
        dataflow: the dataflow's name.
    """
    undeclared = [name for name in data_names if name not in declared]
    changed = [name for name in declared if pinned_types.get(name) != declared[name]] + undeclared
    differences = [f"{name} {declared[name]}" if name in declared else f"no {name}" for name in changed]
    pinned_columns = ", ".join(f"{name} {data_type}" for name, data_type in pinned_types.items())
    return schema_mismatch_error(
        f"source.schema: expected the pinned schema ({pinned_columns}), found a different one ("
        f"{', '.join(differences) or 'another order'})",
        "Restore it",
        dataflow,
        changed[0] if changed else None,
    )


def find_change_without_spark(declared: str, pinned: PinnedSchema, dataflow: str) -> SchemaError | None:
    """Return the error that a run in mode strict will raise for a declared schema.

    None if the schema is the pinned one, or if only Spark can compare them.
    """
    if declared == pinned.declared:
        return None
    pinned_types = {field["name"]: type_text(field["type"]) for field in json.loads(pinned.columns)["fields"]}
    declared_types = {
        column.name: _shown_as(column, pinned_types.get(column.name)) for column in parse_ddl(declared)
    }
    data_names = [name for name in pinned_types if name not in pinned.folders]
    if (
        list(declared_types.items()) == list(pinned_types.items())[: len(declared_types)]
        and set(data_names) <= declared_types.keys()
    ):
        return None
    return changed_schema_error(pinned_types, declared_types, data_names, dataflow)


def _shown_as(column: Column, pinned_type: str | None) -> str:
    """Return a declared type as it is shown; nested types are not compared and count as the pinned one."""
    name = _OTHER_NAMES.get(column.type, column.type)
    if name == "decimal":
        digits, scale = (*column.numbers, 10, 0)[:2] if not column.numbers else (*column.numbers, 0)[:2]
        return f"decimal({digits},{scale})"
    is_same = pinned_type is not None and pinned_type.partition("<")[0].partition(" ")[0] == name
    return pinned_type if is_same and pinned_type is not None else name
