"""Runs one round of the sweep, step by step, without loading late files.

Prints the median cost of a step.
"""

import json
import resource
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import pyarrow.compute  # imports are not measured
import pyarrow.parquet  # noqa: F401

from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.kinds.path.late import find_late

project = load_project(Path(sys.argv[1]))
platform = build_platform(project)
(flow,) = project.dataflows.values()
platform.root_of(flow).store  # noqa: B018 - makes the client, once per process
cpus, walls, calls, late, listed = [], [], [], [], 0
while True:
    cpu, wall = time.process_time(), time.monotonic()
    step = find_late(platform, flow, datetime.now(UTC))
    cpus.append(time.process_time() - cpu)
    walls.append(time.monotonic() - wall)
    calls.append(step.calls)
    late += [file.path for file in step.late]
    listed += step.listed
    if step.complete:
        break
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(
    json.dumps(
        {
            "steps": len(cpus),
            "cpu": statistics.median(cpus),
            "wall": statistics.median(walls),
            "total": sum(cpus),
            "calls": max(calls),
            "late": late,
            "listed": listed,
            "memory": peak / 1024,
        }
    )
)
