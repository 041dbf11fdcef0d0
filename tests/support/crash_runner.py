"""Runs a dataflow that dies at a step.

``client`` kills this process alone, so a write on a Connect server goes on; ``group`` kills an embedded
JVM with it. The
step ``writing`` is the moment at which the first data file of the slice's write appears.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.outcome import Step
from tests.support.environment import clean_environment
from tests.support.feed import NAME, NOW, Feed
from tests.support.forks import forked

WRITING = "writing"


def crash(feed: Feed, step: str, occurrence: int = 1, whom: str = "client") -> None:
    """Run the dataflow in a process that kills itself at a step."""
    environment = clean_environment() | feed.environment
    if whom == "client":
        environment["STRANDLINE_SPARK_REMOTE"] = str(feed.engine.remote)
    ended = forked(__name__, [str(feed.folder), str(step), str(occurrence), whom], environment)
    assert ended.code == -signal.SIGKILL, ended.output


def main(folder: str, last_step: str, occurrence: str, whom: str) -> None:
    """Run until the step occurs for this time."""
    occurrences = 0
    project = load_project(Path(folder))
    flow = project.dataflows[NAME]

    def data_files() -> set[str]:
        """Return the files of the whole lake, if it exists: some formats stage files beside the table."""
        if project.lake.local is not None:
            return {str(path) for path in project.lake.local.rglob("*.parquet")}
        listed = (meta["path"] for page in project.lake.store.list() for meta in page)
        return {path for path in listed if path.endswith(".parquet")}

    def die() -> None:
        if whom == "group":
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def die_while_writing(before: set[str]) -> None:
        while not data_files() - before:
            time.sleep(0.01)
        die()

    def observer(step: Step, line: str) -> None:
        nonlocal occurrences
        occurrences += step == (Step.INTENT_PUT if last_step == WRITING else last_step)
        if occurrences < int(occurrence):
            return
        if last_step == WRITING:
            threading.Thread(target=die_while_writing, args=(data_files(),), daemon=True).start()
        elif step == last_step:
            die()

    outcome = build_platform(project).loop(flow, NOW, observer=observer).run()
    sys.exit(f"it was to die, and ended: {outcome.as_json()}")
