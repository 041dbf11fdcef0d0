"""What is told of an error of Spark: its cause, whole."""

from __future__ import annotations

import pytest

from partitions.errors import BadFile
from resources.readers.failures import bad_record, cause

LONG = "s3a://bucket/" + "x" * 400
DENIED = f"S3Exception: {LONG}: The AWS Access Key Id you provided does not exist in our records. (Service: S3, Status Code: 403)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"(org.apache.spark.SparkException) Job aborted\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: x\n\tat d\nCaused by: software.amazon.{DENIED}\n\tat e",
            DENIED,
        ),
        (
            f"[PATH_NOT_FOUND] Path does not exist: {LONG}. SQLSTATE: 42K03\n'Project",
            f"[PATH_NOT_FOUND] Path does not exist: {LONG}. SQLSTATE: 42K03",
        ),
        (
            "An error occurred while calling o12.save.\n: org.apache.spark.SparkException: no room left\n\tat a.B",
            "org.apache.spark.SparkException: no room left",
        ),
        (
            ("\n  An exception was thrown from the Python worker. Please see the stack trace below.\nTraceback (most recent call last):\n"
            '  File "steps.py", line 3, in clean\n    raise ValueError(text)\nValueError: 7 is no airport\n\nJVM stacktrace:\norg.apache'),
            "ValueError: 7 is no airport",
        ),
        (
            ("Job aborted\nCaused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            "  File \"steps.py\", line 3, in clean\nKeyError: 'id'\n\n\tat org.apache"),
            "KeyError: 'id'",
        ),
        ("", "RuntimeError"),
    ],
    ids=["java", "analysis", "py4j", "python", "python in java", "nothing"],
)
def test_the_cause_of_an_error_of_spark_is_told_whole(text: str, told: str) -> None:
    assert cause(RuntimeError(text)) == told


def test_a_bad_record_does_not_name_an_option_that_is_not_there_yet() -> None:
    assert "max_bad_records" not in bad_record(BadFile("a", path="a"), "x", 1).message
