"""Loads all pages of an API into an empty table on a warm Spark.

Prints the seconds of the run, the rows and the peak of memory.
"""

import json
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from benchmarks.api_pages import WARM
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine

project = load_project(Path(sys.argv[1]))
platform = Platform(
    project.state, project.lake, SparkEngine(master="local[2]", cache=cache_folder()), project.source_place
)
now = datetime(2026, 6, 1, tzinfo=UTC)
for name in WARM:
    warm = platform.loop(project.dataflows[name], now).run()
    assert warm.error is None, warm
before = time.monotonic()
outcome = platform.loop(project.dataflows["orders"], now).run()
seconds = time.monotonic() - before
assert outcome.error is None, outcome
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "rows": outcome.rows, "memory": memory}))
