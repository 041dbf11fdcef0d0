"""Run a dataflow and die at a step: ``python -m tests.support.crash_runner PROJECT STEP OCCURRENCE [client|group]``.

``client`` kills this process alone, so a write on a Connect server goes on; ``group`` kills an embedded JVM with it. The
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
from resources.loop.outcome import Step
from tests.support.feed import NAME, NOW

WRITING = "writing"


def main(folder: Path, wanted: str, occurrence: int, whom: str) -> None:
    """Run until the step was done that often."""
    seen = 0
    project = load_project(folder)
    flow = project.dataflows[NAME]
    table = project.table_place(flow).local
    assert table is not None

    def die() -> None:
        if whom == "group":
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def die_while_writing(before: set[Path]) -> None:
        while not set(table.glob("*.parquet")) - before:
            time.sleep(0.01)
        die()

    def observer(step: Step, line: str) -> None:
        nonlocal seen
        seen += step == (Step.INTENT_PUT if wanted == WRITING else wanted)
        if seen < occurrence:
            return
        if wanted == WRITING:
            threading.Thread(
                target=die_while_writing, args=(set(table.glob("*.parquet")),), daemon=True
            ).start()
        elif step == wanted:
            die()

    outcome = build_platform(project).loop(flow, NOW, observer=observer).run()
    sys.exit(f"it was to die, and ended: {outcome.as_json()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
