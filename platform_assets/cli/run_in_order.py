"""Runs dataflows one after another, each after its upstream.

A dataflow is skipped if one of the tables that it reads was not loaded, unless its windows wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, UpstreamNotLoaded
from partitions.lineage import Lineage
from resources.notes.last_run import note_failed_start
from resources.outcome import Outcome

if TYPE_CHECKING:
    from platform_assets.cli.running import Runner


def run_in_order(
    runner: Runner,
    flows: Sequence[Dataflow],
    errors: Mapping[str, StrandlineError],
    on_outcome: Callable[[Outcome], None],
    on_start: Callable[[str], None] = lambda name: None,
) -> list[Outcome]:
    """Run dataflows in turn, each after its upstream, and return their outcomes.

    Args:
        runner: the runner of their project.
        flows: the dataflows to run.
        errors: the errors of broken dataflows; each counts as a failed run.
        on_outcome: called with each outcome when its run ends.
        on_start: called with the name of each dataflow before its turn.
    """
    log, lineage = runner.platform.log, runner.platform.lineage
    outcomes = [note_failed_start(log, name, error) for name, error in errors.items()]
    for outcome in outcomes:
        on_outcome(outcome)
    by_name = {flow.name: flow for flow in flows}
    for name in lineage.in_order(list(by_name)):
        on_start(name)
        upstream = set(lineage.upstream_dataflows(name)) - _awaited(by_name[name], lineage)
        failed = [
            outcome for outcome in outcomes if outcome.error is not None and outcome.dataflow in upstream
        ]
        outcomes.append(
            note_failed_start(log, name, _upstream_not_loaded(name, failed))
            if failed
            else runner.run(by_name[name])
        )
        on_outcome(outcomes[-1])
    return outcomes


def _awaited(flow: Dataflow, lineage: Lineage) -> set[str]:
    """Return the dataflows that the windows of a dataflow wait for: it loads what is complete there."""
    if not flow.watermark.waits_for_upstream:
        return set()
    tables = [flow.source.lake_table or "", *(flow.inputs[name] for name in flow.watermark.awaited_inputs)]
    return {maker.name for table in tables for maker in lineage.makers(table)}


def _upstream_not_loaded(name: str, failed: Sequence[Outcome]) -> UpstreamNotLoaded:
    """Return the error of a skipped dataflow.

    Without the skip, its windows would count as read although some of their rows are missing.
    """
    upstream = " and ".join(f"{outcome.dataflow} ({outcome.status})" for outcome in failed)
    names = " ".join([*(outcome.dataflow for outcome in failed), name])
    return UpstreamNotLoaded(
        f"{name} was not started: {upstream} should have loaded what it reads",
        choices=[f"strandline run {names}"],
    )
