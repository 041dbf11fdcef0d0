"""The checks of a dataflow's rules: one a rule, evaluated by each run (docs/how-to/rules-for-rows.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from partitions.dataflow import Dataflow
from partitions.errors import RulesBroken
from partitions.plan import pluralize
from partitions.rules.definition import Rule
from partitions.rules.limits import share_in_words
from partitions.table_names import rejected_table
from platform_assets.factory.check_results import ERROR, WARN, CheckFinding, RunCheck
from resources.outcome import Outcome
from resources.platform.platform import Platform

_FATES = {
    "reject": "A row that fails goes into {table}.",
    "warn": "A row that fails is loaded all the same.",
    "fail": "If a row fails, nothing of its slice is loaded.",
}
"""What becomes of rows that fail, by the rule's ``on_fail``."""


def rule_checks(dataflow: Dataflow) -> Sequence[RunCheck]:
    """Return the checks of a dataflow's rules, in the order of the rules."""
    return [
        RunCheck({rule.check: _description(dataflow, rule)}, _evaluate_of(rule)) for rule in dataflow.rules
    ]


def _description(dataflow: Dataflow, rule: Rule) -> str:
    return (
        f"Each row of the run: {rule.demand}. {_FATES[rule.on_fail].format(table=rejected_table(dataflow))}"
    )


def _evaluate_of(rule: Rule) -> Callable[[Dataflow, Platform, Outcome], Sequence[CheckFinding]]:
    def evaluate(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
        checked = sum(committed.entry.checked for committed in outcome.committed)
        return (_finding(dataflow, rule, outcome.failed_rules.get(rule.label, 0), checked),)

    return evaluate


def _finding(dataflow: Dataflow, rule: Rule, failed: int, checked: int) -> CheckFinding:
    where = {
        "reject": f"they are in {rejected_table(dataflow)}: strandline rejected {dataflow.name}",
        "warn": "they were loaded",
        "fail": "nothing of their slice was loaded",
    }
    return CheckFinding(
        rule.check,
        passed=not failed,
        severity=ERROR if rule.on_fail == "fail" else WARN,
        description=f"{share_in_words(failed, checked)} failed; {where[rule.on_fail]}" if failed else None,
        metadata={
            "rule": rule.demand,
            "on_fail": rule.on_fail,
            "rows_failed": failed,
            "rows_checked": checked,
            "share_failed": round(failed / checked, 6) if checked else 0.0,
        },
    )


def broken_findings(dataflow: Dataflow, error: Exception | None) -> Mapping[str, CheckFinding]:
    """Return the findings of a run that a rule has stopped, by the name of the check; else none."""
    if not isinstance(error, RulesBroken):
        return {}
    findings = {}
    for rule in dataflow.rules:
        failed = error.counts.get(rule.label, 0)
        findings[rule.check] = CheckFinding(
            rule.check,
            passed=not failed,
            severity=ERROR,
            description=f"{pluralize(failed, 'row')} failed; nothing of their slice was loaded"
            if failed
            else None,
            metadata={
                "rule": rule.demand,
                "on_fail": rule.on_fail,
                "rows_failed": failed,
                "rows_checked": error.rows,
                "share_failed": round(failed / error.rows, 6) if error.rows else 0.0,
            },
        )
    return findings
