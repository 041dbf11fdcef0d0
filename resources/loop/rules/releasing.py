"""The release of rejected rows: one number of the protocol.

Its rows come from the table of rejected rows.

Its intent names the rule, the version of that table and the rules of now, so whoever finds it open finishes it
with the same rows. The main commit comes first: the rows leave the table of rejected rows only once they are
loaded. See docs/how-to/rules-for-rows.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import Conflict, RowsRefused, StrandlineError, TargetError
from partitions.fingerprint import fingerprint
from partitions.loads import Append, Load, ReplaceAll, release_load
from partitions.plan import pluralize
from partitions.rules.definition import COLUMNS, RULES
from partitions.table_names import REJECTED
from partitions.target import DELETES_COLUMN
from resources.loop.appending import append, append_abandoned, follow_up
from resources.loop.context import RunContext
from resources.loop.entries import loaded_entry, required_commit
from resources.loop.giving_up import give_up
from resources.loop.guards.definition import check_rules_remain, definition_of
from resources.loop.intents import holding, put_intent
from resources.loop.rows.delete_marks import no_columns
from resources.loop.rows.retention import hold_back_rows
from resources.loop.rows.tombstones import without_buried
from resources.loop.rules.row_rules import FAILED, marked_rows, rules_for_intent, rules_of
from resources.loop.verifying import check_log, find_commit, guarded_head, verified_commit
from resources.outcome import Step
from resources.spark.failures import root_cause
from resources.sql import quoted
from resources.tables.contract.commits import Tag, TaggedCommit, Version
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.contract.table import Table
from resources.tables.rows.keyed_rows import latest_by_key
from resources.watermarks import holder as holders
from resources.watermarks.entry import Entry, Intent, new_id, utc_now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ReleasedRows:
    """The rejected rows that a rule names, by what the rules of now say of them.

    Attributes:
        passing: rows that pass now, with the columns of their rejection.
        staying: all other rejected rows, with the names of the rules that they fail now.
    """

    passing: DataFrame
    staying: DataFrame


def commit_release(run: RunContext[Any], entry: Entry, rule: str, reason: str) -> Entry:
    """Load the rejected rows of a rule that pass the rules of now; return the new entry.

    Args:
        run: the run of the dataflow.
        entry: the newest entry.
        rule: the rule that rejected them.
        reason: the operator's reason.

    Raises:
        NeedsDecision: state and table do not match.
        Conflict, DataflowHeld: another run was faster, or works on the number.
        TargetError: the write failed. Unless the message says otherwise, the next run finishes the release.
    """
    head = guarded_head(run, entry)
    follow_up(run, entry)
    intent = release_intent(run, entry, rule, head.version, reason)
    put_intent(run, intent, f"release of rows that {rule} rejected")
    return finish_release(run, entry, intent)


def release_intent(
    run: RunContext[Any], entry: Entry, rule: str, version: Version | None, reason: str | None = None
) -> Intent:
    """Return the intent of a release under the number after an entry; it is not stored.

    Args:
        run: the run of the dataflow.
        entry: the newest entry.
        rule: the rule that rejected the rows.
        version: the newest version of the dataflow's own table.
        reason: the operator's reason.
    """
    return Intent(
        id=new_id(),
        number=entry.number + 1,
        dataflow=run.name,
        kind=run.dataflow.kind,
        app_id=entry.app_id,
        why="release",
        before=entry.watermark,
        watermark=entry.watermark,
        definition=definition_of(run.dataflow),
        fingerprint=fingerprint(run.dataflow),
        pinned=entry.pinned or "",
        file_list="",
        reason=reason,
        quarantine=entry.quarantine,
        source=entry.source,
        holder=holders.current_holder(run.run_id),
        run_id=run.run_id,
        time=utc_now(),
        table_version=version,
        rules=rules_for_intent(run),
        released={"rule": rule, "version": run.sides[REJECTED].contents.newest_version()},
    )


def finish_release(run: RunContext[Any], entry: Entry | None, intent: Intent) -> Entry:
    """Finish a release: write its rows if they are missing, take them out of the table of rejected rows.

    Raises:
        NeedsDecision, Conflict, TargetError: as :func:`commit_release`.
    """
    check_rules_remain(run.dataflow, intent)
    with holding(run, intent), run.staging.emptied():
        if find_commit(run, entry, intent) is None:
            _write(run, entry, intent)
            run.notify(Step.WRITTEN, f"release {intent.number} written")
        commit = verified_commit(run, entry, intent)
        if commit.owner != intent.id:  # the table holds the number for a fence, which must still be recorded
            append_abandoned(run, entry, intent, commit, "abandoned by another run")
            raise Conflict(
                f"dataflow {run.name}: another run abandoned the release under number {intent.number}. No row "
                "was loaded. Release them again"
            )
        run.notify(Step.VERIFIED, f"release {intent.number} is version {commit.version} of the table")
        check_log(run, intent)
        _take_out(run, intent)
        appended = append(run, foreseen_release(run, entry, intent, commit))
        run.notify(Step.APPENDED, f"release {intent.number}: {pluralize(appended.rows, 'row')}")
        return appended


def foreseen_release(
    run: RunContext[Any], entry: Entry | None, intent: Intent, commit: TaggedCommit
) -> Entry:
    """Return the entry that :func:`finish_release` appends."""
    counted = run.table.complete_counts(commit, entry.total_rows if entry else 0)
    loaded = loaded_entry(
        run.dataflow,
        entry,
        intent,
        counted,
        watermark=intent.watermark,
        replace_until=entry.replace_until if entry else None,
        withheld=run.withheld.of_slice(intent.number),
        job_id=run.job_id,
        now=run.now,
    )
    return loaded.model_copy(update={"file_list": None, "pinned": entry.pinned if entry else None})


def released_rows(run: RunContext[Any], intent: Intent) -> ReleasedRows:
    """Return the rejected rows, by whether the release of an intent loads them.

    The versions of all tables are the intent's, so each call returns the same rows.
    """
    from pyspark.sql import functions as F

    name, version = _released(intent)
    side = run.sides[REJECTED].contents.read(run.spark, version)
    is_named = F.array_contains(F.split(F.col(RULES), ", "), name)
    named_rows, other_rows = side.where(is_named), side.where(~is_named)
    load = run.kind.writing.load_of_rejected() or Append()
    rules = rules_of(intent)
    if not rules:
        return ReleasedRows(named_rows, other_rows)
    marked = marked_rows(run, intent, named_rows, rules, load)
    # A rule that stops a slice holds back single rows here.
    holding = F.array(*[F.lit(rule.label) for rule in rules if rule.on_fail != "warn"]).cast("array<string>")
    failed_now = F.array_intersect(F.col(FAILED), holding)
    fails = F.size(failed_now) > 0
    columns = [F.col(quoted(column)) for column in side.columns]
    failing = marked.where(fails).withColumn(RULES, F.array_join(failed_now, ", ")).select(*columns)
    return ReleasedRows(marked.where(~fails).select(*columns), other_rows.unionByName(failing))


def _released(intent: Intent) -> tuple[str, Version]:
    assert intent.released is not None
    values: Mapping[str, Any] = intent.released
    return values["rule"], values["version"]


def _write(run: RunContext[Any], entry: Entry | None, intent: Intent) -> None:
    """Load the rows of a release in one tagged commit.

    Raises:
        TargetError: the write failed. If trying again cannot help, the number is given up.
    """
    from pyspark.errors import AnalysisException

    try:
        retry_conflicts(lambda: _write_once(run, entry, intent))
    except Exception as error:
        if find_commit(run, entry, intent) is not None:  # the commit has landed although its answer did not
            return
        failure = (
            f"dataflow {run.name}: loading rejected rows into {run.dataflow.table} failed: "
            f"{root_cause(error).rstrip(' .;')}"
        )
        if isinstance(error, AnalysisException | RowsRefused):
            if give_up(run, entry, intent, failure) is None:
                return
            raise TargetError(
                f"{failure}. No row was loaded: they stay rejected. Replay their part of the source instead"
            ) from error
        if isinstance(error, StrandlineError):
            raise
        raise TargetError(f"{failure}. The release stays open: the next run finishes it") from error


def _write_once(run: RunContext[Any], entry: Entry | None, intent: Intent) -> None:
    rows = released_rows(run, intent).passing.drop(*COLUMNS)
    load = release_load(
        run.kind.writing.load_of_rejected() or Append(), origin_columns=run.dataflow.target.origin_columns
    )
    rows = hold_back_rows(run, rows, entry, no_columns, intent.number)
    rows = _with_columns_of_load(rows, load)
    tag = Tag(intent.app_id, intent.number, intent.id, after=required_commit(entry), writer=run.writer)
    run.table.write(
        without_buried(run, intent, latest_by_key(rows, load), load),
        load,
        tag,
        intent.watermark,
        base=intent.table_version,
    )
    run.withheld.count(intent.number)


def _with_columns_of_load(rows: DataFrame, load: Load) -> DataFrame:
    """Return rows with the column by which a load deletes keys: a rejected row deletes none."""
    from pyspark.sql import functions as F

    deletes = getattr(load, "deletes", None)
    return rows if deletes is None else rows.withColumn(DELETES_COLUMN, F.lit(False))


def _take_out(run: RunContext[Any], intent: Intent) -> None:
    """Take the released rows out of the table of rejected rows; a second call changes nothing."""
    table: Table = run.sides[REJECTED]
    if table.tip(intent.app_id).highest_tag >= intent.number:
        return
    _, version = _released(intent)
    tag = Tag(intent.app_id, intent.number, intent.id, deletes=True)
    table.write(released_rows(run, intent).staying, ReplaceAll(), tag, "{}", base=version)
    run.notify(Step.SET_ASIDE, f"release {intent.number}: its rows are no longer among the rejected ones")
