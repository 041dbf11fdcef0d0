"""``strandline plan``: shows what the next run would do and why.

Changes nothing, starts neither Dagster nor Spark.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, strip_dataflow
from partitions.instants import time_text
from partitions.plan import Plan, Slice
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.several import collect_results, worst_exit_code
from platform_assets.kinds import PROFILES
from platform_assets.platform import build_platform
from platform_assets.words import failed_until_now
from resources.notes.last_run import attempt_after_look, find_decision_since, last_attempt, noted_look
from resources.outcome import error_json
from resources.watermarks.log import WatermarkLog

_SHOWN = 12


@click.command("plan")
@click.argument("names", nargs=-1)
@shared_options
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show what the next run would do, and why."""
    flows, broken = context.valid_and_broken(names)
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)
    stops: list[StrandlineError] = []

    def answer(flow: Dataflow) -> dict[str, Any]:
        def look() -> Plan[Slice]:
            return platform.plan(flow, now)

        # The plan of another time says nothing about how the source is now.
        is_now = context.now is None
        plan = noted_look(platform.log, flow.name, look, lambda plan: plan.due) if is_now else look()
        planned = dict(plan.as_json())
        stops.extend(filter(None, [plan.stop]))
        has_work = plan.due if is_now and not (plan.due and plan.stop is not None) else None
        failure = _last_failure(platform.log, flow.name, has_work=has_work)
        return {
            **planned,
            "warnings": [*planned["warnings"], *failure],
            "error": error_json(plan.stop),
        }

    documents, code = collect_results(flows, answer, _failed, broken)
    context.emit(documents, lambda: print_plans(context, documents))
    return code if broken else worst_exit_code([code, *(stop.exit_code for stop in stops)])


def _last_failure(log: WatermarkLog, dataflow: str, *, has_work: bool | None) -> list[str]:
    """Return why the last run failed, as a warning; nothing if it did not.

    A decision since, or the look of this plan, may have solved it: the warning then says so.
    """
    attempt, is_over = attempt_after_look(log, dataflow, last_attempt(log, dataflow), has_work=has_work)
    if attempt is None or attempt.error is None:
        return []
    decision = find_decision_since(log, dataflow, attempt.time)
    if decision is not None:
        decided = f"{decision.why} of entry {decision.number}"
        return [
            f"the last run failed before the {decided}, which may have solved it: {attempt.error['message']}"
        ]
    since = attempt.failing_since or attempt.time
    if is_over:
        return [failed_until_now(since)]
    return [f"runs have failed since {time_text(since)}: {attempt.error['message']}"]


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "state_number": None,
        "now": None,
        "due": False,
        "why": error.message,
        "slices": [],
        "skips": [],
        "warnings": [],
        "waiting_for_upstream": 0,
    }
    return {"dataflow": flow.name, "kind": flow.kind, **empty, "error": error_json(error)}


def print_plans(context: Context, documents: list[dict[str, Any]]) -> None:
    """Print plans for people."""
    for document in documents:
        if "why" not in document:  # its file has errors
            click.secho(f"{document['dataflow']}: {document['error']['message']}", fg="red")
            context.offer(["strandline validate"])
            continue
        name = document["dataflow"]
        click.secho(f"{name}: {strip_dataflow(name, document['why'])}", bold=True)
        profile, slices = PROFILES[document["kind"]], document["slices"]
        for number, described in enumerate(slices[:_SHOWN], (document["state_number"] or 0) + 1):
            click.echo(f"  {profile.plan_line(number, described)}")
        if len(slices) > _SHOWN:
            more = f"{len(slices) - _SHOWN:,} more {profile.slices_noun}s"
            click.echo(f"  … and {more} (--json shows all)")
        for skip in document["skips"][:_SHOWN]:
            click.echo(f"  skipped: {skip['what']}: {skip['why']}")
        for warning in document["warnings"]:
            click.secho(f"  warning: {warning}", fg="yellow")
        context.offer((document.get("error") or {}).get("choices", ()))
