"""Change events as Debezium writes them, of a table of customers in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

LOST = "__debezium_unavailable_value"
"""The mark of a value that PostgreSQL has not logged."""

BEGIN = 1_700_000_000_000
"""The time of the first change, in milliseconds since 1970."""

ID: Row = {"type": "int64", "optional": False, "field": "id"}
NAME: Row = {"type": "string", "optional": True, "field": "name"}


def typed(field: str, type_: str, name: str, **parameters: str) -> dict[str, Any]:
    """Return the schema of a field with a logical type."""
    schema = {"type": type_, "optional": True, "name": name, "version": 1, "field": field}
    return {**schema, "parameters": parameters} if parameters else schema


def source(lsn: int, snapshot: str = "false") -> dict[str, Any]:
    """Return the ``source`` of an event of PostgreSQL; its time rises with its position."""
    milliseconds = BEGIN + lsn
    return {
        "version": "2.7.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": milliseconds,
        "snapshot": snapshot,
        "db": "shop",
        "sequence": f'["{max(lsn - 8, 0)}","{lsn}"]',
        "ts_us": milliseconds * 1000,
        "ts_ns": milliseconds * 1_000_000,
        "schema": "public",
        "table": "customers",
        "txId": 700 + lsn,
        "lsn": lsn,
        "xmin": None,
    }


def event(
    op: str, lsn: int, after: Row | None = None, before: Row | None = None, **changes: Any
) -> dict[str, Any]:
    """Return an envelope; ``changes`` replace parts of it, or of its source if there is one of that name."""
    of_event = source(lsn, "true" if op == "r" else "false")
    parts = {
        "before": before,
        "after": after,
        "source": of_event,
        "transaction": None,
        "op": op,
        "ts_ms": BEGIN,
    }
    of_source = {name: value for name, value in changes.items() if name in of_event}
    return {**parts, **{name: value for name, value in changes.items() if name not in of_source}} | (
        {"source": of_event | of_source} if of_source else {}
    )


def schema_of(*fields: Row) -> dict[str, Any]:
    """Return the schema of an envelope whose rows have these fields."""
    row = {"type": "struct", "fields": list(fields), "optional": True, "name": "shop.public.customers.Value"}
    images = [{**row, "field": "before"}, {**row, "field": "after"}]
    operation = {"type": "string", "optional": False, "field": "op"}
    return {
        "type": "struct",
        "fields": [*images, operation],
        "optional": False,
        "name": "shop.public.customers.Envelope",
    }


def wrapped(payload: Row | None, *fields: Row) -> dict[str, Any]:
    """Return a message with the schema of its rows, as with ``value.converter.schemas.enable``."""
    return {"schema": schema_of(*fields) if payload else None, "payload": payload}


def lines(events: Sequence[Any]) -> str:
    """Return a file of these events, one a line."""
    return "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in events)
