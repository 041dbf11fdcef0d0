"""An engine that is gone is told from everything that a source or a table can be blamed for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors.exceptions.connect import AnalysisException, SparkConnectGrpcException, SparkException

from resources.spark.failures import root_cause
from resources.spark.process import describe_engine_loss, error_line, missing_iceberg
from resources.spark_runtime import ICEBERG_PACKAGE

REFUSED = """<_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:15002: Connection refused"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>"""
DETAILS = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:15002: Connection refused"
CLOSED = "[INVALID_HANDLE.SESSION_CLOSED] The handle 7 is invalid. Session was closed. SQLSTATE: HY000"


def test_an_engine_that_does_not_answer_is_lost_and_the_reason_is_whole() -> None:
    assert describe_engine_loss(SparkConnectGrpcException(REFUSED)) == DETAILS
    assert root_cause(SparkConnectGrpcException(REFUSED)) == DETAILS
    assert error_line(SparkConnectGrpcException(REFUSED)) == DETAILS


class RpcError(Exception):
    """As grpc's own, which has no types."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status

    def code(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.status)

    def details(self) -> str:
        return "Socket closed"


def test_an_error_of_the_way_there_is_found_below_another() -> None:
    error = ValueError("no rows")
    error.__context__ = RpcError("UNAVAILABLE")
    assert describe_engine_loss(error) == "Socket closed"


def test_spark_s_own_error_comes_by_an_rpc_that_failed_and_the_engine_is_there() -> None:
    error = SparkException("[FAILED_READ_FILE] file:/a.json")
    error.__context__ = RpcError("INTERNAL")
    assert describe_engine_loss(error) is None


def test_a_session_that_the_engine_has_forgotten_is_lost() -> None:
    error = SparkConnectGrpcException(CLOSED, errorClass="INVALID_HANDLE.SESSION_CLOSED")
    assert describe_engine_loss(error) == CLOSED


@pytest.mark.parametrize(
    "error",
    [
        AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] no table", errorClass="TABLE_OR_VIEW_NOT_FOUND"),
        SparkException("[FAILED_READ_FILE] file:/a.json"),
        ValueError("StatusCode.UNAVAILABLE says a user's own function"),
    ],
    ids=["analysis", "file", "somebody else's words"],
)
def test_other_errors_say_nothing_of_the_engine(error: Exception) -> None:
    assert describe_engine_loss(error) is None


def test_an_engine_without_iceberg_is_told_with_the_package_to_start_it_with() -> None:
    error = SparkException(
        "(java.lang.ClassNotFoundException) org.apache.iceberg.spark.SparkCatalog\n\nJVM stacktrace:\n"
        "java.lang.ClassNotFoundException: org.apache.iceberg.spark.SparkCatalog\n\tat a.B.c(B.java:1)"
    )
    told = missing_iceberg(error, "sc://engine:15002")
    assert told is not None
    assert told.startswith(
        "the Spark Connect server sc://engine:15002 was started without Iceberg."
        f" Start it with the package {ICEBERG_PACKAGE} (docs/reference/iceberg.md)"
    )
    assert root_cause(error) == missing_iceberg(error)
    assert missing_iceberg(SparkException("java.lang.ClassNotFoundException: com.example.Mine")) is None
