"""Whether the rows of a table are told apart by the keys that a load finds them by: looked up before the first load with these keys (docs/reference/loads.md).

Keys may change, and a table may hold rows that were appended. Then several rows may have one key, which a load by keys would all update, delete or
join without a word.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from partitions.target import DATAFLOW_COLUMN, HISTORY_COLUMNS
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.entries import keyed_by
from resources.sql import quoted
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOOKED_AT = 20
"""Entries that are looked through for the last load, where none says by which keys it was."""
_SHOWN = 3
VALID_FROM, _, IS_CURRENT = HISTORY_COLUMNS


def check_keys(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> None:
    """Raise if this is the first load by these keys, and several rows of the table have one of them.

    Args:
        run: of the dataflow.
        entry: the newest one.
        intent: of the slice, not put yet.

    Raises:
        NeedsDecision: code ``keys_not_unique``.
    """
    dataflow = run.dataflow
    if not dataflow.target.merges or intent.replaces == "table" or not run.table.exists():
        return
    before = _known(run, entry)
    if before == keyed_by(intent.definition):
        return
    keys, rows, values = _twice(run, dataflow)
    if keys:
        raise _refusal(dataflow, before, keys, rows, values)


def _known(run: RunContext[SliceT], entry: Entry | None) -> str | None:
    """By which load and keys the table is known to be loaded; None if nothing tells."""
    if entry is None or entry.keyed_by is not None:
        return entry.keyed_by if entry else None
    for past in run.log.history(run.name, _LOOKED_AT):  # entries of older versions do not say it
        made = run.log.intent(run.name, past.number)
        if made is not None and made.definition.get("merge_keys") is not None and not made.is_decision:
            return keyed_by(made.definition)
    return None


def _twice(run: RunContext[SliceT], dataflow: Dataflow) -> tuple[int, int, list[dict[str, Any]]]:
    """How many keys several rows have, how many rows these are, and some of the keys; of versions those that are current, or begin at one time."""
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
    if target.load == "scd2" and VALID_FROM in names:
        return (
            _first_of(rows.where(F.col(IS_CURRENT)).select(*keys), target.merge_keys)
            or _first_of(rows.select(*keys, VALID_FROM), (*target.merge_keys, VALID_FROM))
            or (0, 0, [])
        )
    return _first_of(rows.select(*keys), target.merge_keys) or (0, 0, [])


def _first_of(rows: DataFrame, keys: tuple[str, ...]) -> tuple[int, int, list[dict[str, Any]]] | None:
    """The same of these columns; None if each key is there once."""
    from pyspark.sql import functions as F

    columns: list[Column] = [F.col(quoted(key)) for key in keys]
    several = rows.groupBy(*columns).agg(F.count("*").alias("_strandline_rows"))
    several = several.where("_strandline_rows > 1")
    found = several.agg(F.count("*"), F.sum("_strandline_rows")).collect()[0]
    if not found[0]:
        return None
    some = several.orderBy(*[column.asc_nulls_first() for column in columns]).limit(_SHOWN).collect()
    return found[0], found[1], [{key: row[key] for key in keys} for row in some]


_MEANS = {
    "merge_upsert": "load: merge_upsert would update all rows of such a key alike",
    "merge_overwrite": "load: merge_overwrite would delete all rows of such a key when one of them is read",
    "scd2": "load: scd2 would make one history of what were several",
}


def _refusal(
    dataflow: Dataflow, before: str | None, keys: int, rows: int, values: list[dict[str, Any]]
) -> NeedsDecision:
    target, name = dataflow.target, dataflow.name
    columns = ", ".join(target.merge_keys)
    was = _in_words(before)
    shown = "; ".join(", ".join(f"{key} {value}" for key, value in each.items()) for each in values)
    such_as = f", such as {shown}" if dataflow.show_bad_records else ""
    again = f"strandline state reset {name} --replace --reason TEXT"
    accept = f"strandline state accept {name} --reason TEXT"
    may_accept = target.load != "scd2"
    goes_on = "; or run `state accept`, which goes on with the rows as they are" if may_accept else ""
    return NeedsDecision(
        f"dataflow {name}: the next load is the first by target.merge_keys: {columns}{was}, and {pluralize(keys, 'value')} of {columns} {'stands' if keys == 1 else 'stand'} in"
        f" {pluralize(rows, 'row')} of table {dataflow.table}{such_as}. Nothing was begun: {_MEANS[target.load]}. Put back keys that tell the rows apart;"
        f" or delete the rows that are too many (SELECT {columns}, count(*) … GROUP BY {columns} HAVING count(*) > 1 lists them), and run{goes_on};"
        " or run `state reset --replace`, which empties the table and loads it again",
        code="keys_not_unique",
        choices=(f"strandline run {name}", *((accept,) if may_accept else ()), again),
    )


def _in_words(before: str | None) -> str:
    if not before:
        return ""
    load, *keys = json.loads(before)
    by = f" by {', '.join(keys)}" if keys else ""
    return f" (before: load: {load}{by})"
