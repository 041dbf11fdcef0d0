"""The schema of a dataflow as its parts know it: pinned by the state, declared by the definition, of the table, and of a fresh look."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from partitions.evolution import evolved
from partitions.schema_merging import new_fields, with_wider_integers
from partitions.sources.formats import FORMATS
from resources.platform.platform import Platform
from resources.sources.files.pinned import PinnedSchema
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ALL = 1_000_000

_BY_VALUES = {
    "merge": "a whole number that is too large for its column makes it wider; any other value that does not fit is a bad record",
    "rescue": "a value that does not fit its column is kept in _rescued_data",
}
"""By schema mode: what becomes of a text's values, whose types only a read tells."""

Columns = list[dict[str, str]]
"""Name and type of each column, in words of Spark's DDL; and where it comes from, a file or its folders."""


def known_schemas(platform: Platform, dataflow: Dataflow) -> dict[str, Any]:
    """Return what is pinned and since when, what is declared, and the table's columns; each null if there is none. Starts no Spark."""
    return {
        "dataflow": dataflow.name,
        "pinned": _pinned(platform, dataflow),
        "declared": dataflow.source.declared_schema,
        "table": _of_table(platform, dataflow),
    }


def fresh_schema(platform: Platform, dataflow: Dataflow, now: datetime) -> dict[str, Any]:
    """Return what a first run would pin now if nothing was declared, and how it differs from what is pinned. Reads a sample, changes nothing.

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
    """What the schema mode makes of a fresh look: the action and the changes, or why it refuses them."""
    newest, mode = platform.log.newest(dataflow.name), dataflow.target.schema_mode
    assert newest is not None
    assert newest.pinned is not None
    known, fresh = (json.loads(each)["columns"] for each in (platform.log.get_schema(newest.pinned), text))
    form = FORMATS.get(dataflow.source.form)
    by_values = mode in _BY_VALUES and (form.is_text if form else dataflow.source.form == "api")
    if by_values:
        # No sample tells what the values of all others are; but a whole number of CSV is inferred as wide as its largest value.
        wider = with_wider_integers(new_fields(known, fresh), fresh) if mode == "merge" else None
        fresh = wider if wider and dataflow.source.form == "csv" else new_fields(known, fresh)
    elif dataflow.source.declared_schema is not None:
        fresh = new_fields(
            known, fresh
        )  # a run reads declared columns as declared, whatever a sample looks like
    values = _BY_VALUES[mode] if by_values else None
    try:
        found = evolved(known, fresh, mode)
    except SchemaError as error:
        return {"mode": mode, "action": "refuse", "changes": [error.message], "values": values}
    if mode == "rescue" and found.rescued:
        return {"mode": mode, "action": "rescue", "changes": list(found.rescued), "values": values}
    changes = [str(change) for change in found.changes]
    return {"mode": mode, "action": found.action, "changes": changes, "values": values}


def _pinned(platform: Platform, dataflow: Dataflow) -> dict[str, Any] | None:
    newest = platform.log.newest(dataflow.name)
    if newest is None or not newest.pinned:
        return None
    first: Entry = newest
    before: Entry | None = None
    for entry in platform.log.history(dataflow.name, _ALL):
        if entry.pinned != newest.pinned:
            before = entry
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
        "changed": before is not None and bool(before.pinned) and before.why != "reset",
    }  # fmt: skip


def table_columns(platform: Platform, dataflow: Dataflow) -> Columns:
    """Return the columns that the table has; none without a table. Starts no Spark."""
    table = _of_table(platform, dataflow)
    return table["columns"] if table else []


def _of_table(platform: Platform, dataflow: Dataflow) -> dict[str, Any] | None:
    from pyspark.sql.types import StructType

    newest = platform.table(dataflow).contents.schema()
    if newest is None:
        return None
    version, text = newest
    columns = _typed(StructType.fromJson(json.loads(text)))
    return {"table": dataflow.table, "version": version, "columns": columns}


def _typed(schema: StructType) -> Columns:
    return [{"name": field.name, "type": field.dataType.simpleString()} for field in schema.fields]


def _columns(schema: PinnedSchema, dataflow: Dataflow) -> Columns:
    of_others = "file" if dataflow.source.holds_files else "source"
    return [
        {**column, "from": "folder" if column["name"] in schema.folders else of_others}
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
