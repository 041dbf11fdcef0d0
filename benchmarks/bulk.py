"""Measure a first load of 500 files of 1,000 rows against a bare Spark script that is given the list of files; time beyond start-up.

Bare Spark drops unknown fields without a word, so the load that ignores them is its like; the other one is what a dataflow does by default.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.landing import name, project, with_rows
from benchmarks.measure import alternate, median, ratio, report, script

FILES, ROWS, RUNS = 500, 1000, 5


def run() -> None:
    """Measure both in turn, each in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        ignoring = project(Path(folder) / "project", unknown_fields="ignore")
        landing = ignoring / "landing"
        checking = project(Path(folder) / "checking")
        (checking / "landing").rmdir()
        (checking / "landing").symlink_to(landing)
        for number in range(FILES):
            with_rows(landing / name(number), ROWS, number * ROWS)
        figures = alternate(
            RUNS,
            ours=lambda: float(script("bulk_ours", ignoring, tempfile.mkdtemp(dir=folder))["seconds"]),
            checked=lambda: float(script("bulk_ours", checking, tempfile.mkdtemp(dir=folder))["seconds"]),
            bare=lambda: float(script("bulk_bare", landing, tempfile.mkdtemp(dir=folder))["seconds"]),
        )
    rows = [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    report(
        "bulk",
        rows,
        [
            f"ours, which ignores unknown fields / bare Spark: {ratio(figures, 'ours', 'bare'):.2f} (aim: at most 1.10)",
            f"ours, which checks for unknown fields / bare Spark: {ratio(figures, 'checked', 'bare'):.2f}",
        ],
    )
