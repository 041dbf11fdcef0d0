"""A delete in several tables: the named one, and with ``--downstream`` all that are made from it.

Each delete is a commit and an entry of its own, upstream first. The same command again goes on where a
dead process has stopped: a delete that is done is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.lineage import Lineage
from partitions.sql_condition import named_columns
from resources.decisions.delete import DeletePreview, delete_rows, preview_delete
from resources.decisions.purge import Purged, check_purge, describe_purge, purge_deleted
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class DeleteOptions:
    """The options of a delete.

    Attributes:
        where: the condition in Spark's SQL.
        downstream: whether tables that are made from this one lose the rows, too.
        purge: whether old versions and files that hold the rows are deleted.
    """

    where: str
    downstream: bool = False
    purge: bool = False


@dataclass(frozen=True)
class Deleted:
    """The result of a delete.

    Attributes:
        entries: the entry of each dataflow, upstream first.
        purged: the purges, in the same order; none without ``purge``.
    """

    entries: Mapping[str, Entry]
    purged: Sequence[Purged] = ()


@dataclass(frozen=True)
class DeletePlan:
    """The tables that a delete changes.

    Attributes:
        previews: the effect on each, upstream first.
        skipped: dataflows downstream that have no table yet.
        untouched: dataflows downstream whose rows stay.
    """

    previews: tuple[DeletePreview, ...]
    skipped: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Sentences for people about what lies downstream."""
        lines = []
        if self.untouched:
            lines.append(
                f"downstream: {', '.join(self.untouched)}: what they have loaded of these rows stays; --downstream deletes it, too"
            )
        if self.skipped:
            lines.append(f"downstream, without a table yet: {', '.join(self.skipped)}")
        return lines


def plan_delete(
    platform: Opener,
    dataflow: Dataflow,
    dataflows: Mapping[str, Dataflow],
    options: DeleteOptions,
    now: datetime,
) -> DeletePlan:
    """Return what a delete would do to each table. Starts Spark, changes nothing.

    Args:
        platform: the resources.
        dataflow: the dataflow that is named.
        dataflows: all valid dataflows of the project, by name.
        options: the options.
        now: the clock, aware.

    Raises:
        ConfigurationError: the condition is refused, also for a table downstream.
        NeedsDecision, DataflowHeld, Conflict: a state and its table do not match, somebody works on one, or a
            table cannot be purged now.
    """
    below = downstream_of(platform.lineage, dataflow.name, _table_of(dataflows))
    first = preview_delete(platform, dataflow, options.where, now, purges=options.purge)
    if not options.downstream:
        plan = DeletePlan((first,), untouched=tuple(below))
    else:
        flows = [_valid(dataflows, name, dataflow.name) for name in below]
        existing = [flow for flow in flows if platform.table(flow).exists()]
        for flow in existing:
            _check_columns(platform, flow, dataflow.name, options.where, list(first.columns))
        deleted_tables = {dataflow.table, *(flow.table for flow in existing)}
        previews = [
            preview_delete(
                platform,
                flow,
                options.where,
                now,
                tables_upstream=deleted_tables - {flow.table},
                purges=options.purge,
            )
            for flow in existing
        ]
        skipped = tuple(flow.name for flow in flows if flow not in existing)
        plan = DeletePlan((first, *previews), skipped)
    if options.purge:
        for preview in plan.previews:
            check_purge(platform, dataflows[preview.dataflow], dataflows, now)
    return plan


def purge_lines(plan: DeletePlan, dataflows: Mapping[str, Dataflow]) -> list[str]:
    """Describe what the purges of a delete reach, for people."""
    lines = (line for preview in plan.previews for line in describe_purge(dataflows[preview.dataflow]))
    return [*dict.fromkeys(lines)]


def delete_planned(
    platform: Opener,
    dataflows: Mapping[str, Dataflow],
    plan: DeletePlan,
    options: DeleteOptions,
    reason: str,
    now: datetime,
    **how: Any,
) -> Deleted:
    """Delete the rows of each planned table, upstream first; then purge each, if asked to.

    Args:
        platform: the resources.
        dataflows: all valid dataflows of the project, by name.
        plan: the plan.
        options: the options of the plan.
        reason: the operator's reason; stays in each log.
        now: the clock, aware.
        how: as of :func:`resources.decisions.delete.delete_rows`.

    Raises:
        StrandlineError: as :func:`resources.decisions.delete.delete_rows`; tables before are done.
    """
    flows = [dataflows[preview.dataflow] for preview in plan.previews]
    entries = {flow.name: delete_rows(platform, flow, options.where, reason, now, **how) for flow in flows}
    purged = []
    for flow in flows if options.purge else ():
        check_purge(platform, flow, dataflows, now)
        purged.append(purge_deleted(platform, flow, reason, now, **how))
    return Deleted(entries, purged)


def downstream_of(lineage: Lineage, name: str, table_of: Callable[[str], str | None]) -> list[str]:
    """Return all dataflows that read a dataflow's table, or a table made from it, upstream first.

    Args:
        lineage: of the project.
        name: the dataflow.
        table_of: returns a dataflow's table; None if its file has errors.
    """
    found_names, waiting = dict[str, None](), [name]
    while waiting:
        table = table_of(waiting.pop())
        readers = lineage.readers_of(table) if table is not None else ()
        new = [reader for reader in readers if reader not in found_names and reader != name]
        found_names |= dict.fromkeys(new)
        waiting += new
    return lineage.in_order(list(found_names))


def _table_of(dataflows: Mapping[str, Dataflow]) -> Callable[[str], str | None]:
    return lambda name: dataflows[name].table if name in dataflows else None


def _valid(dataflows: Mapping[str, Dataflow], reader: str, name: str) -> Dataflow:
    if reader not in dataflows:
        raise ConfigurationError(
            f"dataflow {name}: --downstream: expected a valid file of dataflow {reader}, which reads its rows, found errors. Nothing was deleted."
            " Correct the file",
            choices=("strandline validate",),
        )
    return dataflows[reader]


def _check_columns(platform: Opener, flow: Dataflow, name: str, where: str, columns: Sequence[str]) -> None:
    """Raise ConfigurationError unless the condition names columns, and a downstream table has them all."""
    table_columns = platform.table(flow).contents.columns()
    available_names = {column.casefold() for column in table_columns}
    missing = [column for column in columns if column.casefold() not in available_names]
    if missing or not named_columns(where, table_columns):
        raise ConfigurationError(
            f"dataflow {name}: --downstream: expected columns {', '.join(missing)} of the condition in {flow.table} of dataflow {flow.name}, found"
            f" {', '.join(table_columns)}. Nothing was deleted. Delete there by a condition of its own, then here without --downstream",
            code="predicate",
            choices=(
                f"strandline delete {flow.name} --where SQL --reason TEXT",
                f"strandline delete {name} --where {where!r} --reason TEXT",
            ),
        )
