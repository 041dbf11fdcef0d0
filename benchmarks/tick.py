"""Measures a tick with one new file: `strandline run`, embedded and warm, against bare Spark and dlt.

Bare Spark gets the file's name. The warm comparison leaves out imports: it starts when the modules and
Dagster's temporary
instance are loaded.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.landing import local_history, name, pretend_loaded, project, with_rows
from benchmarks.measure import CHECKOUT, alternate, command, median, ratio, report, script
from platform_assets.installation import cache_folder
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine

HISTORIES = (1_000, 50_000)
RUNS = 9
_IGNORING = "warm, beyond imports, unknown fields ignored"


def run() -> None:
    """Measure all sides in turn."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        zones = {size: _zone(root / str(size), size) for size in HISTORIES}
        rows = _cold(root, zones[HISTORIES[0]])
        ignoring = _zone(root / "ignoring", HISTORIES[0], unknown_fields="ignore")
        with connect_server(
            SparkEngine(master="local[2]", cache=cache_folder()), root / "connect.log"
        ) as url:
            warm = _warm(root, zones, ignoring, url) | _whole(zones, url)
    rows += [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in warm.items()
    ]
    small, large = (f"warm, beyond imports, history {size}" for size in HISTORIES)
    figures = {row["side"]: row["seconds"] for row in rows}
    report(
        "tick",
        rows,
        [
            f"warm tick / bare Spark on the same server: {ratio(warm, small, 'bare Spark, warm'):.2f} (aim: at most 1.3)",
            f"warm tick that ignores unknown fields / bare Spark: {ratio(warm, _IGNORING, 'bare Spark, warm'):.2f}",
            f"warm tick without Dagster's own work / bare Spark: {ratio(warm, _loop_of(HISTORIES[0]), 'bare Spark, warm'):.2f}",
            f"warm tick / bare Spark that writes with an idempotent tag: {ratio(warm, small, 'bare Spark with a tag, warm'):.2f}",
            f"warm tick at 50,000 files of history / at 1,000: {ratio(warm, large, small):.2f} (aim: the same)",
            *(
                f"whole command on a warm server / dlt, {size:,} files of history: {ratio(warm, _whole_of('strandline run', size), _whole_of('dlt', size)):.2f} (aim: below 1)"
                for size in HISTORIES
            ),
            f"embedded / bare Spark, both cold: {figures['strandline run, embedded'] / figures['bare Spark, cold']:.2f} (aim: at most 1)",
        ],
    )


def _zone(folder: Path, size: int, *, unknown_fields: str = "check") -> Path:
    """Create a project that has loaded its history."""
    project_folder = project(folder, unknown_fields=unknown_fields)
    local_history(project_folder / "landing", size)
    pretend_loaded(project_folder, name(size - 1))
    return project_folder


def _arrivals(project_folder: Path, size: int) -> Iterator[Path]:
    """Yield new files in a landing zone, one per call."""
    for number in range(size, size + 10_000):
        path = project_folder / "landing" / name(number)
        with_rows(path, 1000, number)
        yield path


def _cold(root: Path, project_folder: Path) -> list[dict[str, Any]]:
    """Measure whole processes; Spark starts in each."""
    new, bare_arrivals = _arrivals(project_folder, HISTORIES[0]), _arrivals(root / "bare_zone", 0)
    cli = [sys.executable, "-m", "platform_assets.cli", "--project", str(project_folder), "run", "arrivals"]

    def run_product(environment: dict[str, str] | None = None) -> float:
        next(new)
        cost = command(cli, environment)
        assert cost.code == 0, cost.output
        return cost.wall

    def bare() -> float:
        return float(script("tick_bare", next(bare_arrivals), root / "bare", "", "plain")["process_wall"])

    def bare_archive() -> float:
        return float(script("tick_bare", next(bare_arrivals), root / "bare", "", "archive")["process_wall"])

    sides: dict[str, Callable[[], float]] = {
        "strandline run, embedded": run_product,
        "strandline run, embedded, no archive": lambda: run_product({"SPARK_SUBMIT_OPTS": "-Xshare:auto"}),
        "bare Spark, cold": bare,
        "bare Spark, cold, with Strandline's archive and jar list": bare_archive,
    }
    figures = alternate(3, **sides)
    return [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]


def _warm(root: Path, zones: dict[int, Path], ignoring: Path, url: str) -> dict[str, list[float]]:
    """Measure on one warm server. The first rounds warm it up and do not count."""
    arrivals = {size: _arrivals(project_folder, size + 20_000) for size, project_folder in zones.items()}
    ignored = _arrivals(ignoring, HISTORIES[0] + 20_000)
    bare_arrivals = _arrivals(root / "bare_zone", 20_000)

    loops: dict[str, list[float]] = {_loop_of(size): [] for size in HISTORIES}

    def run_product(size: int) -> float:
        next(arrivals[size])
        result = script("tick_ours", zones[size], environment={"STRANDLINE_SPARK_REMOTE": url})
        loops[_loop_of(size)].append(float(result["loop"]))
        return float(result["seconds"])

    def without_check() -> float:
        next(ignored)
        return float(script("tick_ours", ignoring, environment={"STRANDLINE_SPARK_REMOTE": url})["seconds"])

    sides: dict[str, Callable[[], float]] = {
        f"warm, beyond imports, history {HISTORIES[0]}": lambda: run_product(HISTORIES[0]),
        f"warm, beyond imports, history {HISTORIES[1]}": lambda: run_product(HISTORIES[1]),
        _IGNORING: without_check,
        "bare Spark, warm": lambda: float(
            script("tick_bare", next(bare_arrivals), root / "warm_bare", url, "plain")["seconds"]
        ),
        "bare Spark with a tag, warm": lambda: float(
            script("tick_bare", next(bare_arrivals), root / "warm_tagged", url, "tagged")["seconds"]
        ),
    }
    alternate(4, **sides)
    figures = alternate(RUNS, **sides)
    return figures | {side: values[-RUNS:] for side, values in loops.items()}


def _loop_of(size: int) -> str:
    return f"the same without Dagster's own work, history {size}"


def _whole(zones: dict[int, Path], url: str) -> dict[str, list[float]]:
    """Measure whole commands on a warm server in turn with dlt's filesystem source to Delta.

    dlt is incremental by modification date.
    """
    sides: dict[str, Callable[[], float]] = {}
    for size, project_folder in zones.items():
        new, dlt_folder = _arrivals(project_folder, size + 40_000), project_folder / "dlt"
        shutil.copytree(project_folder / "landing", dlt_folder / "landing")
        new_of_dlt = _arrivals(dlt_folder, size + 40_000)
        sides[_whole_of("strandline run", size)] = partial(_run_product, project_folder, new, url)
        sides[_whole_of("dlt", size)] = partial(_dlt, dlt_folder, new_of_dlt)
    alternate(1, **sides)
    return alternate(RUNS, **sides)


def _whole_of(command_name: str, size: int) -> str:
    return f"{command_name}, whole command, history {size}"


def _run_product(project_folder: Path, new: Iterator[Path], url: str) -> float:
    next(new)
    arguments = [
        sys.executable,
        "-m",
        "platform_assets.cli",
        "--project",
        str(project_folder),
        "run",
        "arrivals",
    ]
    cost = command(arguments, {"STRANDLINE_SPARK_REMOTE": url})
    assert cost.code == 0, cost.output
    return cost.wall


def _dlt(work: Path, new: Iterator[Path]) -> float:
    next(new)
    cost = command([sys.executable, str(CHECKOUT / "benchmarks/scripts/tick_dlt.py"), str(work)])
    assert cost.code == 0, cost.output
    return cost.wall
