"""Rows of a slice that go into other tables, each in one commit under the slice's number, before the slice's own (docs/explanation/protocol.md)."""

from __future__ import annotations

from partitions.errors import Conflict, NeedsDecision, TargetError
from partitions.loads import Append, Load, Replace, ReplaceAll
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import Aside, WritesAside
from resources.loop.context import RunContext
from resources.outcome import Step
from resources.spark.failures import root_cause
from resources.tables.contract.commits import Tag, Version
from resources.tables.contract.table import Table
from resources.watermarks.entry import Intent, new_id


def write_asides(run: RunContext[SliceT], intent: Intent, slice_: SliceT) -> None:
    """Write the rows of a slice that go into side tables. Done twice it writes once.

    Raises:
        NeedsDecision: code ``foreign_tag``: a side table is ahead of the state.
        Conflict: another run has given the number up.
    """
    writing = run.kind.writing
    if not isinstance(writing, WritesAside):
        return
    for aside in writing.aside(run.spark, slice_, run.log.get_schema(intent.pinned)):
        if not aside.has_rows and aside.none_there and intent.replaces != "table":
            continue
        table = run.sides[aside.table]
        tip = table.tip(intent.app_id)
        if tip.highest_tag >= intent.number:
            check_written(run, table, f"{run.dataflow.table}__{aside.table}", intent)
            continue
        base, load = tip.version, _load(intent, aside, tip.version)
        if not aside.has_rows and (base is None or not _changes(table, base, load)):
            continue
        rows = aside.rows if aside.has_rows else aside.rows.limit(0)
        table.write(rows, load, Tag(intent.app_id, intent.number, intent.id), "{}", base=base)
        run.notify(Step.SET_ASIDE, f"slice {intent.number}: rows go into {run.dataflow.table}__{aside.table}")


def _load(intent: Intent, aside: Aside, base: Version | None) -> Load:
    """A table that is loaded again may have other columns, and so may what is beside it."""
    if base is None:
        return Append()
    if intent.replaces == "table":
        return ReplaceAll()
    return Append() if aside.none_there else Replace(aside.replaced)


def _changes(table: Table, base: Version, load: Load) -> bool:
    """Whether a load of no rows changes a table."""
    return not isinstance(load, Replace) or table.contents.holds_any(base, load.where)


def fence_asides(run: RunContext[SliceT], intent: Intent) -> None:
    """Take an abandoned number in the side tables, too: a writer that was believed dead sets nothing aside any more.

    What it has set aside makes room with the next slice. A table that is not there yet cannot be fenced.

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
                f"dataflow {run.name}: slice {intent.number} could not be given up in table {run.dataflow.table}__{name}: {root_cause(error)}. Trying"
                " again does no harm"
            ) from error


def check_written(run: RunContext[SliceT], table: Table, shown: str, intent: Intent) -> None:
    """Raise unless a side table holds the number for this intent: it skips any other write of it in silence.

    Raises:
        NeedsDecision: code ``foreign_tag``: it is ahead of the state.
        Conflict: the number was given up.
    """
    written = table.head(None, intent.app_id).find_tagged_commit(intent.number)
    if written is not None and written.owner == intent.id:
        return
    name = run.name
    if written is not None and written.gives_up:
        raise Conflict(
            f"dataflow {name}: slice {intent.number} was given up by another run; run again, it is planned again"
        )
    raise NeedsDecision(
        f"dataflow {name}: table {shown} holds number {intent.number} or a later one for another slice, so that what slice {intent.number}"
        " sets aside there would be lost. State and table are older than it (restored from a backup?). Run `state adopt`, which goes on above"
        " its numbers, or `state reset --replace` to reload the table",
        code="foreign_tag",
        choices=(
            f"strandline state adopt {name} --reason TEXT",
            f"strandline state reset {name} --replace --reason TEXT",
        ),
    )
