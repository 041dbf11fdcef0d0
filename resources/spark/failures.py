"""The cause of a failure of Spark, in a line for people."""

from __future__ import annotations

import re

from partitions.errors import shorten_to_line
from resources.connections.object_store_errors import spark_failure
from resources.spark.advice import without_advice
from resources.spark.process import describe_engine_loss, describe_java_end, error_line, missing_iceberg
from resources.spark_runtime import AVRO_PACKAGE

_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+): (.+)$", re.MULTILINE)


_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
_OF_VALUES = ("21", "22", "P0", "23505")
"""Prefixes of SQLSTATEs of queries that cannot compute a value: too many rows, a value out of range or of another type, a raised
error, a duplicate key of a map."""


def fails_on_values(error: Exception) -> bool:
    """Return whether a query failed on a value or in a Python function, as it would every time."""
    from pyspark.errors import PythonException

    at: BaseException | None = error
    while at is not None:
        states = _STATE.findall(str(at))
        if isinstance(at, PythonException) or any(state.startswith(_OF_VALUES) for state in states):
            return True
        at = at.__cause__
    return False


def root_cause(error: Exception) -> str:
    """Return the root cause of a failure of Spark in one line."""
    if exit_line := describe_java_end():
        return exit_line
    if loss := describe_engine_loss(error):
        return loss
    if of_store := spark_failure(str(error)):
        return f"{of_store[0]}: {of_store[1]}"
    if without := missing_iceberg(error):
        return without
    if "Failed to find data source: avro" in str(error):
        return f"this Spark has no reader of Avro: start it with the package {AVRO_PACKAGE}, as `strandline dev` does"
    causes = _CAUSE.findall(str(error))
    if causes and not causes[-1][1].startswith("Traceback "):
        of_java, text = causes[-1]
        return shorten_to_line(f"{of_java}: {without_advice(text)}")
    return error_line(error)
