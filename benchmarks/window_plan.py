"""Measures plans of up to 1,000,000 work units above as many committed intervals, and the ledger.

The figures are time, memory and growth.
"""

from __future__ import annotations

from typing import Any

from benchmarks.measure import median, report, script

SHAPES = (("daily", 1000), ("hourly", 10))
SIZES = (100_000, 300_000, 1_000_000)
RUNS = 3
STEPS = ("parse", "check", "plan", "missing", "ledger")


def run() -> None:
    """Measure each size in fresh processes. Every second window is loaded, so that intervals do not merge."""
    rows = [_row(grain, units, size) for grain, units in SHAPES for size in SIZES]
    notes = []
    for grain, units in SHAPES:
        of = {row["work units"]: row for row in rows if row["windows"] == grain}
        most, least = of[SIZES[-1]], of[SIZES[0]]
        notes.append(
            f"{units:,} units x {grain} windows: plan {most['plan s']:.2f} s (aim: at most 2 s), peak {most['peak MiB']:.0f} MiB"
            f" (aim: at most 400), {most['plan s'] / least['plan s']:.1f}x of a tenth of it; missing intervals {most['missing s']:.2f} s"
            " (aim: at most 0.5 s)"
        )
    report(
        "window_plan",
        rows,
        [*notes, "seconds are of CPU; the peak is the process's, with state and text, up to the plan"],
    )


def _row(grain: str, units: int, size: int) -> dict[str, Any]:
    results = [script("plan_windows", grain, units, size) for _ in range(RUNS)]
    return {
        "windows": grain,
        "units": units,
        "work units": size,
        **{f"{step} s": median([result[f"{step} s"] for result in results]) for step in STEPS},
        "plan wall s": median([result["plan wall s"] for result in results]),
        "peak MiB": max(result["after plan MiB"] for result in results),
        "text MiB": results[0]["text MiB"],
    }
