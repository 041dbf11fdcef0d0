"""The rows of a ledger, of any kind of watermark (docs/reference/cli.md, The ledger)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

COLUMNS = (
    "dataflow", "row", "partition", "unit", "start", "end", "files", "bytes", "rows", "late", "quarantined", "skipped",
    "duplicates", "waiting", "gone", "changed", "complete_up_to", "why",
)  # fmt: skip
"""The columns of the CSV, in order. New ones are added at the end; none is renamed or removed."""

_STRETCHES = {
    "covered": "covered",
    "gap": "gaps",
    "overlap": "overlaps",
    "failed_reread": "failed_rereads",
    "outdated": "outdated",
}
"""The rows of a unit's stretches of time, by their keys in its JSON form."""

Row = Mapping[str, Any]
"""Values by column; a missing one, and None, is unknown or does not apply."""


def ledger_rows(document: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows of a dataflow's ledger, from its JSON form: totals first, then the parts in order."""
    for row in (*_rows(document), *_expired(document.get("retention"))):
        yield {"dataflow": document["dataflow"], **row}


def _expired(retention: Mapping[str, Any] | None) -> Iterator[Row]:
    if retention:
        why = f"{retention['column']} keeps {retention['keep']}"
        yield {"row": "expired", "end": retention["before"], "rows": retention["expired_rows"], "why": why}


def _rows(document: Mapping[str, Any]) -> Iterator[Row]:
    if error := document.get("error"):
        yield {"row": "error", "why": error["message"]}
        return
    if document["units"] is not None:
        yield {"row": "total", "complete_up_to": document["complete_up_to"]}
        for unit in document["units"]:
            yield from _rows_of_unit(unit)
        return
    yield _total(document)
    for partition in document.get("partitions", ()):
        yield {"row": "partition", **{name: partition[name] for name in partition if name in COLUMNS}}
    for missing in document.get("missing", ()):
        why = f"{missing['periods']} expected, no file"
        yield {
            "row": "missing",
            "partition": missing["group"],
            "start": missing["start"],
            "end": missing["end"],
            "why": why,
        }


def _total(document: Mapping[str, Any]) -> Row:
    covered = document["covered"]
    up_to = covered["up_to"]
    whole = {
        "files": covered["files"],
        "rows": covered["rows"],
        "late": document["late"]["count"],
        "quarantined": document["quarantined"]["count"],
    }
    return {
        "row": "total",
        **(document.get("totals") or whole),
        "complete_up_to": None if up_to is None else up_to.get("path") or json.dumps(up_to),
    }


def _rows_of_unit(unit: Mapping[str, Any]) -> Iterator[Row]:
    name = json.dumps(unit["unit"]) if unit["unit"] else None
    removed = "the source no longer has this unit" if unit["gone"] else None
    yield {"row": "unit", "unit": name, "complete_up_to": unit["complete_up_to"], "why": removed}
    for row, key in _STRETCHES.items():
        for range_ in unit.get(key, ()):
            yield {"row": row, "unit": name, **range_}
