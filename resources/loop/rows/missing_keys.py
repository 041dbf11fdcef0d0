"""Keys that a complete read lacks: ``target.on_missing`` (docs/how-to/deletes.md).

Such a key gets a row that deletes it, so every table and load treats it like a delete of the source. A read
that lacks too many keys stops the run before it changes anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError, NeedsDecision
from partitions.loads import ByKeys, Load, Scd2, Upsert
from partitions.plan import pluralize
from partitions.predicate import NOTHING
from partitions.target import DATAFLOW_COLUMN, DELETES_COLUMN
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import ReadsWhole
from resources.loop.context import RunContext
from resources.spark.frames import read_once, type_of_column
from resources.sql import quoted
from resources.tables.rows.deduplicate import drop_shared_keys
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TIMES = ("timestamp", "timestamp_ntz", "date")
_STORED = "_strandline_stored_"
"""Prefix of columns with what the table has for a key."""


def is_superseded(run: RunContext[SliceT], entry: Entry | None, slice_: SliceT) -> bool:
    """Return whether a later window of a complete source is loaded, so that this one changes nothing."""
    writing = run.kind.writing
    if not _reads_whole(run) or entry is None or not isinstance(writing, ReadsWhole):
        return False
    return writing.is_superseded(slice_, entry.state())


def load_of_whole(run: RunContext[SliceT], load: Load) -> Load:
    """Return the load of a complete read: missing keys are deleted by rows, not by a range."""
    return replace(load, where=NOTHING) if _reads_whole(run) and isinstance(load, Upsert) else load


def check_missing_keys(run: RunContext[SliceT], intent: Intent, rows: DataFrame, load: Load) -> DataFrame:
    """Return a complete read's rows, cached, after a check that they do not lack too many keys.

    Other rows are returned as they are. Nothing is stored yet.

    Args:
        run: the run.
        intent: intent of the slice.
        rows: rows of the slice.
        load: load of the definition.

    Raises:
        NeedsDecision: code ``too_many_deleted``.
        ConfigurationError: code ``query``: the effective column is no time.
    """
    if not isinstance(load, ByKeys) or not run.dataflow.target.removes_missing:
        return rows
    if isinstance(load, Scd2):
        _check_time(run, load, rows)
    if not _compares(run, intent):
        return rows
    rows = read_once(rows)
    _check_share(run, rows, load)
    return rows


def with_missing_keys(
    run: RunContext[SliceT],
    intent: Intent,
    slice_: SliceT,
    rows: DataFrame,
    load: Load,
    *,
    is_checked: bool = False,
) -> DataFrame:
    """Return a complete read's rows, and a row for each key that they lack, which deletes it.

    Other rows are returned as they are.

    Args:
        run: the run.
        intent: intent of the slice.
        slice_: the slice.
        rows: rows of the slice, each key once, with the marks of deletes.
        load: load of the definition.
        is_checked: whether :func:`check_missing_keys` has returned these rows. Another read of the source, as by
            a run that finishes the slice, may lack more keys.

    Raises:
        NeedsDecision: code ``too_many_deleted``.
    """
    if not isinstance(load, Upsert | Scd2) or not run.dataflow.target.removes_missing:
        return rows
    if not _compares(run, intent):
        return rows
    rows = read_once(rows)
    if not is_checked:
        _check_share(run, rows, load)
    moment = _moment(run, intent, slice_)
    missing = drop_shared_keys(_stored_rows(run, load), rows, load.keys)
    if isinstance(load, Scd2):
        rows = _after_current_versions(run, rows, load, moment)
    return rows.unionByName(_deleting_rows(missing, rows, load, moment))


def _reads_whole(run: RunContext[SliceT]) -> bool:
    return any(source.complete for source in run.dataflow.source.parts.values())


def _compares(run: RunContext[SliceT], intent: Intent) -> bool:
    """Return whether the table has rows that the read is compared with."""
    return intent.replaces != "table" and run.table.exists()


def _stored_rows(run: RunContext[SliceT], load: ByKeys, *, is_current: bool = True) -> DataFrame:
    """Return the dataflow's rows of the table; of versions only current ones, unless all are asked for."""
    from pyspark.sql import functions as F

    rows = run.table.contents.read(run.spark, run.table.contents.newest_version())
    if run.dataflow.target.shared:
        rows = rows.where(F.col(DATAFLOW_COLUMN) == run.name)
    if isinstance(load, Scd2) and is_current:
        rows = rows.where(F.col(quoted(load.names.is_current)))
    return rows


def _check_share(run: RunContext[SliceT], rows: DataFrame, load: ByKeys) -> None:
    """Raise NeedsDecision if the rows lack more of the table's keys than the definition allows."""
    target, name = run.dataflow.target, run.name
    stored = _stored_rows(run, load)
    missing = drop_shared_keys(stored, rows, load.keys).count()
    total = stored.count() if missing else 0
    if missing <= target.max_deleted_share * total:
        return
    removed = "would be deleted" if target.on_missing == "delete" else "would end"
    raise NeedsDecision(
        f"dataflow {name}: expected a source that lacks at most {target.max_deleted_text} of the keys of table "
        f"{run.dataflow.table}, since source.complete says that each read is the whole; found "
        f"{pluralize(missing, 'key')} of {total:,} missing ({missing / total:.0%}), which {removed}. The run stopped "
        "before it changed anything. Restore the source and run; or, if these keys are gone, raise "
        "target.max_deleted (100% allows every delete) and run",
        code="too_many_deleted",
        choices=(f"strandline run {name}",),
    )


def _check_time(run: RunContext[SliceT], load: Scd2, rows: DataFrame) -> None:
    data_type = type_of_column(rows, load.effective)
    if data_type not in _TIMES:
        raise ConfigurationError(
            f"dataflow {run.name}: target.effective_column: expected a time or a date beside on_missing: retire, "
            f"since a version ends when its key is missing; found {load.effective} of type {data_type}. Name "
            "_ingested_at, which is the time of the read, or use on_missing: keep",
            code="query",
        )


def _moment(run: RunContext[SliceT], intent: Intent, slice_: SliceT) -> Column:
    """Return the time of a read: the start of its window, else the time of its intent."""
    from pyspark.sql import functions as F

    writing = run.kind.writing
    start = writing.start_of(slice_) if isinstance(writing, ReadsWhole) else None
    return F.lit(intent.time if start is None else start.isoformat()).cast("timestamp")


def _deleting_rows(missing: DataFrame, rows: DataFrame, load: Upsert | Scd2, moment: Column) -> DataFrame:
    """Return rows of the table as rows that delete their key, with the columns of the slice's rows."""
    from pyspark.sql import functions as F

    needed = {name.lower() for name in (*load.keys, *(by.column for by in load.order))}
    stored_names = {name.lower(): name for name in missing.columns}
    values: dict[str, Column] = {}
    for name, data_type in rows.dtypes:
        stored = stored_names.get(name.lower())
        value = F.lit(None) if stored is None or name.lower() not in needed else F.col(quoted(stored))
        values[name] = value.cast(data_type)
    values[DELETES_COLUMN] = F.lit(True)
    if isinstance(load, Scd2):
        effective = next(name for name in rows.columns if name.lower() == load.effective.lower())
        time = moment.cast(type_of_column(rows, effective))
        values[effective] = F.greatest(F.col(quoted(load.names.valid_from)), time)
        values[load.begins or effective] = values[effective]
    return missing.select(*[value.alias(name) for name, value in values.items()])


def _after_current_versions(
    run: RunContext[SliceT], rows: DataFrame, load: Scd2, moment: Column
) -> DataFrame:
    """Return rows that begin no earlier than what the table has for their key.

    The newest read is what holds now: a row that keeps an older time corrects the current version, and a
    key that comes back begins anew at the time of the read.
    """
    from pyspark.sql import functions as F

    assert load.begins is not None
    names, versions = load.names, _stored_rows(run, load, is_current=False)
    is_deleted = F.col(quoted(names.is_deleted)) if names.is_deleted in versions.columns else F.lit(False)
    start, end = F.col(quoted(names.valid_from)), F.col(quoted(names.valid_to))
    keys = {key: f"{_STORED}{number}" for number, key in enumerate(load.keys)}
    current, ended, is_current = f"{_STORED}current", f"{_STORED}ended", f"{_STORED}is_current"
    by_key = versions.groupBy(*[F.col(quoted(key)).alias(alias) for key, alias in keys.items()]).agg(
        F.max(F.when(F.col(quoted(names.is_current)), start)).alias(current),
        F.max(F.when(is_deleted, end)).alias(ended),
        F.bool_or(F.col(quoted(names.is_current))).alias(is_current),
    )
    same_keys = " AND ".join(f"{quoted(key)} <=> {quoted(alias)}" for key, alias in keys.items())
    time, data_type = F.col(quoted(load.effective)), type_of_column(rows, load.effective)
    is_behind = F.coalesce(~F.col(is_current), F.lit(False)) & (time.isNull() | (F.col(ended) >= time))
    begins = (
        F.when(F.col(is_current), F.greatest(F.col(current), time))
        .when(is_behind, F.greatest(F.col(ended), moment.cast(data_type)))
        .otherwise(time)
    )
    joined_rows = rows.join(by_key, F.expr(same_keys), "left")
    return joined_rows.select(*[F.col(quoted(name)) for name in rows.columns], begins.alias(load.begins))
