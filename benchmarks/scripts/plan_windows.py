"""Plan a number of work units above as many runs that cannot merge; print the cost of each step.

Arguments: grain, units, work units.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from partitions.instants import milliseconds
from partitions.intervals import find_gaps
from partitions.sentinels import deserialise, serialise
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import ledger
from partitions.window.plan import plan
from partitions.window.state import WindowState

START = datetime(2000, 1, 1, tzinfo=UTC)


def main(grain: str, units: int, works: int) -> dict[str, Any]:
    """Load every second window of each unit, so that intervals do not merge and the others are due."""
    names = [f'{{"id":{number}}}' for number in range(units)]
    units_works = works // units
    size = timedelta(hours=1) if grain == "hourly" else timedelta(days=1)
    now = START + 2 * units_works * size
    entry = {"name": "t", "type": "datetime", "range": {"from": "2000-01-01", "to": "-"}}
    definition = WindowWatermark.of({"definition": [entry], "window": grain})
    text = _text(names, units_works, size // timedelta(milliseconds=1), definition.default_grid.text)
    costs: dict[str, Any] = {"text MiB": len(text) / 2**20}

    def measured(name: str, act: Callable[[], Any]) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = act()
        costs[f"{name} s"], costs[f"{name} wall s"] = time.process_time() - cpu, time.perf_counter() - wall
        costs[f"after {name} MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return result

    watermark = measured("parse", lambda: deserialise(text))
    state = measured("check", lambda: WindowState.of(watermark))
    the_plan = measured("plan", lambda: plan(definition, state, names, now, dataflow="bench", state_number=1))
    due = int(the_plan.why.split(" ")[0].replace(",", ""))
    bounds = milliseconds(START), milliseconds(now)
    gaps = measured("missing", lambda: sum(len(find_gaps(runs, *bounds)) for runs in state.units.values()))
    whole = measured("ledger", lambda: ledger(definition, state, names, now, dataflow="bench"))
    assert due == gaps == whole.gaps == units_works * units, the_plan.why
    assert sum(len(piece.works) for piece in the_plan.slices) == min(10_000, due)
    return costs


def _text(names: list[str], units_works: int, step: int, grid: str) -> str:
    first = milliseconds(START)
    runs = [
        [first + (2 * number + 1) * step, first + (2 * number + 2) * step] for number in range(units_works)
    ]
    return serialise({"grid": grid, "units": dict.fromkeys(names, runs)})


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
