"""List above a watermark; print calls, CPU seconds and memory of the listing alone."""

import json
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from benchmarks.landing import name
from partitions.path.listing_positions import AbovePath
from partitions.path.order import FileKey
from resources.connections.places import Place, S3Connection
from resources.listing import list_above

root, size = sys.argv[1], int(sys.argv[2])
connection = (
    S3Connection(
        os.environ["BENCH_ENDPOINT"], "us-east-1", os.environ["BENCH_KEY"], os.environ["BENCH_SECRET"]
    )
    if "://" in root
    else None
)
place = Place(root, connection)
if connection:
    place.store  # noqa: B018 - makes the client, once per process
position = AbovePath(FileKey.of(name(size - 1)), leaf=True)
before, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
listed = list_above(place, position, (".ndjson",)).listed
cpu = time.process_time() - before
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
print(json.dumps({"calls": listed.calls, "found": len(listed.files), "cpu": cpu, "memory": grown / 1024}))
