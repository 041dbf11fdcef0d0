"""The checks that every kind has, which each run evaluates.

Checks of single kinds belong to these kinds (``platform_assets.factory.kinds``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from dagster import AssetCheckKey, MetadataValue

from partitions.checks import ROWS_ACCOUNTED, UP_TO_DATE, WATERMARK_MONOTONE
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.instants import time_text
from partitions.path.skipped import SKIPPED
from partitions.plan import pluralize
from partitions.sentinels import serialise
from platform_assets.factory.check_results import ERROR, WARN, CheckFinding, RunCheck
from platform_assets.run_metadata import error_metadata
from platform_assets.why_now import why_now
from platform_assets.words import of_outcome_in_words
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_history import RunHistory
from resources.notes.last_run import Attempt
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

WHY, NEXT_ATTEMPT = "why", "next_attempt"
"""The metadata of its results: what is not loaded and why, and when the next attempt is."""

_REASONS = 5
"""The most reasons in this metadata."""

_NOTHING_NEW = "Checked, nothing new: "
_FAILING = "Looking for new data has failed"


def _check_monotone(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
    before, after = serialise(outcome.before), serialise(outcome.after)
    finding = CheckFinding(
        WATERMARK_MONOTONE,
        passed=platform.kind(dataflow).planning.covers(after, before),
        severity=ERROR,
        metadata={
            "before": of_outcome_in_words(dataflow.kind, outcome, outcome.before),
            "after": of_outcome_in_words(dataflow.kind, outcome, outcome.after),
        },
    )
    return (finding,)


def _check_rows_accounted(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
    """Compare the rows of the run's commits with its entries, and those of the table with the log.

    Only the table's own log is read. Other rows in the table are a warning: another writer made them.
    """
    start = outcome.committed[0].entry.total_rows - outcome.committed[0].net_rows if outcome.committed else 0
    logged = outcome.newest.total_rows - start if outcome.committed and outcome.newest else 0
    grown = sum(commit.net_rows for commit in outcome.committed)
    is_sound = logged == grown and outcome.rows_add_up and _rules_add_up(dataflow, outcome)
    rows_in_table, rows_in_log = _rows_in_table(dataflow, platform, outcome), _total_rows(outcome.newest)
    others = rows_in_table - rows_in_log if rows_in_table is not None else 0
    text = f"The table has {pluralize(abs(others), 'row')} {'more' if others > 0 else 'less'} than its log counts: "
    finding = CheckFinding(
        ROWS_ACCOUNTED,
        passed=is_sound and not others,
        severity=WARN if is_sound else ERROR,
        description=f"{text}another writer has changed it" if others else None,
        metadata={
            "rows_committed": grown,
            "rows_of_entries": logged,
            "rows_withheld": outcome.withheld,
            "rows_rejected": outcome.rejected,
            "rows_in_table": rows_in_table,
            "rows_in_log": rows_in_log,
        },
    )
    return (finding,)


def _rules_add_up(dataflow: Dataflow, outcome: Outcome) -> bool:
    """Return whether each slice has loaded or rejected all rows that its rules saw.

    True of other loads than an append: they write fewer rows than they see.
    """
    entries = [committed.entry for committed in outcome.committed if committed.entry.checked]
    return not dataflow.target.only_adds or all(
        entry.checked == entry.rows + entry.rejected for entry in entries
    )


def _rows_in_table(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> int | None:
    """Return the table's rows by its own log; None if it does not say, or another run has loaded since."""
    try:
        rows = platform.table(dataflow).contents.rows_in_log()
        newest = platform.log.newest(dataflow.name)
    except StrandlineError:  # the run is over; the next one reads both first, and says why it cannot
        return None
    return rows if (newest and newest.id) == (outcome.newest and outcome.newest.id) else None


def _total_rows(entry: Entry | None) -> int:
    return entry.total_rows if entry else 0


def _check_up_to_date(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
    if outcome.committed:
        description = f"Loaded: watermark {of_outcome_in_words(dataflow.kind, outcome, outcome.after)}"
    else:
        description = nothing_new_text(
            outcome.plan.why if outcome.plan else "the last run found nothing to load"
        )
    finding = CheckFinding(
        UP_TO_DATE,
        passed=True,
        description=description,
        metadata=why_metadata(platform, dataflow, datetime.now(UTC)),
    )
    return (finding,)


def nothing_new_text(reason: str) -> str:
    """Return the description of a check result that found nothing to load."""
    return f"{_NOTHING_NEW}{reason}"


def failing_text(look: Attempt) -> str:
    """Return since when looks for new data fail, and why."""
    message = look.error["message"] if look.error else "see the sensor's ticks"
    return f"{_FAILING} since {time_text(look.failing_since or look.time)}: {message}"


def reported_part(description: str | None) -> str | None:
    """Return the part of a sensor's result whose change is reported; None for any other result.

    With nothing to load that are the names that were skipped, or ""; of failed looks since when they fail.
    """
    text = description or ""
    if text.startswith(_FAILING):
        return text.partition(": ")[0]
    return text.partition(f"; {SKIPPED}")[2] if text.startswith(_NOTHING_NEW) else None


def up_to_date_key(names: DagsterDataflowNames) -> AssetCheckKey:
    """Return the key of the check ``up_to_date``."""
    return AssetCheckKey(names.table, UP_TO_DATE)


def why_metadata(platform: Platform, dataflow: Dataflow, now: datetime) -> dict[str, Any]:
    """Return what the log knows to be not loaded and why, as metadata; nothing if it knows of nothing.

    Asks neither the source nor Dagster, since sensors call it.
    """
    with suppress(StrandlineError):  # whatever it is, the result that this goes with says it
        answer = why_now(platform, dataflow, now, RunHistory(platform.log))
        if answer.reasons:
            return {WHY: answer.short(_REASONS)}
    return {}


def failed_look(look: Attempt, next_look: datetime, why: Mapping[str, Any], env: str | None) -> CheckFinding:
    """Return the finding of the check ``up_to_date`` for a sensor whose look has failed.

    Args:
        look: the failed look.
        next_look: when the sensor tries again.
        why: the metadata of :func:`why_metadata`.
        env: the environment, for commands.
    """
    error = look.error or {}
    metadata = {
        **error_metadata(error.get("message", ""), error.get("choices", ()), env),
        "failing_since": time_text(look.failing_since or look.time),
        NEXT_ATTEMPT: MetadataValue.timestamp(next_look),
        **why,
    }
    return CheckFinding(
        UP_TO_DATE, passed=False, severity=ERROR, description=failing_text(look), metadata=metadata
    )


COMMON_RUN_CHECKS = (
    RunCheck({WATERMARK_MONOTONE: "No part of the watermark went down in this run."}, _check_monotone),
    RunCheck(
        {
            ROWS_ACCOUNTED: "This run's commits and its entries count the same rows, and the table's log and the "
            "watermark log, too; each row of a stream is in exactly one place."
        },
        _check_rows_accounted,
    ),
    RunCheck(
        {UP_TO_DATE: "The last check by a run or a sensor found nothing left to load."}, _check_up_to_date
    ),
)
"""The run checks that every kind has."""
