"""What is told of a Java process that fails; starting one is tests/integration/test_spark_start.py's."""

from __future__ import annotations

import tempfile

import pytest

from resources.spark import process as spark_process

CHATTER = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/21 15:14:50 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel).
"""


def said(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        monkeypatch.setattr(spark_process, "_output", file)
        return spark_process.last_output()


def test_a_java_that_starts_as_always_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(CHATTER, monkeypatch) == ""


def test_nothing_was_said_where_no_java_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_process, "_output", None)
    assert spark_process.last_output() == ""


def test_errors_are_told_and_stack_traces_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = 'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]\n\tat a.B.c(B.java:1)\n'
    assert said(CHATTER + "some line\n" + trace, monkeypatch) == trace.splitlines()[0]


def test_without_an_error_the_last_lines_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(CHATTER + "one\ntwo\nthree\nfour\n", monkeypatch) == "two | three | four"


def test_of_much_output_only_the_end_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "java.lang.Error: early\n" + "x" * 100_000 + "\njava.lang.OutOfMemoryError: Java heap space\n"
    assert said(text, monkeypatch) == "java.lang.OutOfMemoryError: Java heap space"


def test_a_line_that_says_what_failed_is_told_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"java.io.IOException: {'x' * 500}: the cause"
    assert said(f"{line}\n", monkeypatch) == line
