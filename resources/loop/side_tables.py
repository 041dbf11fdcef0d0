"""A stream's rows for its side tables: buffer, late rows, quarantine and the rows of ``over``.

A run writes them before the slice's own rows, under the same number. See docs/explanation/protocol.md.
"""

from __future__ import annotations

from partitions.errors import Conflict, NeedsDecision, TargetError
from partitions.loads import Append, Load, Replace, ReplaceAll
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import SideRows, WritesSideTables
from resources.loop.context import RunContext
from resources.outcome import Step
from resources.spark.failures import root_cause
from resources.tables.contract.commits import Tag, Version
from resources.tables.contract.table import Table
from resources.watermarks.entry import Intent, new_id


def write_side_tables(run: RunContext[SliceT], intent: Intent, slice_: SliceT) -> None:
    """Write the rows of a slice that go into side tables; skip tables that hold the slice's number.

    Raises:
        NeedsDecision: code ``foreign_tag``: a side table is ahead of the state.
        Conflict: another run has given the number up.
    """
    writing = run.kind.writing
    if not isinstance(writing, WritesSideTables):
        return
    for side in writing.side_rows(run.spark, slice_, run.log.get_schema(intent.pinned)):
        if not side.has_rows and side.replaces_none and intent.replaces != "table":
            continue
        table = run.sides[side.table]
        tip = table.tip(intent.app_id)
        if tip.highest_tag >= intent.number:
            check_number_is_ours(run, table, f"{run.dataflow.table}__{side.table}", intent)
            continue
        base, load = tip.version, _side_load(intent, side, tip.version)
        if not side.has_rows and (base is None or not _changes_without_rows(table, base, load)):
            continue
        rows = side.rows if side.has_rows else side.rows.limit(0)
        table.write(rows, load, Tag(intent.app_id, intent.number, intent.id), "{}", base=base)
        run.notify(Step.SET_ASIDE, f"slice {intent.number}: rows go into {run.dataflow.table}__{side.table}")


def _side_load(intent: Intent, side: SideRows, base: Version | None) -> Load:
    """Return how rows go into a side table: they replace all its rows if the slice replaces the target."""
    if base is None:
        return Append()
    if intent.replaces == "table":
        return ReplaceAll()
    return Append() if side.replaces_none else Replace(side.replaced)


def _changes_without_rows(table: Table, base: Version, load: Load) -> bool:
    """Return whether a load of no rows changes a side table, because it deletes some."""
    return not isinstance(load, Replace) or table.contents.holds_any(base, load.where)


def fence_side_tables(run: RunContext[SliceT], intent: Intent) -> None:
    """Fence an abandoned number in the side tables, so that a slow writer can add nothing.

    The next slice replaces what it has written there. A table that does not exist yet cannot be fenced.

    Raises:
        TargetError: a table refuses the fence.
    """
    for name, table in run.sides.items():
        if not table.exists() or table.tip(intent.app_id).highest_tag >= intent.number:
            continue
        fence = Tag(intent.app_id, intent.number, new_id(), gives_up=True)
        try:
            table.give_up(run.spark, fence, "{}", first_rows=None)
        except Exception as error:
            raise TargetError(
                f"dataflow {run.name}: abandoning slice {intent.number} failed in table "
                f"{run.dataflow.table}__{name}: {root_cause(error)}. Run again; a second try does no harm"
            ) from error


def check_number_is_ours(run: RunContext[SliceT], table: Table, table_name: str, intent: Intent) -> None:
    """Raise if another intent wrote the number in a side table: the table would skip our rows silently.

    Raises:
        NeedsDecision: code ``foreign_tag``: the table is ahead of the state.
        Conflict: the number was given up.
    """
    commit = table.head(None, intent.app_id).find_tagged_commit(intent.number)
    if commit is not None and commit.owner == intent.id:
        return
    name = run.name
    if commit is not None and commit.gives_up:
        raise Conflict(
            f"dataflow {name}: slice {intent.number} was abandoned by another run. Run again: the run "
            "plans its work anew"
        )
    raise NeedsDecision(
        f"dataflow {name}: table {table_name} holds number {intent.number} or a later one for another "
        f"slice, so it would drop the rows that slice {intent.number} writes there. The state and the "
        "main table are older than this table (restored from a backup?). Run `state adopt`, which "
        "continues above its numbers, or `state reset --replace` to reload the table",
        code="foreign_tag",
        choices=(
            f"strandline state adopt {name} --reason TEXT",
            f"strandline state reset {name} --replace --reason TEXT",
        ),
    )
