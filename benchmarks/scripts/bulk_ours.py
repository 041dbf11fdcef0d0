"""Load a project's dataflow from nothing with the loop; print the seconds beyond the start of Spark."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine

project = load_project(Path(sys.argv[1]))
flow = project.dataflows["arrivals"]
work = Place(sys.argv[2])
engine = SparkEngine(master="local[2]", cache=cache_folder())
engine.session().range(1).collect()
platform = Platform(work.child("state"), work.child("lake"), engine, project.source_place)
before = time.monotonic()
outcome = platform.loop(flow, datetime.now(UTC)).run()
seconds = time.monotonic() - before
assert outcome.error is None, outcome
print(json.dumps({"seconds": seconds, "rows": outcome.rows}))
