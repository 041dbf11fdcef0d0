"""A source that was set back: another table under the name, or rows up to the watermark that are there no more (docs/reference/columns.md, A source that was set back)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from partitions.column.predicates import Range, shown
from partitions.column.source import Observed
from partitions.column.state import ColumnState
from partitions.errors import NeedsDecision
from partitions.watermark import compare_values

_REGULARLY = "If that happens regularly, set watermark.on_set_back: ignore"


def check_identity(
    dataflow: str, source: str, before: str | None, now: str | None, state: ColumnState
) -> None:
    """Raise NeedsDecision if the source is another one than the rows at or below the watermark were read from.

    Args:
        dataflow: its name.
        source: for people.
        before: what told the source from others when it was read last, as JSON; None: not known, or accepted.
        now: what tells it now.
        state: what is read so far.
    """
    if before is None or now is None or not state.marks:
        return
    found = _difference(json.loads(before), json.loads(now))
    if found:
        raise NeedsDecision(
            f"dataflow {dataflow}: expected {source} as it was read, found {found}. Nothing of it was read: rows at or below {_words(state)} would never"
            f" be. If it holds the rows that were read (a copy, an upgrade), accept it; else load it again, rewind to the last"
            f" entry whose rows it holds, or put the old one back. {_REGULARLY}",
            code="source_replaced",
            choices=_choices(dataflow),
        )


def check_highest(
    dataflow: str, source: str, ranges: tuple[Range, ...], observed: Observed, state: ColumnState
) -> None:
    """Raise NeedsDecision if all values that an index tells lie below what a run reads: rows were there that have gone.

    Args:
        dataflow: its name.
        source: for people.
        ranges: what a run reads: a look-back may lose rows.
        observed: of the source.
        state: what is read so far.
    """
    lowers = {range_.column: range_.lower for range_ in ranges}
    known = {name: observed.maxima[name] for name in state.marks if name in observed.maxima}
    if known and all(
        highest is None or compare_values(highest, lowers[name]) < 0 for name, highest in known.items()
    ):
        raise behind(dataflow, source, state, known)


def behind(
    dataflow: str, source: str, state: ColumnState, highest: Mapping[str, Any] | None = None
) -> NeedsDecision:
    """Return the error for a source whose rows end below the watermark.

    Args:
        dataflow: its name.
        source: for people.
        state: what is read so far.
        highest: the highest value of each column, None: it has none; None: not known.
    """
    values = {name: value for name, value in (highest or {}).items() if value is not None}
    rows = ", ".join(f"{name} = {shown(value)}" for name, value in values.items())
    found = f"rows up to {rows}" if rows else "no row" if highest else "none there or above"
    return NeedsDecision(
        f"dataflow {dataflow}: expected rows up to {_words(state)} in {source}, up to which it was read, found {found}: it was restored to an older state"
        " or emptied, or its newest rows were deleted. Rows that come again below would never be read. Restore the newer rows; or accept it if rows were"
        f" only deleted, and new ones come above; or rewind to an entry that ends with what is there (state history), which replaces what comes above; or"
        f" load it again. {_REGULARLY}",
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
    return ", ".join(f"{name} = {shown(mark.value)}" for name, mark in state.marks.items())


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What tells two sources apart, in words; "" if they are the same one."""
    if before.get("server") and now.get("server") and before["server"] != now["server"]:
        return f"that of another database server (system identifier {before['server']} was read, {now['server']} is there)"
    tables = now.get("tables", {})
    changed = [name for name, id_ in before.get("tables", {}).items() if tables.get(name, id_) != id_]
    if changed:
        return f"another table of the name {', '.join(changed)}, which was dropped and made again, or put in its place"
    if isinstance(now.get("version"), int) and now["version"] < before.get("version", 0):
        return f"an older copy of it, at version {now['version']}: version {before['version']} was read"
    return ""
