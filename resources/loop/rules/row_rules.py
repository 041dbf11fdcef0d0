"""Compare the rows of a slice with its rules, before anything of the slice is committed.

The rows are read once: Spark keeps them while it counts those that fail. So a slice that breaks a limit is
given up before its commit, and both commits, that of the rejected rows and the main one, take the same rows
(docs/explanation/adr/0053-rules-are-counted-before-the-first-commit.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import RejectedRowsChanged, RulesBroken, RuleUnfit
from partitions.loads import Load
from partitions.rules.counts import RuleCounts, broken_in_words, broken_rules
from partitions.rules.definition import Rule
from partitions.table_names import rejected_table
from partitions.target import DELETES_COLUMN, HELPER_PREFIX
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.rows.delete_when import marked_deletes
from resources.loop.rules.conditions import Failures, PlannedTables, failures
from resources.loop.rules.rejected_rows import write_rejected
from resources.observation import observed_values
from resources.spark.failures import fails_on_values, root_cause
from resources.spark.frames import observed_rows, read_once
from resources.sql import quoted
from resources.tables.rows.deduplicate import has_no_order
from resources.tables.rows.delete_marks import is_delete
from resources.watermarks.entry import Intent
from resources.watermarks.lists import RULE_COUNTS, StoredList
from resources.watermarks.stored_objects import OBSERVED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

FAILED = f"{HELPER_PREFIX}failed_rules"
"""Helper column: the names of the rules that a row fails."""


_FIRST = 1
"""The number of the slice of a row test."""


def rules_of(intent: Intent) -> tuple[Rule, ...]:
    """Return the rules that a slice was planned with, whatever the definition says by now."""
    return tuple(map(Rule.model_validate, (intent.rules or {}).get("rules", ())))


def rules_for_intent(run: RunContext[Any]) -> dict[str, Any] | None:
    """Return the rules of the definition as an intent keeps them; None if there are none."""
    if not run.dataflow.rules:
        return None
    rules = [rule.model_dump(mode="json", exclude_none=True) for rule in run.dataflow.rules]
    versions = run.references.newest_versions()
    return {"rules": rules, **({"versions": versions} if versions else {})}


def checked_rows(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT, rows: DataFrame, load: Load
) -> DataFrame:
    """Return the rows of a slice that may be loaded; others are in the table of rejected rows then.

    Args:
        run: the run.
        intent: intent of the slice.
        slice_: the slice.
        rows: its rows, as they would be written.
        load: how they would be written.

    Raises:
        RulesBroken: more rows fail than a rule allows; nothing is written yet.
        RuleUnfit: the condition of a rule fails on a row.
        RejectedRowsChanged: the source now has other rows than those that a run before has rejected.
        NeedsDecision: code ``foreign_tag``: the table of rejected rows is ahead of the state.
    """
    rules = rules_of(intent)
    if not rules:
        return rows
    marked, observation = _observed(
        marked_rows(run, intent, marked_deletes(run.dataflow, rows), rules, load), rules
    )
    if not any(rule.must_count_first for rule in rules):
        run.rule_counts.observed[intent.number] = (observation, rules)
        return marked.drop(FAILED)
    cached = _read(run, intent, marked, rules)
    counts = _counts_of(observed_values(observation), rules) or _count(cached, rules)
    if broken := broken_rules(rules, counts):
        raise _broken(run.dataflow, intent.number, broken, counts)
    _keep(run, intent, counts)
    rejected = cached.where(_is_rejected(rules)) if counts.rejected else None
    write_rejected(run, intent, slice_, rejected, cached.drop(FAILED), FAILED)
    return (cached.where(~_is_rejected(rules)) if counts.rejected else cached).drop(FAILED)


def marked_rows(
    run: RunContext[Any], intent: Intent, rows: DataFrame, rules: Sequence[Rule], load: Load
) -> DataFrame:
    """Return rows with :data:`FAILED`, the names of the rules that each fails.

    Args:
        run: the run.
        intent: intent of the slice, which fixes the versions of tables.
        rows: its rows, with the marks of deletes; a row that deletes its key fails no rule.
        rules: the rules.
        load: how the rows would be written.
    """
    return _marked(failures(PlannedTables(run, intent), rows, rules, load))


def passing_rows(dataflow: Dataflow, rows: DataFrame, load: Load) -> DataFrame:
    """Return the rows of a row test that its rules let through, as far as the rows alone show it.

    Args:
        dataflow: the definition.
        rows: rows with the marks of deletes.
        load: how they would be written.

    Raises:
        RulesBroken: more rows fail than a rule allows.
    """
    rules = dataflow.rules
    if not rules:
        return rows
    marked = _marked(failures(None, rows, rules, load))
    counts = _count(marked, rules)
    if broken := broken_rules(rules, counts):
        raise _broken(dataflow, _FIRST, broken, counts)
    return marked.where(~_is_rejected(rules)).drop(FAILED)


def count_warned(run: RunContext[Any], intent: Intent) -> None:
    """Read the counts of rules that only warn, once the slice's rows are written."""
    observation, rules = run.rule_counts.observed.pop(intent.number, (None, ()))
    counts = None if observation is None else _counts_of(observed_values(observation), rules)
    if counts is not None:
        _keep(run, intent, counts)


def counts_of(run: RunContext[Any], intent: Intent) -> RuleCounts | None:
    """Return the counts of a slice, also if another process has counted; None without rules or counts."""
    if not intent.rules:
        return None
    counts = run.rule_counts.counts.get(intent.number)
    return _stored_counts(run, intent) if counts is None else counts


def _keep(run: RunContext[Any], intent: Intent, counts: RuleCounts) -> None:
    """Store counts for whoever finishes the slice; compare them with those of a run before.

    Raises:
        RejectedRowsChanged: a run before has rejected other rows.
    """
    by_rule = [[rule, rows] for rule, rows in counts.failed.items()]
    head = {"rows": counts.rows, "rejected": counts.rejected, "digest": counts.digest}
    run.log.put_list(run.name, _object_name(intent), StoredList(RULE_COUNTS, by_rule, head), OBSERVED)
    stored = _stored_counts(run, intent)
    if stored is not None and not stored.rejects_same_rows(counts):
        raise RejectedRowsChanged(
            f"dataflow {run.name}: slice {intent.number} was begun with {stored.rejected:,} rejected rows, and "
            "the source has other rows now. The slice was abandoned, and its work is planned again"
        )
    run.rule_counts.counts[intent.number] = counts


def _object_name(intent: Intent) -> str:
    return f"{intent.number:010d}-{intent.id}-rules"


def _stored_counts(run: RunContext[Any], intent: Intent) -> RuleCounts | None:
    stored = run.log.find_list(run.name, OBSERVED, _object_name(intent), RULE_COUNTS)
    if stored is None:
        return None
    head: Mapping[str, Any] = stored.head
    return RuleCounts(
        head["rows"], head["rejected"], {str(rule): int(rows) for rule, rows in stored.rows}, head["digest"]
    )


def _read(run: RunContext[Any], intent: Intent, marked: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return the marked rows, read once.

    Raises:
        RuleUnfit: the condition of a rule fails on a row.
    """
    try:
        return read_once(marked)
    except Exception as error:
        comparing = [rule for rule in rules if rule.not_null is None]
        steps = run.dataflow.has_step or run.dataflow.target.delete_when
        if not comparing or steps or not fails_on_values(error):
            raise
        named = ", ".join(f"{rule.label} ({rule.demand})" for rule in comparing)
        raise RuleUnfit(
            f"dataflow {run.name}: rules: expected conditions that have a value for each row, found {named} "
            f"failing on rows of slice {intent.number}: {root_cause(error).rstrip(' .;')}. Nothing of the slice "
            "was loaded, and its number was abandoned. Correct the rule, such as with try_cast(… AS …) for "
            "CAST, or try_divide(…, …) for /, or the rows at the source, and run again"
        ) from error


def _marked(failing: Failures) -> DataFrame:
    """Return rows with the names of the rules that each fails; a row that deletes its key fails none."""
    from pyspark.sql import functions as F

    rows = failing.rows
    names = F.array_compact(F.array(*[F.when(fails, F.lit(name)) for name, fails in failing.by_rule.items()]))
    if DELETES_COLUMN in rows.columns:
        names = F.when(is_delete(DELETES_COLUMN), F.array().cast("array<string>")).otherwise(names)
    columns = [F.col(quoted(name)) for name in rows.columns if name not in failing.helpers]
    return rows.select(*columns, names.alias(FAILED))


def _observed(marked: DataFrame, rules: Sequence[Rule]) -> tuple[DataFrame, Observation]:
    from pyspark.sql import Observation

    observation = Observation()
    return observed_rows(marked, observation, *_aggregates(marked, rules)), observation


def _aggregates(marked: DataFrame, rules: Sequence[Rule]) -> list[Column]:
    from pyspark.sql import functions as F

    counted = ~is_delete(DELETES_COLUMN if DELETES_COLUMN in marked.columns else None)
    # Hashes of maps and variants are undefined.
    values = [
        F.col(quoted(name)) if not has_no_order(kind) else F.col(quoted(name)).cast("string")
        for name, kind in marked.dtypes
        if name != FAILED
    ]
    rejected = _is_rejected(rules)
    # A sum, since the exclusive or of two equal rows tells nothing of them.
    digest = F.sum(F.when(rejected, F.xxhash64(*values).cast("decimal(38,0)")))
    return [
        F.count_if(counted).alias("rows"),
        F.count_if(rejected).alias("rejected"),
        digest.cast("string").alias("digest"),
        *(
            F.count_if(F.array_contains(FAILED, rule.label)).alias(f"f{number}")
            for number, rule in enumerate(rules)
        ),
    ]


def _is_rejected(rules: Sequence[Rule]) -> Column:
    from pyspark.sql import functions as F

    names = [rule.label for rule in rules if rule.on_fail == "reject"]
    if not names:
        return F.lit(False)
    return F.arrays_overlap(F.col(FAILED), F.array(*map(F.lit, names)))


def _count(cached: DataFrame, rules: Sequence[Rule]) -> RuleCounts:
    counts = _counts_of(cached.agg(*_aggregates(cached, rules)).collect()[0].asDict(), rules)
    assert counts is not None
    return counts


def _counts_of(values: Mapping[str, Any], rules: Sequence[Rule]) -> RuleCounts | None:
    if "rows" not in values:
        return None
    digest = values.get("digest")
    return RuleCounts(
        int(values["rows"] or 0),
        int(values["rejected"] or 0),
        {rule.label: int(values[f"f{number}"] or 0) for number, rule in enumerate(rules)},
        "" if digest is None else str(digest),
    )


def _broken(dataflow: Dataflow, number: int, broken: Sequence[Rule], counts: RuleCounts) -> RulesBroken:
    failures_text = "; ".join(broken_in_words(rule, counts) for rule in broken)
    instead = "raise max, or "
    if any(rule.on_fail == "fail" for rule in broken):
        instead = f"set on_fail: reject, which loads the other rows and keeps these in {rejected_table(dataflow)}, or "
    return RulesBroken(
        f"dataflow {dataflow.name}: expected rows of slice {number} that meet the rules, found {failures_text}. Nothing "
        "of the slice was loaded, and its number was abandoned. Correct the rows at the source, "
        f"{instead}correct the rule, and run again",
        counts=dict(counts.failed),
        rows=counts.rows,
    )
