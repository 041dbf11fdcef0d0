"""Measures first loads, of 500 files of 1,000 rows and of one file of 5,000,000, against bare Spark.

Bare Spark gets the list of files. The time counts from when Spark has started. Bare Spark silently drops
unknown fields, so
the load that ignores them is its equal; the other load is the default of a dataflow. Both hold all values
exactly.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.landing import name, project, with_rows
from benchmarks.measure import alternate, median, ratio, report, script


class Shape(NamedTuple):
    """The files of a load.

    Attributes:
        files: the number of files.
        rows: the rows of each file.
        runs: the runs of each side.
        aim: the ratio to bare Spark that the load with all checks must not exceed.
    """

    files: int
    rows: int
    runs: int
    aim: float


SHAPES = (Shape(500, 1000, 5, 1.25), Shape(1, 5_000_000, 3, 1.5))


def run() -> None:
    """Measure all sides in turn, each in a fresh process."""
    rows, remarks = [], []
    for shape in SHAPES:
        figures = _seconds(shape)
        shape_text = f"{shape.files:,} x {shape.rows:,} rows"
        rows += [
            {
                "files": shape_text,
                "side": side,
                "seconds": median(values),
                "min": min(values),
                "max": max(values),
            }
            for side, values in figures.items()
        ]
        remarks += [
            f"{shape_text}, ours, which ignores unknown fields / bare Spark: {ratio(figures, 'ours', 'bare'):.2f}",
            f"{shape_text}, ours, which checks for unknown fields / bare Spark: {ratio(figures, 'checked', 'bare'):.2f} (aim: at most {shape.aim})",
        ]
    report("bulk", rows, remarks)


def _seconds(shape: Shape) -> dict[str, list[float]]:
    """Return the seconds of each side's runs over files of one shape."""
    with tempfile.TemporaryDirectory() as folder:
        ignoring = project(Path(folder) / "project", unknown_fields="ignore")
        landing = ignoring / "landing"
        checking = project(Path(folder) / "checking")
        (checking / "landing").rmdir()
        (checking / "landing").symlink_to(landing)
        for number in range(shape.files):
            with_rows(landing / name(number), shape.rows, number * shape.rows)

        def seconds(side: str, source: Path) -> float:
            with tempfile.TemporaryDirectory(dir=folder) as work:
                answer = script(f"bulk_{side}", source, work)
            assert answer.get("rows", shape.files * shape.rows) == shape.files * shape.rows, answer
            return float(answer["seconds"])

        return alternate(
            shape.runs,
            ours=lambda: seconds("ours", ignoring),
            checked=lambda: seconds("ours", checking),
            bare=lambda: seconds("bare", landing),
        )
