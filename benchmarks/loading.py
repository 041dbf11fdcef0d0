"""Measures the CPU time of code locations of 300 and of 1,000 dataflows, beyond `import dagster`."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import yaml

from benchmarks.measure import median, report, script

RUNS = 3
AIMS = {300: 4, 1000: 8}
"""Seconds by the number of dataflows."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney")


def run() -> None:
    """Measure loads in fresh processes; half of the dataflows are files, half windows and units.

    They have several zones.
    """
    rows, lines = [], []
    for count, aim in AIMS.items():
        sides = _figures(count)
        for side, figures in sides.items():
            seconds = figures["seconds"]
            row = {"dataflows": count, "location": side, "seconds": median(seconds)}
            row |= {"min": min(seconds), "max": max(seconds), "snapshot": median(figures["snapshot"])}
            rows.append(row)
        ours, plain = (median(figures["seconds"]) for figures in sides.values())
        lines.append(
            f"{count:,} dataflows over `import dagster`: {ours:.2f} s (aim: at most {aim});"
            f" a location of Dagster alone with the same parts: {plain:.2f} s"
        )
    report("loading", rows, [*lines, "snapshot: what a code server takes for the snapshots of all jobs then"])


def _figures(count: int) -> dict[str, dict[str, list[float]]]:
    """Return the figures of a project's location, and of one of Dagster alone with the same parts.

    The first load of each does not count: it writes the byte code of all modules, which an installed package has.
    """
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        (project / "dataflows").mkdir(parents=True)
        (project / "platform.yaml").write_text("{}\n")
        for number in range(count):
            dataflow = _windows(number) if number % 2 else _files(number)
            (project / "dataflows" / f"flow_{number}.yaml").write_text(yaml.safe_dump(dataflow))
        environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/byte_code"}
        sides = {"project": ("loading_location", project), "Dagster alone": ("loading_plain", count)}
        figures = {side: defaultdict[str, list[float]](list) for side in sides}
        for run in range(RUNS + 1):
            for side, (name, argument) in sides.items():
                measured = script(name, argument, environment=environment)
                for figure in ("seconds", "snapshot") if run else ():
                    figures[side][figure].append(float(measured[figure]))
    return {side: dict(of_side) for side, of_side in figures.items()}


def _files(number: int) -> dict[str, object]:
    source = {
        "type": "files",
        "path": f"../landing/{number}",
        "format": "ndjson",
        "schema": "id long, at timestamp",
    }
    return {"source": source, "watermark": {"type": "path"}, "target": {"load": "append"}}


def _windows(number: int) -> dict[str, object]:
    entries = [
        {"name": "day", "type": "datetime", "range": {"from": "2017-01-02", "to": "-"}},
        {"name": "unit", "type": "unit", "units": ",".join(f"u{unit}" for unit in range(50))},
    ]
    return {
        "source": {
            "type": "table",
            "table": f"raw/events_{number}",
            "window_column": "at",
            "unit_columns": {"unit": "unit"},
        },
        "watermark": {
            "type": "window",
            "definition": entries,
            "window": "daily",
            "timezone": ZONES[number % len(ZONES)],
            "grace": "P3D",
        },
        "target": {"load": "merge_overwrite", "replace_by_watermark": True},
    }
