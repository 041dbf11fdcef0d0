"""Why Spark has failed, in a line for people."""

from __future__ import annotations

import re

from partitions.errors import in_one_line
from resources.connections.object_store_errors import spark_failure
from resources.spark.process import engine_lost, java_end, lacks_iceberg, said
from resources.spark_runtime import AVRO_PACKAGE

_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+): (.+)$", re.MULTILINE)


def cause(error: Exception) -> str:
    """The deepest reason in one line."""
    if end := java_end():
        return end
    if lost := engine_lost(error):
        return lost
    if of_store := spark_failure(str(error)):
        return f"{of_store[0]}: {of_store[1]}"
    if without := lacks_iceberg(error):
        return without
    if "Failed to find data source: avro" in str(error):
        return f"this Spark has no reader of Avro: start it with the package {AVRO_PACKAGE}, as `strandline dev` does"
    causes = _CAUSE.findall(str(error))
    if causes and not causes[-1][1].startswith("Traceback "):
        return in_one_line(": ".join(causes[-1]))
    return said(error)
