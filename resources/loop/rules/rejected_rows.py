"""Rows that failed a rule, written into a table of their own before the slice's rows.

See docs/how-to/rules-for-rows.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partitions.loads import Append, Load, Replace, ReplaceAll
from partitions.predicate import EVERYTHING, NOTHING, Among, Predicate, any_of, columns_of
from partitions.rules.definition import COLUMNS, NUMBER, RULES, RUN, TIME
from partitions.table_names import REJECTED, rejected_table
from partitions.target import DELETES_COLUMN
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.side_tables import check_number_is_ours
from resources.outcome import Step
from resources.sql import quoted
from resources.tables.contract.commits import Tag, Version
from resources.tables.contract.table import FollowsUp, Table
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_rejected(
    run: RunContext[SliceT],
    intent: Intent,
    slice_: SliceT,
    rejected: DataFrame | None,
    rows: DataFrame,
    failed: str,
) -> None:
    """Write the rejected rows of a slice in one commit under its number; a second call writes nothing.

    They replace those of the same parts of the source, which the slice reads again.

    Args:
        run: the run.
        intent: intent of the slice.
        slice_: the slice.
        rejected: the rejected rows; None if there are none.
        rows: all rows of the slice.
        failed: the column of ``rejected`` with the names of the rules.

    Raises:
        NeedsDecision: code ``foreign_tag``: the table of rejected rows is ahead of the state.
        Conflict: another run has given the number up.
    """
    table, name = run.sides[REJECTED], rejected_table(run.dataflow)
    tip = table.tip(intent.app_id)
    if tip.highest_tag >= intent.number:
        check_number_is_ours(run, table, name, intent)
        return
    base = tip.version
    own_rows = run.kind.writing.own_rows(slice_, rows) if base is not None else NOTHING
    load = _load_of_rejected(intent, table, base, own_rows)
    if rejected is None:
        if base is None or not _changes_without_rows(table, load):
            return
        rejected = table.contents.read(run.spark, base).limit(0)
    else:
        rejected = _with_reasons(intent, rejected, failed)
    table.write(rejected, load, Tag(intent.app_id, intent.number, intent.id), "{}", base=base)
    run.notify(Step.SET_ASIDE, f"slice {intent.number}: rejected rows go into {name}")


def _with_reasons(intent: Intent, rejected: DataFrame, failed: str) -> DataFrame:
    from pyspark.sql import functions as F

    columns = [
        F.col(quoted(name)) for name in rejected.columns if name not in (failed, DELETES_COLUMN, *COLUMNS)
    ]
    return rejected.select(
        F.array_join(F.col(failed), ", ").alias(RULES),
        F.lit(intent.number).cast("long").alias(NUMBER),
        F.lit(intent.run_id).cast("string").alias(RUN),
        F.lit(intent.time).cast("timestamp").alias(TIME),
        *columns,
    )


def _load_of_rejected(intent: Intent, table: Table, base: Version | None, own_rows: Predicate) -> Load:
    """Return how rejected rows go into their table."""
    if base is None:
        return Append()
    if intent.replaces == "table":
        return ReplaceAll()
    columns = {name.casefold() for name in table.contents.columns()}
    if own_rows == NOTHING or not {name.casefold() for name in columns_of(own_rows)} <= columns:
        return Append()
    if not table.contents.holds_any(base, own_rows):
        return Append()
    if own_rows == EVERYTHING:
        return ReplaceAll()
    # All new rows have the number, even if the user's step has moved them out of the part that was read.
    return Replace(any_of((own_rows, Among(NUMBER, (intent.number,)))))


def _changes_without_rows(table: Table, load: Load) -> bool:
    return not isinstance(load, Append) and (isinstance(load, Replace) or table.contents.count_rows() > 0)


def follow_up_rejected(run: RunContext[Any], entry: Entry) -> None:
    """Run the table format's follow-up work for rejected rows that were committed with an entry."""
    if REJECTED not in run.sides:
        return
    table: Table = run.sides[REJECTED]
    tip = table.tip(entry.app_id)
    if isinstance(table, FollowsUp) and tip.newest is not None and tip.highest_tag == entry.number:
        table.after_append(tip.newest, run.name)


def promote_rejected(run: RunContext[Any], intent: Intent, isolated: Table, where: Predicate) -> None:
    """Put the rejected rows of an isolated replay in place of those of the same range; once.

    Args:
        run: the run of the live dataflow.
        intent: intent of the promote.
        isolated: the replay's table of rejected rows, which need not exist.
        where: the rows of the range.

    Raises:
        NeedsDecision, Conflict: as :func:`write_rejected`.
    """
    from pyspark.sql import functions as F

    table = run.sides.get(REJECTED)
    if table is None:
        return
    tip = table.tip(intent.app_id)
    if tip.highest_tag >= intent.number:
        check_number_is_ours(run, table, rejected_table(run.dataflow), intent)
        return
    load = _load_of_rejected(intent, table, tip.version, where)
    source = isolated if isolated.exists() else table
    if not isolated.exists() and (tip.version is None or isinstance(load, Append)):
        return
    rows = source.contents.read(run.spark, source.contents.newest_version())
    rows = rows.withColumn(NUMBER, F.lit(intent.number).cast("long"))
    rows = rows if source is isolated else rows.limit(0)
    table.write(rows, load, Tag(intent.app_id, intent.number, intent.id), "{}", base=tip.version)


def undo_rejected(run: RunContext[Any], intent: Intent) -> None:
    """Take the commit of an abandoned slice back out of the table of rejected rows.

    Its rows are read again, and those that it has replaced are still to be released. A second call changes
    nothing.

    Raises:
        TargetError: the table cannot be read or written.
    """
    table = run.sides.get(REJECTED)
    if table is None or not table.exists():
        return
    commit = table.head(None, intent.app_id).find_tagged_commit(intent.number)
    if commit is None or commit.owner != intent.id:
        return
    # Under an id of its own: the number is taken under the dataflow's.
    tag = Tag(f"{intent.app_id}-undone", intent.number, intent.id, deletes=True)
    tip = table.tip(tag.app_id)
    if tip.highest_tag >= intent.number:
        return
    rows = table.contents.read(run.spark, commit.version if commit.follows is None else commit.follows)
    if commit.follows is None:
        rows = rows.limit(0)
    table.write(rows, ReplaceAll(), tag, "{}", base=tip.version)
    run.notify(Step.SET_ASIDE, f"slice {intent.number}: its rejected rows are taken back")
