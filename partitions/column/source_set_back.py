"""Detect a source that was set back: another table, or the newest rows are missing.

See docs/reference/columns.md, A source that was set back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from partitions.column.predicates import ColumnRange, format_bound
from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState
from partitions.errors import NeedsDecision
from partitions.watermark import compare_values

_REGULARLY = "If that happens regularly, set watermark.on_set_back: ignore"


def check_identity(
    dataflow: str, source: str, before: str | None, now: str | None, state: ColumnState
) -> None:
    """Raise NeedsDecision if the source is not the one that the watermark's rows came from.

    Args:
        dataflow: the dataflow's name.
        source: the source in words.
        before: the source's identity at the last read, as JSON; None if it is unknown or was accepted.
        now: the source's identity now.
        state: the state before the run.
    """
    if before is None or now is None or not state.bounds:
        return
    difference = _difference(json.loads(before), json.loads(now))
    if difference:
        raise NeedsDecision(
            f"dataflow {dataflow}: expected {source} as it was at the last read, found {difference}. The run read nothing: it would skip all rows at or below {_words(state)}."
            " If the source holds the rows that were already read (a copy, an upgrade), accept it. Otherwise reload it,"
            f" rewind to the last entry whose rows it holds, or restore the old source. {_REGULARLY}",
            code="source_replaced",
            choices=_choices(dataflow),
        )


def check_highest(
    dataflow: str,
    source: str,
    ranges: tuple[ColumnRange, ...],
    observed: SourceObservation,
    state: ColumnState,
) -> None:
    """Raise NeedsDecision if all known maxima lie below the range of the run, so that rows are missing.

    Args:
        dataflow: the dataflow's name.
        source: the source in words.
        ranges: the ranges of the run: a look-back may lose rows.
        observed: the observation of the source.
        state: the state before the run.
    """
    lowers = {range_.column: range_.lower for range_ in ranges}
    known_maxima = {name: observed.maxima[name] for name in state.bounds if name in observed.maxima}
    if known_maxima and all(
        highest is None or compare_values(highest, lowers[name]) < 0 for name, highest in known_maxima.items()
    ):
        raise source_behind_error(dataflow, source, state, known_maxima)


def source_behind_error(
    dataflow: str, source: str, state: ColumnState, highest: Mapping[str, Any] | None = None
) -> NeedsDecision:
    """Return the error for a source whose rows end below the watermark.

    Args:
        dataflow: the dataflow's name.
        source: the source in words.
        state: the state before the run.
        highest: the highest value of each column, None for a column without values; None: unknown.
    """
    values = {name: value for name, value in (highest or {}).items() if value is not None}
    rows = ", ".join(f"{name} = {format_bound(value)}" for name, value in values.items())
    actual = f"rows up to {rows}" if rows else "no row" if highest else "no row at or above it"
    return NeedsDecision(
        f"dataflow {dataflow}: expected rows up to {_words(state)} in {source}, as at the last read, "
        f"found {actual}: it was restored to an older state or emptied, or its newest rows were deleted. "
        "No run would read new rows at or below the watermark. Restore the newer rows; or accept it, if "
        "rows were only deleted and new ones lie above; or rewind to an entry that ends with the "
        f"existing rows (state history), which replaces later rows; or reload it. {_REGULARLY}",
        code="source_behind",
        choices=_choices(dataflow),
    )


def _choices(dataflow: str) -> tuple[str, ...]:
    return (
        f"strandline state accept {dataflow} --reason TEXT",
        f"strandline state rewind {dataflow} --to NUMBER --replace --reason TEXT",
        f"strandline state reset {dataflow} --replace --reason TEXT",
    )


def _words(state: ColumnState) -> str:
    return ", ".join(f"{name} = {format_bound(bound.value)}" for name, bound in state.bounds.items())


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words how two sources differ; "" if they are the same."""
    if before.get("server") and now.get("server") and before["server"] != now["server"]:
        return f"the table of another database server (system identifier {before['server']} at the last read, {now['server']} now)"
    tables = now.get("tables", {})
    changed = [name for name, id_ in before.get("tables", {}).items() if tables.get(name, id_) != id_]
    if changed:
        return f"another table named {', '.join(changed)}, which was dropped and created again, or replaced"
    if isinstance(now.get("version"), int) and now["version"] < before.get("version", 0):
        return (
            f"an older copy of it, at version {now['version']} (version {before['version']} at the last read)"
        )
    return ""
