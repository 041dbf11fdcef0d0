"""Let Spark's own file source find its files; print the CPU seconds of the JVM for that alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from platform_assets.installation import cache_folder
from resources.connections.places import Place
from resources.spark.engine import SparkEngine


def jvm_cpu() -> float:
    pids = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True, check=False
    ).stdout.split()
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids]
    return sum(int(part) for pair in ticks for part in pair) / os.sysconf("SC_CLK_TCK")


spark = SparkEngine(master="local[2]", places=(Place(sys.argv[1]),), cache=cache_folder()).session()
spark.range(1).collect()
before = jvm_cpu()
spark.read.schema("value string").option("recursiveFileLookup", "true").text(sys.argv[1]).schema  # noqa: B018
print(json.dumps({"cpu": jvm_cpu() - before}))
