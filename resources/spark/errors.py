"""Errors of Spark itself: it does not start, does not answer, or was lost."""

from __future__ import annotations

from partitions.errors import StrandlineError


class SparkUnavailable(StrandlineError):
    """No Spark session is available: no Java, jars that do not resolve, an unreachable server."""

    code = "spark"


class EngineLost(SparkUnavailable):
    """The engine died, or dropped the session, during a read or write that is not to blame."""

    code = "engine_lost"
    transient = True

    @classmethod
    def of(cls, dataflow: str, doing: str, reason: str) -> EngineLost:
        """Return the error for a dataflow, with what it was doing."""
        return cls(
            f"dataflow {dataflow}: the Spark engine was lost while {doing}: {reason.rstrip(' .')}. No data is lost: the next run finishes"
            " the open slice. `strandline dev` restarts its engine by itself; check that yours runs",
            choices=(f"strandline run {dataflow}", "strandline doctor"),
        )
