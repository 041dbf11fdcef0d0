"""The schemas of a dataflow: pinned in the state, declared, of the table, and inferred afresh."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from partitions.evolution import evolve_schema
from partitions.schema_merging import new_fields, with_wider_integers
from partitions.sources.formats import FORMATS
from resources.platform.platform import Platform
from resources.sources.files.pinned import PinnedSchema
from resources.tables.contract.commits import Version
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ALL = 1_000_000

_BY_VALUES = {
    "merge": "a whole number that is too large for its column makes it wider; any other value that does not fit is a bad record",
    "rescue": "a value that does not fit its column is kept in _rescued_data",
}
"""By schema mode: how a text value that does not fit its column is loaded. Only a read shows such values."""

Columns = list[dict[str, str]]
"""Columns with their name, their type in Spark's DDL, and their origin: file, folder or source."""


def stored_schemas(platform: Platform, dataflow: Dataflow) -> dict[str, Any]:
    """Return the pinned and declared schemas and the table's columns; null where there is none.

    Starts no Spark.
    """
    return {
        "dataflow": dataflow.name,
        "pinned": _pinned(platform, dataflow),
        "declared": dataflow.source.declared_schema,
        "table": _table_schema(platform, dataflow),
    }


def fresh_schema(platform: Platform, dataflow: Dataflow, now: datetime) -> dict[str, Any]:
    """Return the schema that a first run would pin now, and how it differs from the pinned one.

    Ignores the declared schema. Reads a sample and changes nothing.

    Raises:
        StrandlineError: if the sample cannot be read.
    """
    source = dataflow.source
    if source.declared_schema is not None:
        source = source.model_copy(update={"schema_": None})
    undeclared = dataflow.model_copy(update={"source": source})
    text, warnings = platform.loop(undeclared, now).infer()
    pinned, fresh = (
        _pinned(platform, dataflow),
        None if text is None else _columns(PinnedSchema.of(text), dataflow),
    )
    return {
        "dataflow": dataflow.name,
        "is_declared": dataflow.source.declared_schema is not None,
        "columns": fresh,
        "difference": None if pinned is None or fresh is None else _difference(pinned["columns"], fresh),
        "evolution": None if pinned is None or text is None else _evolution(platform, dataflow, text),
        "warnings": warnings,
    }


def _evolution(platform: Platform, dataflow: Dataflow, text: str) -> dict[str, Any]:
    """Return what the schema mode does with a fresh schema: action and changes, or why it refuses."""
    newest, mode = platform.log.newest(dataflow.name), dataflow.target.schema_mode
    assert newest is not None
    assert newest.pinned is not None
    pinned, fresh = (
        json.loads(stored_text)["columns"] for stored_text in (platform.log.get_schema(newest.pinned), text)
    )
    file_format = FORMATS.get(dataflow.source.form)
    by_values = mode in _BY_VALUES and (file_format.is_text if file_format else dataflow.source.form == "api")
    if by_values:
        # A sample says nothing about the other values, but inference makes a CSV integer as wide as its largest value.
        wider = with_wider_integers(new_fields(pinned, fresh), fresh) if mode == "merge" else None
        fresh = wider if wider and dataflow.source.form == "csv" else new_fields(pinned, fresh)
    elif dataflow.source.declared_schema is not None:
        fresh = new_fields(
            pinned, fresh
        )  # a run reads declared columns as declared, whatever a sample looks like
    values = _BY_VALUES[mode] if by_values else None
    try:
        evolution = evolve_schema(pinned, fresh, mode)
    except SchemaError as error:
        return {"mode": mode, "action": "refuse", "changes": [error.message], "values": values}
    if mode == "rescue" and evolution.rescued:
        return {"mode": mode, "action": "rescue", "changes": list(evolution.rescued), "values": values}
    changes = [str(change) for change in evolution.changes]
    return {"mode": mode, "action": evolution.action, "changes": changes, "values": values}


def _pinned(platform: Platform, dataflow: Dataflow) -> dict[str, Any] | None:
    newest = platform.log.newest(dataflow.name)
    if newest is None or not newest.pinned:
        return None
    first: Entry = newest
    previous: Entry | None = None
    for entry in platform.log.history(dataflow.name, _ALL):
        if entry.pinned != newest.pinned:
            previous = entry
            break
        first = entry
    schema = PinnedSchema.of(platform.log.get_schema(newest.pinned))
    return {
        "columns": _columns(schema, dataflow),
        "number": first.number,
        "time": first.time,
        "from": "source" if not dataflow.source.holds_files
        else "inferred" if schema.declared is None
        else "source.schema",
        "declared": schema.declared,
        "changed": previous is not None and bool(previous.pinned) and previous.why != "reset",
    }  # fmt: skip


def table_columns(platform: Platform, dataflow: Dataflow) -> Columns:
    """Return the table's columns; none if there is no table. Starts no Spark."""
    table = _table_schema(platform, dataflow)
    return table["columns"] if table else []


def _table_schema(platform: Platform, dataflow: Dataflow) -> dict[str, Any] | None:
    newest = platform.table(dataflow).contents.schema()
    if newest is None:
        return None
    return {"table": dataflow.table, "version": newest[0], "columns": typed_columns(newest)}


def typed_columns(described: tuple[Version, str] | None) -> Columns:
    """Return the columns of a table, as its contents describe them; none if there is no table."""
    from pyspark.sql.types import StructType

    return _typed(StructType.fromJson(json.loads(described[1]))) if described is not None else []


def _typed(schema: StructType) -> Columns:
    return [{"name": field.name, "type": field.dataType.simpleString()} for field in schema.fields]


def _columns(schema: PinnedSchema, dataflow: Dataflow) -> Columns:
    origin = "file" if dataflow.source.holds_files else "source"
    return [
        {**column, "from": "folder" if column["name"] in schema.folders else origin}
        for column in _typed(schema.struct)
    ]


def _difference(pinned: Columns, fresh: Columns) -> list[dict[str, str | None]]:
    """Return each column whose type differs, or that only one side has."""
    before, after = ({column["name"]: column["type"] for column in columns} for columns in (pinned, fresh))
    return [
        {"column": name, "pinned": before.get(name), "found": after.get(name)}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
