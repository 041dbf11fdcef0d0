"""Check, before the first load by new keys, that no two rows of the table share a key.

Keys may change, and a table may hold appended rows. Several rows may then have one key, and a load by keys
would silently update, delete or join them all.

See docs/reference/loads.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from partitions.target import DATAFLOW_COLUMN
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.entries import keyed_by
from resources.sql import quoted
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SEARCHED_ENTRIES = 20
"""Entries that are looked through for the last load, where none says by which keys it was."""
_SHOWN = 3


def check_keys(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> None:
    """Raise if this is the first load by these keys, and several rows of the table have the same key.

    Args:
        run: the run.
        entry: the newest entry.
        intent: the slice's intent, not stored yet.

    Raises:
        NeedsDecision: code ``keys_not_unique``.
    """
    dataflow = run.dataflow
    if not dataflow.target.merges or intent.replaces == "table" or not run.table.exists():
        return
    before = _last_keyed_by(run, entry)
    if before == keyed_by(intent.definition):
        return
    keys, rows, values = _duplicate_keys(run, dataflow)
    if keys:
        raise _refusal(dataflow, before, keys, rows, values)


def _last_keyed_by(run: RunContext[SliceT], entry: Entry | None) -> str | None:
    """Return the load and keys that last loaded the table, as ``keyed_by``; None if the log lacks them."""
    if entry is None or entry.keyed_by is not None:
        return entry.keyed_by if entry else None
    for past in run.log.history(run.name, _SEARCHED_ENTRIES):  # entries of older versions do not say it
        intent = run.log.intent(run.name, past.number)
        if intent is not None and intent.definition.get("merge_keys") is not None and intent.loads_slice:
            return keyed_by(intent.definition)
    return None


def _duplicate_keys(run: RunContext[SliceT], dataflow: Dataflow) -> tuple[int, int, list[dict[str, Any]]]:
    """Return how many keys have several rows, the number of such rows, and a few of the keys.

    In an SCD2 table only current versions count, and versions with the same start.
    """
    from pyspark.sql import functions as F

    target = dataflow.target
    rows = run.table.contents.read(run.spark, run.table.contents.newest_version())
    names = {name.lower(): name for name in rows.columns}
    if target.shared and DATAFLOW_COLUMN in names:
        rows = rows.where(F.col(DATAFLOW_COLUMN) == dataflow.name)
    # A column that the table does not have yet is NULL in all of its rows.
    keys = [
        (F.col(quoted(names[key.lower()])) if key.lower() in names else F.lit(None).cast("string")).alias(key)
        for key in target.merge_keys
    ]
    start, is_current = target.names.valid_from, target.names.is_current
    if target.load == "scd2" and start.lower() in names:
        return (
            _duplicates(rows.where(F.col(quoted(is_current))).select(*keys), target.merge_keys)
            or _duplicates(rows.select(*keys, quoted(start)), (*target.merge_keys, start))
            or (0, 0, [])
        )
    return _duplicates(rows.select(*keys), target.merge_keys) or (0, 0, [])


def _duplicates(rows: DataFrame, keys: tuple[str, ...]) -> tuple[int, int, list[dict[str, Any]]] | None:
    """Return the counts and some keys of rows that share a key; None if no key occurs twice."""
    from pyspark.sql import functions as F

    columns: list[Column] = [F.col(quoted(key)) for key in keys]
    duplicates = rows.groupBy(*columns).agg(F.count("*").alias("_strandline_rows"))
    duplicates = duplicates.where("_strandline_rows > 1")
    counts = duplicates.agg(F.count("*"), F.sum("_strandline_rows")).collect()[0]
    if not counts[0]:
        return None
    examples = duplicates.orderBy(*[column.asc_nulls_first() for column in columns]).limit(_SHOWN).collect()
    return counts[0], counts[1], [{key: row[key] for key in keys} for row in examples]


_CONSEQUENCES = {
    "merge_upsert": "load: merge_upsert would give all rows of such a key the same values",
    "merge_overwrite": "load: merge_overwrite would delete all rows of such a key when the source sends one of them",
    "scd2": "load: scd2 would turn several histories into one",
}


def _refusal(
    dataflow: Dataflow, before: str | None, keys: int, rows: int, values: list[dict[str, Any]]
) -> NeedsDecision:
    target, name = dataflow.target, dataflow.name
    columns = ", ".join(target.merge_keys)
    previously = _in_words(before)
    examples = "; ".join(
        ", ".join(f"{key} {value}" for key, value in key_values.items()) for key_values in values
    )
    such_as = f", such as {examples}" if dataflow.show_bad_records else ""
    reset = f"strandline state reset {name} --replace --reason TEXT"
    accept = f"strandline state accept {name} --reason TEXT"
    may_accept = target.load != "scd2"
    accept_hint = "; or run `state accept`, which keeps the rows as they are" if may_accept else ""
    return NeedsDecision(
        f"dataflow {name}: the next load is the first with target.merge_keys: {columns}{previously}, but "
        f"{pluralize(keys, 'value')} of {columns} {'occurs' if keys == 1 else 'occur'} in "
        f"{pluralize(rows, 'row')} of table {dataflow.table}{such_as}. The run stopped before it changed "
        f"anything: {_CONSEQUENCES[target.load]}. Restore keys that identify single rows; or delete the "
        f"surplus rows (SELECT {columns}, count(*) … GROUP BY {columns} HAVING count(*) > 1 lists them), "
        f"and run{accept_hint}; or run `state reset --replace`, which empties the table and loads it again",
        code="keys_not_unique",
        choices=(f"strandline run {name}", *((accept,) if may_accept else ()), reset),
    )


def _in_words(before: str | None) -> str:
    if not before:
        return ""
    load, *keys = json.loads(before)
    by = f" by {', '.join(keys)}" if keys else ""
    return f" (before: load: {load}{by})"
