"""Measures the CPU time of code locations of 300 and of 1,000 dataflows, beyond `import dagster`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from benchmarks.measure import alternate, median, report, script

RUNS = 3
AIMS = {300: 4, 1000: 8}
"""Seconds by the number of dataflows."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney")


def run() -> None:
    """Measure loads in fresh processes; half of the dataflows are files, half windows and units.

    They have several zones.
    """
    seconds = {count: _seconds(count) for count in AIMS}
    rows = [
        {
            "dataflows": count,
            "location": side,
            "seconds": median(figures),
            "min": min(figures),
            "max": max(figures),
        }
        for count, sides in seconds.items()
        for side, figures in sides.items()
    ]
    lines = [
        f"{count:,} dataflows over `import dagster`: {median(sides['project']):.2f} s (aim: at most {AIMS[count]});"
        f" a location of Dagster alone with the same parts: {median(sides['Dagster alone']):.2f} s"
        for count, sides in seconds.items()
    ]
    report("loading", rows, lines)


def _seconds(count: int) -> dict[str, list[float]]:
    """Return the seconds of a project's location, and of one of Dagster alone with the same parts.

    Both are loaded once before, so that the byte code of all modules exists, as in an installed package.
    """
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        (project / "dataflows").mkdir(parents=True)
        (project / "platform.yaml").write_text("{}\n")
        for number in range(count):
            dataflow = _windows(number) if number % 2 else _files(number)
            (project / "dataflows" / f"flow_{number}.yaml").write_text(yaml.safe_dump(dataflow))
        environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/byte_code"}

        def load(name: str, argument: object) -> float:
            return float(script(name, argument, environment=environment)["seconds"])

        sides: dict[str, Callable[[], float]] = {
            "project": lambda: load("loading_location", project),
            "Dagster alone": lambda: load("loading_plain", count),
        }
        for side in sides.values():
            side()
        return alternate(RUNS, **sides)


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
