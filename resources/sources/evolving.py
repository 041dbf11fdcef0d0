"""The pinned schema that follows its source: what it becomes, as the error that begins a slice again with it (docs/reference/schemas.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError, SchemaEvolved
from partitions.evolution import Evolution, SchemaChange, SchemaMode, evolve_schema
from partitions.schema_types import Schema
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FOLLOWS: tuple[SchemaMode, ...] = ("merge", "overwrite")
"""Modes in which the pinned schema follows the source."""


def follows(dataflow: Dataflow) -> bool:
    """Return whether the pinned schema of a dataflow follows its source."""
    return dataflow.target.schema_mode in FOLLOWS


def evolution_of(
    mode: SchemaMode, dataflow: str, pinned: PinnedSchema, incoming: StructType, where: str
) -> Evolution:
    """Return what a pinned schema becomes if the source comes with another one.

    Args:
        mode: of the target.
        dataflow: its name.
        pinned: the schema.
        incoming: the source's.
        where: the file or source, for people.

    Raises:
        SchemaError: the mode does not accept it.
    """
    try:
        return evolve_schema(json.loads(pinned.columns), as_schema(incoming), mode)
    except SchemaError as error:
        raise explained(error, mode, dataflow, where) from error


def check_free(dataflow: Dataflow, fields: Iterable[str], where: str) -> None:
    """Raise if a field would be a column of a name that loading gives to one of its own: its values would be lost without a word.

    Args:
        dataflow: that loads.
        fields: names of records' fields.
        where: the file or source, for people.

    Raises:
        SchemaError: reason ``incompatible_schema``.
    """
    added = dataflow.target.added
    taken = next((name for name in fields if name.casefold() in added), None)
    if taken is not None:
        raise SchemaError(
            f"{where}: expected other fields than {', '.join(added)}, which loading adds as columns, found {taken}. Have the source name it otherwise;"
            " or leave it out, by source.schema, and `unknown_fields: ignore` at the top level of the dataflow; or set target.origin_columns: false",
            reason="incompatible_schema",
            field=taken,
        )


def explained(error: SchemaError, mode: SchemaMode, dataflow: str, where: str) -> SchemaError:
    """Return what the rule says, with the place and what to do."""
    return SchemaError(
        f"{where}: {error.message}. schema_mode: {mode} accepts {ACCEPTED[mode]}. Mend the source;"
        " or keep what does not fit as JSON in a column of its own with `schema_mode: rescue`; or give source.schema types that hold all of it, and run the"
        " reset below, which empties the table and loads what is still at the source: rows of files that are gone do not come back",
        reason=error.reason,
        field=error.field,
        choices=(f"strandline state reset {dataflow} --replace --reason TEXT",),
    )


ACCEPTED: Mapping[SchemaMode, str] = {
    "strict": "no change",
    "merge": "new columns that may be NULL, columns that are missing, and types that are safely wider or narrower",
    "overwrite": "any columns",
    "rescue": "anything",
}
"""What a mode takes, in words."""


def changed(
    pinned: PinnedSchema, schema: Schema, changes: tuple[SchemaChange, ...], where: str
) -> SchemaEvolved:
    """Return the error that begins a slice again with a new schema.

    Args:
        pinned: the one before, whose folders and declaration stay.
        schema: the new columns.
        changes: what made them so.
        where: the file or source, for people.
    """
    listed = "; ".join(map(str, changes))
    return SchemaEvolved(
        f"the schema changes with {where}: {listed}",
        pinned=replace(pinned, columns=json.dumps(schema)).to_text(),
        changes=listed,
    )


def as_schema(struct: StructType) -> Schema:
    """Return a schema as plain values."""
    value: dict[str, Any] = struct.jsonValue()
    return value
