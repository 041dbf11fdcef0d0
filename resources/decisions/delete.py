"""``strandline delete``: delete rows for good, by a condition that keeps such rows away later.

See docs/how-to/deleting-and-keeping.md. The delete is one commit of the table and one entry, by the commit
protocol (:mod:`resources.loop.deleting`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.plan import pluralize
from resources.decisions.delete_condition import Condition, MatchingRows, check_condition, matching_rows
from resources.decisions.draft import (
    Draft,
    DraftBuilder,
    draft_entry,
    require_current_definition,
    require_entry,
)
from resources.kinds.contract.decisions import KnowsFiles
from resources.loop.context import RunContext
from resources.loop.deleting import commit_delete, forgotten
from resources.loop.ending import end_abandoned
from resources.loop.verifying import guarded_head
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.watermarks.deleted_rows import DeleteInForce, deletes_in_force
from resources.watermarks.entry import DELETES, Entry, check_reason

_HISTORY = 1_000_000


@dataclass(frozen=True)
class DeletePreview:
    """The effect that a delete would have.

    Attributes:
        dataflow: the dataflow's name.
        predicate: the condition.
        columns: the columns that it names.
        matching: the rows that would go.
        in_force: the delete of the same condition that is in force already; None if there is none.
        lines: sentences for people.
    """

    dataflow: str
    predicate: str
    columns: tuple[str, ...]
    matching: MatchingRows
    in_force: DeleteInForce | None
    lines: tuple[str, ...]

    @property
    def does_nothing(self) -> bool:
        """Whether the condition is in force already, and no row matches it."""
        return self.in_force is not None and not self.matching.rows

    def as_json(self) -> dict[str, Any]:
        """Return the preview in the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "dataflow": self.dataflow,
            "predicate": self.predicate,
            "matching": self.matching.as_json(),
            "in_force": self.in_force.number if self.in_force else None,
        }


def preview_delete(
    platform: Opener,
    dataflow: Dataflow,
    where: str,
    now: datetime,
    *,
    tables_upstream: Collection[str] = (),
    purges: bool = False,
) -> DeletePreview:
    """Return what a delete would do. Starts Spark, changes nothing.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        where: the condition in Spark's SQL.
        now: the clock, aware.
        tables_upstream: tables from which the same command deletes the rows before.
        purges: whether the same command purges the table afterwards.

    Raises:
        ConfigurationError: the condition is refused, or there is nothing to delete from.
        NeedsDecision: state and table do not match.
        DataflowHeld: a living run or a decision works on the next number.
    """
    run = platform.loop(dataflow, now).context
    last, open_intent = platform.unfinished_intent(dataflow, now, lambda run_id: None).preview()
    newest = platform.log.newest(dataflow.name)
    require_current_definition(platform, dataflow, newest)
    if open_intent is None:
        guarded_head(run, newest)
    condition = check_condition(run, where)
    matching = matching_rows(run, condition)
    in_force = _same_delete(deletes_in_force(platform.log, last), condition)
    lines = []
    if open_intent is not None:
        lines.append(
            f"number {open_intent.number} ({open_intent.why}), which was begun and not finished, is ended first"
        )
    lines += _describe(dataflow, matching)
    lines.append(_describe_remains(dataflow, tables_upstream, purges))
    if in_force:
        lines.append(f"the condition is in force already, since entry {in_force.number}")
    else:
        lines.append(
            "the condition stays in force: no later load, replay or decision brings such rows back, until `--forget` ends it"
        )
        if dataflow.target.merges:
            lines.append(
                "a later version of a key that matches is withheld, so the table keeps the key's last version that does not match"
            )
    return DeletePreview(
        dataflow.name, condition.predicate, tuple(condition.columns), matching, in_force, tuple(lines)
    )


def _describe(dataflow: Dataflow, matching: MatchingRows) -> list[str]:
    """Return sentences on the matching rows: their number, places and examples."""
    where = [f"in {pluralize(matching.files, 'data file')}"] if matching.rows else []
    if matching.rows and matching.partitions is not None:
        where.append(f"in {pluralize(matching.partitions, 'partition')}")
    if matching.rows and matching.source_files is not None:
        where.append(f"from {pluralize(matching.source_files, 'source file')}")
    places = f", {', '.join(where)}" if where else ""
    verb = "matches" if matching.rows == 1 else "match"
    lines = [f"{pluralize(matching.rows, 'row')} of {matching.total:,} in {dataflow.table} {verb}{places}"]
    lines += [
        f"for example: {', '.join(f'{name}={value}' for name, value in example.items())}"
        for example in matching.examples
    ]
    return lines


def _describe_remains(dataflow: Dataflow, tables_upstream: Collection[str], purges: bool) -> str:
    """Return which sources and versions hold the deleted rows after the command, for people."""
    sources = dataflow.source.parts.values()
    holders = [source.label for source in sources if source.lake_table not in tables_upstream]
    if not holders:
        start = f"the command deletes the rows from the source {dataflow.source.label}, too"
    elif len(holders) == len(sources):
        start = "the source still holds the rows"
    else:
        start = f"of the sources {', '.join(holders)} may still hold the rows; the command deletes them from the others"
    versions = "go with --purge" if purges else "hold them until a purge"
    return f"{start}; older versions of the table {versions}"


def delete_rows(
    platform: Opener,
    dataflow: Dataflow,
    where: str,
    reason: str,
    now: datetime,
    *,
    run_id: str | None = None,
    job_id: str | None = None,
    observer: Observer = lambda step, line: None,
    **patience: Any,
) -> Entry:
    """Delete rows of a table in one commit, and keep the condition in force; return the delete's entry.

    If the same condition is in force already and no row matches it, return the newest entry and change
    nothing. So the same command may be repeated after a kill.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        where: the condition in Spark's SQL, over the table's columns.
        reason: the operator's reason; stays in the log.
        now: the clock, aware.
        run_id: Dagster's run id, if the run is Dagster's.
        job_id: Dagster's job.
        observer: is called at each step.
        patience: attributes of :class:`resources.loop.holder_wait.HolderPolicy`, for a live run.

    Raises:
        ConfigurationError: there is no reason, or the condition is refused.
        NeedsDecision: state and table do not match.
        DataflowHeld: a run or decision still works on the dataflow.
        Conflict: another run was faster.
        TargetError: the write failed.
    """
    check_reason(dataflow.name, reason)
    log = platform.log
    loop = platform.loop(dataflow, now, run_id=run_id, job_id=job_id, observer=observer, **patience)
    run = loop.context
    entry = end_abandoned(run, loop.holder_policy, "a delete", reason)
    last = require_current_definition(platform, dataflow, entry)
    condition = check_condition(run, where)
    if _same_delete(deletes_in_force(log, last), condition) is not None and not _has_rows(run, condition):
        return last
    return commit_delete(run, last, condition.predicate, condition.columns, reason)


def _has_rows(run: RunContext[Any], condition: Condition) -> bool:
    return matching_rows(run, condition).rows > 0


def _same_delete(deletes: Sequence[DeleteInForce], condition: Condition) -> DeleteInForce | None:
    """Return the delete in force with the same condition; None if there is none."""
    return next((delete for delete in deletes if delete.predicate == condition.predicate), None)


def forget_delete(reason: str, number: int) -> DraftBuilder:
    """End all deletes of one condition. No row comes back by itself.

    Args:
        reason: the operator's reason.
        number: number of the delete's entry.

    Raises:
        ConfigurationError: code ``no_delete``: that delete is not in force; or there is no entry or reason.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        last = require_entry(dataflow, last)
        deletes = deletes_in_force(platform.log, last)
        ended = next((delete for delete in deletes if delete.number == number), None)
        if ended is None:
            numbers = ", ".join(f"{delete.number} ({delete.predicate})" for delete in deletes)
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --forget: expected the entry of a delete that is in force ({numbers or 'there is none'}), found {number}",
                code="no_delete",
                choices=(f"strandline state history {dataflow.name}",),
            )
        entry = draft_entry(platform, dataflow, last, "forget", reason, predicate=ended.predicate)
        notes = (
            f"rows where {ended.predicate} are loaded again from now on",
            _describe_absent_rows(platform, dataflow, deletes, ended.predicate),
            *_describe_deletes_downstream(platform, dataflow, ended.predicate),
        )
        return Draft(entry, notes=notes, deletes=forgotten(deletes, ended.predicate))

    return build_draft


def _describe_absent_rows(
    platform: Opener, dataflow: Dataflow, deletes: Sequence[DeleteInForce], predicate: str
) -> str:
    """Return which rows stay away once a condition is forgotten, and what brings them back, for people.

    The log counts the withheld rows. If it does not reach back to the first delete, it has lost some counts.
    """
    numbers = {delete.number for delete in deletes if delete.predicate == predicate}
    past_entries = [*platform.log.history(dataflow.name, _HISTORY)]
    withheld = sum(
        rows for past in past_entries for number, rows in (past.withheld or {}).items() if number in numbers
    )
    is_whole = min(numbers) in {past.number for past in past_entries if past.why in DELETES}
    counted = pluralize(withheld, "row") if is_whole else f"at least {pluralize(withheld, 'row')}"
    rules = platform.rules(dataflow)
    read = "files that were loaded" if isinstance(rules, KnowsFiles) else "rows that were read"
    command, later = f"strandline state rewind {dataflow.name} --to 0 --replace", ", or one to a later entry"
    try:
        rules.check_rewind()
    except (ConfigurationError, NeedsDecision):  # this kind never goes back
        command, later = f"strandline state reset {dataflow.name} --replace", ""
    limit = "" if is_whole else " (the log does not reach back to the delete)"
    return (
        f"the deleted rows, and {counted} withheld since{limit}, stay away: {read} meanwhile need to be read again, such as by"
        f" `{command}`{later}"
    )


def _describe_deletes_downstream(platform: Opener, dataflow: Dataflow, predicate: str) -> list[str]:
    """Return a line for each dataflow downstream that has a delete of the same condition in force."""
    lineage = platform.lineage
    readers = [name for name in lineage.names if dataflow.name in lineage.all_upstream_dataflows(name)]
    lines = []
    for name in lineage.in_order(readers):
        in_force = deletes_in_force(platform.log, platform.log.newest(name))
        same = next((delete for delete in in_force if delete.predicate == predicate), None)
        if same is not None:
            command = f"strandline delete {name} --forget {same.number} --reason TEXT"
            lines.append(
                f"{name}, downstream, has the same delete in force (entry {same.number}). To end it, too: {command}"
            )
    return lines
