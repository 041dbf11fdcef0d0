"""The checks that every kind has: one that each run evaluates, and one of the whole table, on request.

What only some kinds can check belongs to these kinds (``platform_assets.kinds``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    asset_check,
)

from partitions.dataflow import Dataflow
from partitions.path.skipped import PASSED_OVER
from partitions.sentinels import serialise
from platform_assets.factory.dagster_names import table_key, watermark_key
from platform_assets.words import in_words
from resources.outcome import Outcome
from resources.platform.platform import Platform


@dataclass(frozen=True)
class RunCheck:
    """A check that every run of a dataflow evaluates, or several by one look.

    Attributes:
        specs: names and assets.
        evaluate: the results of a run that did not fail, one for each.
    """

    specs: tuple[AssetCheckSpec, ...]
    evaluate: Callable[[Dataflow, Platform, Outcome], Sequence[AssetCheckResult]]


@dataclass(frozen=True)
class TableCheck:
    """A check of a dataflow's whole table.

    Attributes:
        name: of the check.
        define: returns its definition.
        with_runs: whether the dataflow's job runs it, too; else the operator requests it.
    """

    name: str
    define: Callable[[Dataflow, Platform], AssetChecksDefinition]
    with_runs: bool = False


UP_TO_DATE = "up_to_date"
"""The check that sensors tell of, too."""

_NOTHING_NEW = "Checked, nothing new: "


def common_run_checks(dataflow: Dataflow) -> Sequence[RunCheck]:
    """Return the checks of a run that every kind has."""
    monotone = AssetCheckSpec(
        "watermark_monotone",
        asset=watermark_key(dataflow.name),
        description="No part of the watermark fell in this run.",
    )
    accounted = AssetCheckSpec(
        "rows_accounted",
        asset=table_key(dataflow),
        description="The rows of this run's commits are the rows of its entries, and each row of a stream is in one place.",
    )
    fresh = AssetCheckSpec(
        UP_TO_DATE,
        asset=table_key(dataflow),
        description="The last look, of a run or of the sensor, found nothing that waits to be loaded.",
    )
    return (
        RunCheck((monotone,), _monotone),
        RunCheck((accounted,), _rows_accounted),
        RunCheck((fresh,), _up_to_date),
    )


def _monotone(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Sequence[AssetCheckResult]:
    before, after = serialise(outcome.before), serialise(outcome.after)
    result = AssetCheckResult(
        passed=platform.kind(dataflow).planning.covers(after, before),
        check_name="watermark_monotone",
        asset_key=watermark_key(dataflow.name),
        metadata={
            "before": in_words(dataflow.kind, outcome.before),
            "after": in_words(dataflow.kind, outcome.after),
        },
    )
    return (result,)


def _rows_accounted(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[AssetCheckResult]:
    start = outcome.committed[0].entry.total_rows - outcome.committed[0].grown if outcome.committed else 0
    logged = outcome.newest.total_rows - start if outcome.committed and outcome.newest else 0
    grown = sum(commit.grown for commit in outcome.committed)
    result = AssetCheckResult(
        passed=logged == grown and outcome.rows_add_up,
        check_name="rows_accounted",
        asset_key=table_key(dataflow),
        metadata={"rows_committed": grown, "rows_in_log": logged},
    )
    return (result,)


def _up_to_date(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[AssetCheckResult]:
    if outcome.committed:
        description = f"Loaded up to {in_words(dataflow.kind, outcome.after)}"
    else:
        description = nothing_new(outcome.plan.why if outcome.plan else "the last run left nothing")
    result = AssetCheckResult(
        passed=True,
        check_name=UP_TO_DATE,
        asset_key=table_key(dataflow),
        severity=AssetCheckSeverity.WARN,
        description=description,
    )
    return (result,)


def nothing_new(why: str) -> str:
    """Return what a look says that found nothing to load."""
    return f"{_NOTHING_NEW}{why}"


def names_passed_over(description: str | None) -> str | None:
    """Return which names a look that found nothing to load has passed over, as a result says, or ""; None of other results."""
    text = description or ""
    return text.partition(f"; {PASSED_OVER}")[2] if text.startswith(_NOTHING_NEW) else None


def up_to_date_key(dataflow: Dataflow) -> AssetCheckKey:
    """Return the key of the check that nothing waits."""
    return AssetCheckKey(table_key(dataflow), UP_TO_DATE)


def up_to_date(dataflow: Dataflow, description: str, *, passed: bool) -> AssetCheckEvaluation:
    """Return the result of the check that nothing waits, as a sensor tells it."""
    return AssetCheckEvaluation(
        asset_key=table_key(dataflow),
        check_name=UP_TO_DATE,
        passed=passed,
        severity=AssetCheckSeverity.WARN,
        description=description,
    )


def row_accounting(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """Return the check that the table's rows, as its file statistics count them, are the rows of all entries. No data is scanned."""

    @asset_check(
        asset=table_key(dataflow),
        name=ROW_ACCOUNTING.name,
        description="Rows in the table (from its file statistics) against rows in the watermark log. Rows that another writer deletes or adds show here.",
    )
    def accounting() -> AssetCheckResult:
        entry = platform.log.newest(dataflow.name)
        in_table, in_log = platform.table(dataflow).contents.count_rows(), entry.total_rows if entry else 0
        return AssetCheckResult(
            passed=in_table == in_log,
            severity=AssetCheckSeverity.WARN,
            metadata={"rows_in_table": in_table, "rows_in_log": in_log},
        )

    return accounting


ROW_ACCOUNTING = TableCheck("row_accounting", row_accounting)
