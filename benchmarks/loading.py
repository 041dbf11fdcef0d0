"""Measures Dagster's CPU time to load a code location of 300 and of 1,000 dataflows, beyond `import dagster`."""

from __future__ import annotations

import tempfile
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
        {"dataflows": count, "seconds": median(figures), "min": min(figures), "max": max(figures)}
        for count, figures in seconds.items()
    ]
    lines = [
        f"{count:,} dataflows over `import dagster`: {median(figures):.2f} s (aim: at most {AIMS[count]})"
        for count, figures in seconds.items()
    ]
    report("loading", rows, lines)


def _seconds(count: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "dataflows").mkdir()
        (project / "platform.yaml").write_text("{}\n")
        for number in range(count):
            dataflow = _windows(number) if number % 2 else _files(number)
            (project / "dataflows" / f"flow_{number}.yaml").write_text(yaml.safe_dump(dataflow))
        measured = alternate(RUNS, load=lambda: float(script("loading_location", project)["seconds"]))
    return measured["load"]


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
