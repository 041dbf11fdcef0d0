"""Lists everything, as home-made sensors do, with boto3's paginator or a walk of the folder.

Prints the cost of the listing alone.
"""

import json
import os
import resource
import sys
import time

root = sys.argv[1]
if "://" in root:
    import boto3

    bucket = root.removeprefix("s3://").partition("/")[0]
    client = boto3.client(
        "s3",
        endpoint_url=os.environ["BENCH_ENDPOINT"],
        region_name="us-east-1",
        aws_access_key_id=os.environ["BENCH_KEY"],
        aws_secret_access_key=os.environ["BENCH_SECRET"],
    )
before, memory, calls, keys = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0, []
if "://" in root:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        calls += 1
        keys += [(item["Key"], item["Size"], item["ETag"]) for item in page.get("Contents", ())]
else:
    for folder, _, names in os.walk(root):
        calls += 1
        keys += [
            (f"{folder}/{name}", (status := os.stat(f"{folder}/{name}")).st_size, status.st_mtime_ns)  # noqa: PTH116 - the fast way, as Strandline does it
            for name in names
        ]
newest = max(keys)
cpu = time.process_time() - before
print(
    json.dumps(
        {
            "calls": calls,
            "found": len(keys),
            "cpu": cpu,
            "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024,
        }
    )
)
