"""What is refused of a stream on Spark's engine before Spark is asked, and in which words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from partitions.spark_stream.definition import StructuredStream, misplaced_operator
from partitions.spark_stream.delay import spark_delay
from partitions.stream.operators import Aggregate, Operator

_DECLARED: dict[str, Any] = {
    "type": "stream",
    "engine": "structured_streaming",
    "event_time": "ts",
    "timeout": "PT10M",
}
_OPERATORS = TypeAdapter[list[Operator]](list[Operator])


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("PT10S", "10000000 microseconds"),
        ("P1D", "86400000000 microseconds"),
        (timedelta(seconds=5), "5000000 microseconds"),
        ("10 seconds", "10 seconds"),
        ("1 day 2 hours", "1 day 2 hours"),
        ("interval 5 minutes", "interval 5 minutes"),
        ("1.5 seconds", "1.5 seconds"),
        ("0 seconds", "0 seconds"),
        ("-1 month 31 days", "-1 month 31 days"),
    ],
)
def test_a_timeout_is_a_duration_or_spark_s_own_text(text: object, delay: str) -> None:
    assert spark_delay(text) == delay


@pytest.mark.parametrize("text", ["x", "", "10", "10 s", "10 sec", "1.5 minutes", "1 quarter", "PT10"])
def test_a_timeout_that_is_no_interval_is_refused_in_spark_s_words(text: str) -> None:
    with pytest.raises(ValueError, match=f"Unable to parse '{text}'"):
        spark_delay(text)


@pytest.mark.parametrize("text", ["-10 seconds", "10 seconds -20 seconds", "1 month -32 days"])
def test_a_negative_timeout_is_refused_in_spark_s_words(text: str) -> None:
    with pytest.raises(ValueError, match=rf"delay threshold \({text}\) should not be negative"):
        spark_delay(text)


def test_a_continuous_trigger_is_refused_in_spark_s_words() -> None:
    with pytest.raises(
        ValidationError, match="Continuous processing does not support EventTimeWatermark operations"
    ):
        StructuredStream.model_validate(_DECLARED | {"trigger": {"continuous": "1 second"}})


@pytest.mark.parametrize(
    "trigger", [{"processing_time": "1 second"}, {"once": True}, {"available_now": False}]
)
def test_available_now_is_the_only_trigger(trigger: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StructuredStream.model_validate(_DECLARED | {"trigger": trigger})


def test_a_policy_that_spark_does_not_have_is_refused_in_spark_s_words() -> None:
    with pytest.raises(ValidationError, match="Valid values are 'min' and 'max'"):
        StructuredStream.model_validate(_DECLARED | {"policy": "median"})


@pytest.mark.parametrize(
    "windows",
    [
        {"type": "tumble", "size": "PT0S"},
        {"type": "hop", "size": "PT5M", "slide": "PT6M"},
        {"type": "session"},
    ],
)
def test_windows_have_a_length_and_leave_no_row_between_them(windows: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Aggregate.model_validate({"window": windows, "aggregates": {"n": "count(*)"}})


@pytest.mark.parametrize(
    ("types", "sources", "why"),
    [
        ([], 1, None),
        (["drop_duplicates"], 1, None),
        (["union", "drop_duplicates"], 3, None),
        (["join"], 2, None),
        ([], 2, "several sources"),
        (["union"], 1, "one source"),
        (["join"], 3, "two sources"),
        (["union", "join"], 2, "once"),
        (["transform_with_state", "drop_duplicates"], 1, "transform_with_state"),
    ],
)
def test_operators_follow_an_order_spark_can_run(types: list[str], sources: int, why: str | None) -> None:
    more: dict[str, dict[str, Any]] = {
        "join": {"on": ["id"]},
        "transform_with_state": {"function": "a.b:C", "group_by": ["id"], "output": "n long"},
    }
    operators = _OPERATORS.validate_python([{"type": name} | more.get(name, {}) for name in types])
    found = misplaced_operator(operators, sources)
    assert found is None if why is None else why in str(found)
