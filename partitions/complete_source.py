"""Sources of which each run reads the whole, and what becomes of keys that are missing there.

See docs/how-to/deletes.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partitions.dataflow_parts import DataflowParts
from partitions.refusal import Refusal
from partitions.target import Target

COMPLETE = ("source", "complete")
"""The key that says that each read is the whole source."""
_REMOVING = {"merge_upsert": "delete", "scd2": "retire"}
"""By load: the word for what it does to a missing key."""


def complete_refusals(parts: DataflowParts[Any]) -> Iterator[Refusal]:
    """Yield why keys that a source lacks cannot be found, or treated like that."""
    target = parts.target
    if not any(part.complete for part in parts.source.parts.values()):
        for key in ("on_missing", "max_deleted"):
            if key in target.model_fields_set and getattr(target, key) is not None:
                yield Refusal(
                    ("target", key),
                    f"{getattr(target, key)} without source.complete",
                    "no such key, or source.complete: true (only a source that is read as a whole shows missing keys)",
                )
        return
    watermark = parts.watermark
    if not watermark.reads_whole:
        yield Refusal(
            COMPLETE,
            f"true beside a {watermark.type} watermark",
            "watermark: {type: window, definition: []}, which reads the whole in each run; or windows of time, "
            "each of which is the whole",
        )
    if target.load not in _REMOVING:
        yield Refusal(
            COMPLETE,
            f"true beside load: {target.load}",
            "load: merge_upsert or scd2 with merge_keys (only keys tell which rows are missing); or no such key",
        )
        return
    yield from _target_refusals(target)


def _target_refusals(target: Target) -> Iterator[Refusal]:
    removing, key = _REMOVING[target.load], ("target", "on_missing")
    if target.on_missing not in (removing, "keep"):
        yield Refusal(
            key,
            target.on_missing or "nothing",
            f"{removing} or keep beside load: {target.load}: what becomes of keys that the source lacks",
        )
    if target.on_missing == "keep" and target.max_deleted is not None:
        yield Refusal(
            ("target", "max_deleted"),
            f"{target.max_deleted} beside on_missing: keep",
            f"no such key, or on_missing: {removing}",
        )
    for option in ("insert_only", "keep_tombstones"):
        if getattr(target, option) and target.removes_missing:
            yield Refusal(
                ("target", option),
                f"{option} beside on_missing: {target.on_missing}",
                "no such key, or on_missing: keep (the newest read decides which keys exist)",
            )
