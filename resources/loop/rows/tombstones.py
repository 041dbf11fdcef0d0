"""Tombstones: deleted keys in a side table, so that older rows of them stay away.

A slice writes those of its deletes before its own rows, under the same number. See docs/how-to/deletes.md.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from partitions.loads import Load, ReplaceAll, Scd2, Upsert
from partitions.predicate import NOTHING, Between
from partitions.sources.event_columns import TIME
from partitions.table_names import TOMBSTONES
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.side_tables import check_number_is_ours
from resources.outcome import Step
from resources.sql import quoted
from resources.tables.contract.commits import Tag, Version
from resources.tables.contract.table import Table
from resources.tables.rows.deduplicate import drop_shared_keys
from resources.tables.rows.delete_marks import is_delete
from resources.tables.rows.keyed_rows import latest_by_key
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DELETED_AT = "_deleted_at"
"""Column with the time of the slice that deleted the key."""


def bury_deleted(run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Load) -> DataFrame:
    """Write the tombstones of a slice; return its rows without those that are older than a tombstone.

    A second call writes nothing.

    Args:
        run: the run.
        intent: intent of the slice.
        rows: rows of the slice, each key once, with the marks of deletes; cached if :func:`remembers_deletes`,
            since they are read more than once.
        load: load of the definition.

    Raises:
        NeedsDecision: code ``foreign_tag``: the tombstones are ahead of the state.
        Conflict: another run has given the number up.
    """
    if not isinstance(load, Upsert | Scd2) or not remembers_deletes(run, load):
        return rows
    _write_tombstones(run, intent, rows, load, run.sides[TOMBSTONES])
    if isinstance(load, Scd2):
        return _with_deletes_between(run, intent, rows, load)
    return without_buried(run, intent, rows, load)


def remembers_deletes(run: RunContext[SliceT], load: Load) -> bool:
    """Return whether a load writes tombstones."""
    return TOMBSTONES in run.sides and isinstance(load, Upsert | Scd2) and load.deletes is not None


def _with_deletes_between(run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Scd2) -> DataFrame:
    """Return rows and the deletes of their keys that came before them, without rows older than a version.

    A delete without a version to end leaves no trace in the table. A version with the time of a row may
    be later in the load's order.

    Args:
        run: the run.
        intent: intent of the slice.
        rows: rows of the slice, each key and time once, with the marks of deletes.
        load: load of the definition.
    """
    from pyspark.sql import functions as F

    if (stored := _stored_tombstones(run, intent, load)) is not None:
        columns = {name.casefold() for name in _columns(load)}
        deletes = stored.join(rows.select(*load.keys), list(load.keys), "left_semi").select(
            *[
                F.lit(True).alias(field.name)
                if field.name == load.deletes
                else F.col(quoted(field.name))
                if field.name.casefold() in columns
                else F.lit(None).cast(field.dataType).alias(field.name)
                for field in rows.schema.fields
            ]
        )
        rows = latest_by_key(rows.union(deletes), load)
    if intent.replaces == "table" or not run.table.exists():
        return rows
    contents = run.table.contents
    if not {by.column for by in load.order} <= {*contents.columns()}:
        return rows
    versions = contents.read(run.spark, contents.newest_version()).select(
        *[F.col(quoted(name)) for name in (*load.keys, *(by.column for by in load.order))],
        F.col(quoted(load.names.valid_from)).alias(load.effective),
    )
    return drop_shared_keys(rows, versions, (*load.keys, load.effective), load.order)


def without_buried(run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Load) -> DataFrame:
    """Return rows without those whose key has a later tombstone.

    Args:
        run: the run.
        intent: intent of the commit.
        rows: rows with the load's keys and the columns of its order.
        load: load of the definition.
    """
    stored = _stored_tombstones(run, intent, load) if isinstance(load, Upsert) and load.order else None
    if stored is None or not isinstance(load, Upsert):
        return rows
    return drop_shared_keys(rows, stored, load.keys, load.order)


def _stored_tombstones(run: RunContext[SliceT], intent: Intent, load: Upsert | Scd2) -> DataFrame | None:
    """Return the tombstones that have not expired; None if there are none for such a load."""
    table = run.sides.get(TOMBSTONES)
    if table is None or not table.exists():
        return None
    stored_columns = {name.casefold() for name in table.contents.columns()}
    if not {name.casefold() for name in _columns(load)} <= stored_columns:
        return None  # the keys have changed, and no slice has deleted one since
    tombstones = table.contents.read(run.spark, table.contents.newest_version())
    return tombstones.where(f"NOT ({predicate_sql(_expired(run, intent), SPARK)})")


def _write_tombstones(
    run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Upsert | Scd2, table: Table
) -> None:
    from pyspark.sql import functions as F

    tip = table.tip(intent.app_id)
    if tip.highest_tag >= intent.number:
        check_number_is_ours(run, table, f"{run.dataflow.table}__{TOMBSTONES}", intent)
        return
    # The time of a change event tells whether the database's log has begun anew since.
    times = [TIME] if run.dataflow.source.sends_changes and TIME in rows.columns else []
    tombstones = rows.where(is_delete(load.deletes)).select(
        *[F.col(quoted(name)) for name in _columns(load, *times)],
        F.lit(intent.time).cast("timestamp").alias(_DELETED_AT),
    )
    empties = intent.replaces == "table" and tip.version is not None
    if not empties and tombstones.isEmpty():
        return
    how = ReplaceAll() if empties else _load_of_tombstones(run, intent, load, table, tip.version)
    table.write(tombstones, how, Tag(intent.app_id, intent.number, intent.id), "{}", base=tip.version)
    run.notify(
        Step.SET_ASIDE, f"slice {intent.number}: deleted keys go into {run.dataflow.table}__{TOMBSTONES}"
    )


def _load_of_tombstones(
    run: RunContext[SliceT], intent: Intent, load: Upsert | Scd2, table: Table, base: Version | None
) -> Upsert:
    """Return the load that keeps the latest tombstone of each key, and takes out expired ones.

    Of versions it keeps one for each time.
    """
    expired = _expired(run, intent)
    has_expired = base is not None and table.contents.holds_any(base, expired)
    return Upsert(_keys(load), load.order, load.order, expired if has_expired else NOTHING)


def _keys(load: Upsert | Scd2) -> tuple[str, ...]:
    return (*load.keys, load.effective) if isinstance(load, Scd2) else load.keys


def _columns(load: Upsert | Scd2, *more: str) -> list[str]:
    names = {name.casefold(): name for name in (*(by.column for by in load.order), *_keys(load), *more)}
    return list(names.values())


def _expired(run: RunContext[SliceT], intent: Intent) -> Between:
    keep = run.dataflow.target.keep_tombstones
    assert keep is not None
    return Between(_DELETED_AT, None, datetime.fromisoformat(intent.time) - keep)
