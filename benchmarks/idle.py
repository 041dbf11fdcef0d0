"""Measures a run with nothing to do, and a plan.

Neither starts Spark, and a plan imports neither Dagster nor pyspark.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.landing import local_history, name, pretend_loaded, project
from benchmarks.measure import command, median, report

RUNS = 5


def run() -> None:
    """Measure whole commands."""
    with tempfile.TemporaryDirectory() as folder:
        project_folder = project(Path(folder))
        local_history(project_folder / "landing", 1000)
        pretend_loaded(project_folder, name(999))
        base = [sys.executable, "-m", "platform_assets.cli", "--project", str(project_folder)]
        sides = {
            "import dagster": [sys.executable, "-c", "import dagster"],
            "strandline plan": [*base, "plan"],
            "strandline run, nothing to do": [*base, "run", "arrivals"],
        }
        rows: list[dict[str, Any]] = []
        for side, arguments in sides.items():
            costs = [command(arguments) for _ in range(RUNS)]
            assert all(cost.code == 0 for cost in costs), side
            rows.append(
                {
                    "command": side,
                    "cpu s": median([cost.cpu for cost in costs]),
                    "wall s": median([cost.wall for cost in costs]),
                    "memory MiB": median([cost.memory for cost in costs]),
                }
            )
        imported = command(
            [sys.executable, "-X", "importtime", "-c", _TRACE.format(project=str(project_folder))]
        )
        heavy = [module for module in ("dagster", "pyspark") if f"loaded {module}" in imported.output]
    plan = next(row["cpu s"] for row in rows if row["command"] == "strandline plan")
    report(
        "idle",
        rows,
        [f"plan: {plan:.2f} s of CPU (aim: under 1 s); of dagster and pyspark it imports {heavy or 'none'}"],
    )


_TRACE = """
import sys
from platform_assets.cli.main import strandline
try:
    strandline.main(["--project", {project!r}, "plan"])
except SystemExit:
    print(*(f"loaded {{name}}" for name in ("dagster", "pyspark") if name in sys.modules))
"""
