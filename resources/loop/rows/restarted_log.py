"""Refuse change events of a database whose log has begun anew.

Their positions cannot be compared with those before. A failover to another MySQL server and a restored PostgreSQL begin one. See docs/reference/debezium.md, Limits.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from partitions.errors import LogRestarted
from partitions.loads import Load, Upsert
from partitions.sources.event_columns import POSITION, TIME
from partitions.table_names import TOMBSTONES
from partitions.target import HELPER_PREFIX
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.sql import quoted
from resources.tables.contract.table import Table
from resources.tables.rows.merge_statement import same_keys
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOLERANCE = timedelta(minutes=10)
"""MySQL dates a change when its statement begins, so one that waited for a lock may follow a later one."""

_STORED = f"{HELPER_PREFIX}stored_"
"""Prefix of the table's columns beside those of the slice."""


def check_log_goes_on(run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Load) -> None:
    """Check that no event of an upsert is older than its key's last event by position, but later by time.

    Its row would be left out as the older one.

    Args:
        run: the run.
        intent: intent of the slice.
        rows: rows of the slice, each key once; cached, since they are read once more.
        load: load of the slice.

    Raises:
        LogRestarted: some event is.
    """
    if not run.dataflow.source.sends_changes or not isinstance(load, Upsert):
        return
    keys = [key.casefold() for key in load.keys]
    columns = {name.casefold() for name in rows.columns}
    if not {*keys, POSITION, TIME} <= columns:
        return
    for table in (run.table, run.sides.get(TOMBSTONES)):
        if table is not None and table.exists():
            _check_against(run, intent, rows, load, table)


def _check_against(
    run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Upsert, table: Table
) -> None:
    from pyspark.sql import functions as F

    needed = {name: f"{_STORED}{number}" for number, name in enumerate((*load.keys, POSITION, TIME))}
    stored_columns = {name.casefold() for name in table.contents.columns()}
    if not {name.casefold() for name in needed} <= stored_columns:
        return
    stored = table.contents.read(run.spark, table.contents.newest_version()).select(
        *[F.col(quoted(name)).alias(alias) for name, alias in needed.items()]
    )
    same_key = same_keys(load.keys, {key.lower(): needed[key] for key in load.keys})
    position, stored_time = F.col(needed[POSITION]), F.col(needed[TIME])
    restarted = (
        (position > F.col(POSITION))
        # A snapshot that was taken right behind the key's last change repeats it.
        & ~position.startswith(F.col(POSITION))
        & (F.col(TIME) > stored_time + F.lit(_TOLERANCE))
    )
    first = rows.join(stored, same_key & restarted).select(POSITION, TIME, position, stored_time).head()
    if first is None:
        return
    lower, later, higher, earlier = first
    raise LogRestarted(
        f"dataflow {run.name}: expected positions in the database's log that rise with time, found an event at {lower}"
        f" of {later:%Y-%m-%d %H:%M:%S} UTC in slice {intent.number}, whose key has an event at {higher} of"
        f" {earlier:%Y-%m-%d %H:%M:%S} UTC. The log has begun anew, as after a failover or a restore; nothing of the"
        f" slice was loaded. Let Debezium take a new snapshot into another folder, name that one in source.path,"
        f" and run `strandline state reset {run.name} --replace`"
    )
