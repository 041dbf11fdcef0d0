"""Definitions and results of checks in Dagster, with the severity that a dataflow's file sets.

A check itself returns a :class:`CheckFinding`, whose severity is the check's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    asset_check,
)

from partitions.checks import CheckSettings
from partitions.dataflow import Dataflow
from partitions.supported import check_names
from platform_assets.dagster_internals import CheckedEvent
from platform_assets.factory.annotations import annotate
from resources.dagster.names import DagsterDataflowNames
from resources.outcome import Outcome
from resources.platform.platform import Platform

WARN, ERROR = AssetCheckSeverity.WARN, AssetCheckSeverity.ERROR

_SEVERITIES = {"warn": WARN, "error": ERROR}


@dataclass(frozen=True)
class CheckFinding:
    """What a check found.

    Attributes:
        check: the name of the check.
        passed: whether it passed.
        severity: of a failure, unless the dataflow's file says otherwise.
        description: for people.
        metadata: shown with the result.
    """

    check: str
    passed: bool
    severity: AssetCheckSeverity = WARN
    description: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunCheck:
    """One or more checks that every run of a dataflow evaluates together.

    Attributes:
        descriptions: what passes, for people, by the name of the check.
        evaluate: returns a finding for each name, of a run that did not fail.
    """

    descriptions: Mapping[str, str]
    evaluate: Callable[[Dataflow, Platform, Outcome], Sequence[CheckFinding]]


@dataclass(frozen=True)
class TableCheck:
    """A check of a dataflow's whole table.

    Attributes:
        name: the name of the check.
        description: what it looks at, for people.
        evaluate: returns what it finds now.
        with_runs: whether the dataflow's job runs it, too; otherwise only the operator requests it.
    """

    name: str
    description: str
    evaluate: Callable[[Dataflow, Platform], CheckFinding]
    with_runs: bool = False


@dataclass(frozen=True)
class DataflowChecks:
    """The checks of one dataflow in Dagster, as its file says.

    Attributes:
        dataflow: the dataflow.
        names: its names in Dagster.
    """

    dataflow: Dataflow
    names: DagsterDataflowNames

    @property
    def all_names(self) -> Sequence[str]:
        """The names of all its checks; a user's code defines the others on its table."""
        flow = self.dataflow
        is_reconciled = flow.reconcile is not None
        return check_names(flow.watermark, flow.operators, flow.rules, is_reconciled=is_reconciled)

    def specs(self, check: RunCheck) -> Sequence[AssetCheckSpec]:
        """Return the specs of the checks of a run."""
        return [
            AssetCheckSpec(
                name,
                asset=self.names.table,
                description=description,
                blocking=self._settings(name).blocking,
            )
            for name, description in check.descriptions.items()
        ]

    def spec(self, check: str) -> AssetCheckSpec:
        """Return the spec of a check of the table."""
        return AssetCheckSpec(check, asset=self.names.table, blocking=self._settings(check).blocking)

    def definition(self, check: TableCheck, platform: Platform) -> AssetChecksDefinition:
        """Return a check of the table as a step of its own."""

        def evaluate() -> AssetCheckResult:
            return self.result(check.evaluate(self.dataflow, platform))

        annotate(evaluate, returns=AssetCheckResult)
        return asset_check(
            asset=self.names.table,
            name=check.name,
            description=check.description,
            blocking=self._settings(check.name).blocking,
        )(evaluate)

    def result(self, finding: CheckFinding) -> AssetCheckResult:
        """Return a finding as the result of a step that has the check."""
        return AssetCheckResult(
            passed=finding.passed,
            check_name=finding.check,
            severity=self._severity(finding),
            description=finding.description,
            metadata=finding.metadata,
        )

    def evaluation(self, finding: CheckFinding, about: CheckedEvent | None = None) -> AssetCheckEvaluation:
        """Return a finding as an event of a sensor, or of a step that fails.

        Args:
            finding: what the check found.
            about: the materialisation that it is about; None leaves it to Dagster.
        """
        return AssetCheckEvaluation(
            asset_key=self.names.table,
            check_name=finding.check,
            passed=finding.passed,
            severity=self._severity(finding),
            description=finding.description,
            metadata=finding.metadata,
            blocking=self._settings(finding.check).blocking,
            target_materialization_data=about,
        )

    def _severity(self, finding: CheckFinding) -> AssetCheckSeverity:
        failure = self._settings(finding.check).failure
        return _SEVERITIES[failure] if failure else finding.severity

    def _settings(self, check: str) -> CheckSettings:
        return self.dataflow.checks.get(check) or CheckSettings()
