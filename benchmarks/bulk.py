"""Measure a first load of 500 files of 1,000 rows against a bare Spark script that is given the list of files; time beyond start-up."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.landing import name, project, with_rows
from benchmarks.measure import alternate, median, ratio, report, script

FILES, ROWS, RUNS = 500, 1000, 5


def run() -> None:
    """Measure both in turn, each in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        landing = project(Path(folder) / "project") / "landing"
        for number in range(FILES):
            with_rows(landing / name(number), ROWS, number * ROWS)
        figures = alternate(
            RUNS,
            ours=lambda: float(script("bulk_ours", landing.parent, tempfile.mkdtemp(dir=folder))["seconds"]),
            bare=lambda: float(script("bulk_bare", landing, tempfile.mkdtemp(dir=folder))["seconds"]),
        )
    rows = [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    report("bulk", rows, [f"ours / bare Spark: {ratio(figures, 'ours', 'bare'):.2f} (aim: at most 1.10)"])
