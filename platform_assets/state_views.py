"""Entries of a watermark log as documents, for the command line and for jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from partitions.errors import ConfigurationError
from platform_assets.words import in_words
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog


def entries_with_intents(log: WatermarkLog, name: str, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the entries, newest first, each with its intent; an unfinished slice comes first."""
    newest = entries[0].number if entries else 0
    documents = [
        {**entry.as_json(short=True), "intent": _intent(log.intent(name, entry.number))} for entry in entries
    ]
    if intent := log.intent(name, newest + 1):
        documents.insert(0, {"number": intent.number, "why": intent.why, "intent": _intent(intent)})
    return documents


def changes_between(log: WatermarkLog, name: str, before: int | None, after: int | None) -> dict[str, Any]:
    """Return the values that differ between two entries; 0 is the state before the first entry.

    By default the newest entry and the one before it are compared.

    Raises:
        ConfigurationError: for a number without an entry.
    """
    later = log.newest(name) if after is None else _entry(log, name, after)
    earlier = before if before is not None else (later.previous if later else 0)
    older = _entry(log, name, earlier) if earlier else None
    changes = _changes(older, later)
    return {"dataflow": name, "from": earlier, "to": later.number if later else 0, "changed": changes}


def watermarks_of(log: WatermarkLog, changes: Mapping[str, Any]) -> tuple[str, str]:
    """Return the watermarks of the two entries that :func:`changes_between` compares, in words."""
    entries = (log.find(name, changes[side]) for name in (changes["dataflow"],) for side in ("from", "to"))
    before, after = (
        in_words(entry.kind, json.loads(entry.watermark)) if entry else "none" for entry in entries
    )
    return before, after


def _entry(log: WatermarkLog, name: str, number: int) -> Entry:
    entry = log.find(name, number)
    if entry is None:
        raise ConfigurationError(
            f"dataflow {name}: expected the number of an entry, found {number}, which does not exist or was "
            "compacted away",
            choices=(f"strandline state history {name}",),
        )
    return entry


def _changes(older: Entry | None, later: Entry | None) -> dict[str, Any]:
    """Return each value that differs, by its dotted name."""
    before = _flat(older.as_json() if older else {})
    after = _flat(later.as_json() if later else {})
    return {
        name: {"before": before.get(name), "after": after.get(name)}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    }


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or any(str(key).startswith("__") for key in value):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat |= _flat(inner, f"{name}.{key}" if name else str(key))
    return flat


def _intent(intent: Intent | None) -> dict[str, Any] | None:
    if intent is None:
        return None
    holder = {"host": intent.holder.host.partition("/")[0], "pid": intent.holder.pid}
    fields = ("id", "number", "why", "files", "quarantined", "replaces", "run_id", "time", "table_version")
    return {name: getattr(intent, name) for name in fields} | {"holder": holder}
