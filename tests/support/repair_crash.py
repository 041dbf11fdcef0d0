"""Repairs a table in a process that kills itself at a step of the protocol."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.outcome import Step
from resources.reconcile.options import ReconcileOptions
from resources.reconcile.repairing import plan_repair, repair
from tests.support.environment import clean_environment
from tests.support.feed import NAME, NOW, Feed
from tests.support.forks import forked


def crash_repairing(feed: Feed, step: Step) -> None:
    """Repair the dataflow's table in a process that dies right after a step."""
    environment = (
        clean_environment() | feed.environment | {"STRANDLINE_SPARK_REMOTE": str(feed.engine.remote)}
    )
    ended = forked(__name__, [str(feed.folder), str(step)], environment)
    assert ended.code == -signal.SIGKILL, ended.output


def main(folder: str, last_step: str) -> None:
    """Repair until the step."""
    project = load_project(Path(folder))
    platform, dataflow = build_platform(project), project.dataflows[NAME]

    def observer(step: Step, line: str) -> None:
        if step == last_step:
            os.kill(os.getpid(), signal.SIGKILL)

    plan = plan_repair(platform, dataflow, ReconcileOptions(rows=True, repairs="all"), NOW)
    outcome = repair(platform, plan, "because", NOW, observer=observer)
    sys.exit(f"it was to die, and ended with {outcome.error or outcome.newest}")
