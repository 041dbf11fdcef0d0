"""Plan a dataflow over a table of many commits, and evaluate its sensor; print the CPU seconds of each.

The argument is the project's folder. The dataflow has read everything but the newest commit.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from dagster import DagsterInstance, SensorResult, build_sensor_context

from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.offset.definitions import OffsetDefinitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.dagster.names import DagsterNames
from resources.dagster.run_options import RunOptions

LOOKS = 15


def main(folder: Path) -> dict[str, Any]:
    """Return the median CPU seconds of a plan and of a sensor's tick; the first of each does not count."""
    project = load_project(folder)
    platform, flow = build_platform(project), project.dataflows["copy"]
    names = DagsterNames.of([flow])["copy"]
    job = dataflow_job(flow, names)
    (sensor,) = OffsetDefinitions().triggers(flow, platform, names, RunOptions(), job).sensors
    definition = sensor.definition()

    def plan() -> None:
        (slice_,) = build_platform(project).plan(flow, datetime.now(UTC)).slices
        assert len(slice_.input.commits) == 1, slice_

    def tick() -> None:
        result = definition(build_sensor_context(instance=instance))
        assert isinstance(result, SensorResult), result
        assert result.run_requests, result

    with DagsterInstance.ephemeral() as instance:
        return {"plan": _cpu(plan), "tick": _cpu(tick)}


def _cpu(look: Callable[[], None]) -> float:
    look()
    figures = []
    for _ in range(LOOKS):
        before = time.process_time()
        look()
        figures.append(time.process_time() - before)
    return statistics.median(figures)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
