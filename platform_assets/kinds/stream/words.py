"""A stream watermark in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.plan import pluralize
from partitions.sentinels import deserialise, encode
from partitions.stream.state import StreamState
from partitions.stream.waiting_rows import time_in_words


def state_in_words(state: StreamState) -> str:
    """Return how far the global watermark is, and how much waits below it."""
    if not state.splits and state.epoch == 0:
        return "none"
    reach = "no global watermark yet" if state.value is None else f"up to {time_in_words(state.value)}"
    waiting = sum(1 for split in state.splits.values() if split.watermark is None)
    parts = [reach, *([pluralize(len(state.splits), "split")] if state.splits else [])]
    parts += [f"{waiting:,} of them awaited"] if waiting else []
    parts += [f"{pluralize(state.buffered, 'row')} buffered"] if state.buffered else []
    parts += [f"windows open from {time_in_words(state.open_from)} on"] if state.open_from is not None else []
    if state.flush is not None:
        to = state.flush.to
        parts += ["to be flushed" if to is None else f"to be flushed up to {time_in_words(to)}"]
    return ", ".join(parts)


def watermark_in_words(watermark: Mapping[str, Any]) -> str:
    """Return :func:`state_in_words` for a watermark's JSON form, short or whole, or its values."""
    values = _values(watermark)
    if "splits" not in values:
        at = values.get("global")
        return "no global watermark yet" if at is None else f"up to {time_in_words(at)}"
    return state_in_words(StreamState.of(values))


def short_watermark(watermark: Mapping[str, Any]) -> dict[str, Any]:
    """Return the watermark in its short public form, ``{"epoch", "global"}`` (docs/reference/cli.md)."""
    state = StreamState.of(watermark)
    document: dict[str, Any] = encode({"epoch": state.epoch, "global": state.value})
    return document


def _values(watermark: Mapping[str, Any]) -> Mapping[str, Any]:
    at = watermark.get("global")
    if isinstance(at, Mapping) or any(
        isinstance(split, Mapping) and isinstance(split.get("watermark"), Mapping)
        for split in (watermark.get("splits") or {}).values()
    ):
        import json

        return deserialise(json.dumps(watermark))
    return watermark
