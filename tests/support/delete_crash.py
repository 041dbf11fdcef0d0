"""Deletes rows in a process that kills itself at a step of the protocol."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.decisions.delete import delete_rows
from resources.outcome import Step
from tests.support.environment import clean_environment
from tests.support.feed import NAME, NOW, Feed
from tests.support.forks import forked


def crash_deleting(feed: Feed, step: Step, where: str) -> None:
    """Delete rows of the dataflow in a process that dies right after a step."""
    environment = (
        clean_environment() | feed.environment | {"STRANDLINE_SPARK_REMOTE": str(feed.engine.remote)}
    )
    ended = forked(__name__, [str(feed.folder), str(step), where], environment)
    assert ended.code == -signal.SIGKILL, ended.output


def main(folder: str, last_step: str, where: str) -> None:
    """Delete until the step."""
    project = load_project(Path(folder))

    def observer(step: Step, line: str) -> None:
        if step == last_step:
            os.kill(os.getpid(), signal.SIGKILL)

    entry = delete_rows(
        build_platform(project), project.dataflows[NAME], where, "asked for", NOW, observer=observer
    )
    sys.exit(f"it was to die, and appended entry {entry.number}")
