"""Changes of a pinned schema that follows its source, raised as the error that restarts a slice.

See docs/reference/schemas.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError, SchemaEvolved
from partitions.evolution import Evolution, SchemaChange, SchemaMode, evolve_schema
from partitions.schema_types import Schema
from partitions.sources.definition import SourceDefinition
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FOLLOWS: tuple[SchemaMode, ...] = ("merge", "overwrite")
"""The schema modes in which the pinned schema follows the source."""


def follows(dataflow: Dataflow) -> bool:
    """Return whether the pinned schema of a dataflow follows its source."""
    return dataflow.target.schema_mode in FOLLOWS


def evolution_of(
    mode: SchemaMode,
    dataflow: str,
    source: SourceDefinition,
    pinned: PinnedSchema,
    incoming: StructType,
    where: str,
) -> Evolution:
    """Return the change of a pinned schema that an incoming schema requires.

    Args:
        mode: the target's schema mode.
        dataflow: the dataflow's name.
        source: its source, which decides what an operator can do.
        pinned: the schema.
        incoming: the source's schema.
        where: the file or source, for errors.

    Raises:
        SchemaError: the mode does not accept the change.
    """
    try:
        return evolve_schema(json.loads(pinned.columns), as_schema(incoming), mode)
    except SchemaError as error:
        raise explain_refusal(error, mode, dataflow, source, where) from error


def check_free(dataflow: Dataflow, fields: Iterable[str], where: str) -> None:
    """Raise SchemaError if a field has the name of a column that loading adds.

    The field's values would be lost silently.

    Args:
        dataflow: the dataflow that loads.
        fields: the names of records' fields.
        where: the file or source, for errors.

    Raises:
        SchemaError: reason ``incompatible_schema``.
    """
    added = dataflow.target.added
    reserved_name = next((name for name in fields if name.casefold() in added), None)
    if reserved_name is not None:
        leave_out = (
            "leave it out with source.schema and `unknown_fields: ignore` at the top level of the dataflow; or "
            if dataflow.source.takes_schema
            else ""
        )
        raise SchemaError(
            f"{where}: expected no field with the name of a column that Strandline adds ({', '.join(added)}), "
            f"found {reserved_name}. Rename it at the source; or {leave_out}set target.origin_columns: false",
            reason="incompatible_schema",
            field=reserved_name,
        )


def explain_refusal(
    error: SchemaError, mode: SchemaMode, dataflow: str, source: SourceDefinition, where: str
) -> SchemaError:
    """Return a schema error with its place, and with what to do about this source."""
    return SchemaError(
        f"{where}: {error.message}. schema_mode: {mode} accepts {ACCEPTED[mode]}. {'; or '.join(_remedies(source))}",
        reason=error.reason,
        field=error.field,
        choices=(f"strandline state reset {dataflow} --replace --reason TEXT",),
    )


def _remedies(source: SourceDefinition) -> Iterator[str]:
    """Yield what an operator can do about a refused change of this source."""
    yield "Fix the source"
    if source.record_support.rescue_refusal is None:
        yield "keep values that do not fit as JSON in the column _rescued_data with `schema_mode: rescue`"
    empties = "It empties the table and loads what the source still has"
    if source.takes_schema:
        yield (
            "declare types in source.schema that hold all values, and run the reset below."
            f" {empties}: rows of deleted files do not come back"
        )
    else:
        yield f"run the reset below. {empties}, with the types that it has now"


ACCEPTED: Mapping[SchemaMode, str] = {
    "strict": "no change",
    "merge": "new nullable columns, missing columns, and types that are safely wider or narrower",
    "overwrite": "any columns",
    "rescue": "anything",
}
"""The changes that a schema mode accepts, in words."""


def schema_evolved(
    pinned: PinnedSchema, schema: Schema, changes: tuple[SchemaChange, ...], where: str
) -> SchemaEvolved:
    """Return the error that restarts a slice with a new schema.

    Args:
        pinned: the previous schema, whose folders and declaration stay.
        schema: the new columns.
        changes: the differences.
        where: the file or source, for people.
    """
    change_list = "; ".join(map(str, changes))
    return SchemaEvolved(
        f"the schema changes with {where}: {change_list}",
        pinned=replace(pinned, columns=json.dumps(schema)).to_text(),
        changes=change_list,
    )


def as_schema(struct: StructType) -> Schema:
    """Return a schema as plain values."""
    value: dict[str, Any] = struct.jsonValue()
    return value
