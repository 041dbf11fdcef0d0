"""Loads a hundred days with the loop that a Dagster run drives, as one run or as one run each.

Prints the seconds beyond the start of Spark.
"""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from partitions.request import Forced, WorkUnitSelection
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine

project = load_project(Path(sys.argv[1]))
flow = project.dataflows["events"]
engine = SparkEngine(master="local[2]", cache=cache_folder())
lake = Place(sys.argv[2])
for name in ("raw",):
    (Path(sys.argv[2]) / name).symlink_to(Path(sys.argv[1]) / "lake" / name)
platform = Platform(lake.child("state"), lake, engine, lambda flow: lake.child("raw/events"))
now = datetime(2024, 5, 1, tzinfo=UTC)
first = platform.loop(flow, now).run()
assert first.error is None, first
windows = list(flow.window.windows(now))
whole = ((windows[0].start, windows[-1].end),)
ranges = [whole] if sys.argv[3] == "range" else [((range_.start, range_.end),) for range_ in windows]
before = time.monotonic()
rows = 0
for range_ in ranges:
    outcome = platform.loop(flow, now, Forced(WorkUnitSelection(ranges=range_))).run()
    assert outcome.error is None, outcome
    rows += outcome.rows
seconds = time.monotonic() - before
assert rows == first.rows, (rows, first.rows)
print(json.dumps({"seconds": seconds, "rows": rows}))
