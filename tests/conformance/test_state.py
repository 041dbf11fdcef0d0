"""state.json."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from typing import Any

import pytest

from partitions import errors
from partitions.path.state import PathState
from partitions.sentinels import deserialise, serialise
from partitions.watermark import is_empty
from resources.watermarks.manager import WatermarkManager
from tests.conformance.common import Case, answer, decode, fails, same


@pytest.mark.cases("state", "watermark_serialise")
def test_watermark_serialise(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    result = answer(case, lambda: _DIRECTIONS[inputs["direction"]](inputs))
    if fails(case):
        return
    if "json" in expected:
        assert json.loads(result) == json.loads(expected["json"])
    elif "round_trips_as" in expected:
        (value,) = deserialise(result).values()
        assert same(value, decode(expected["round_trips_as"]))
    elif "value" in expected:
        assert same(result, decode(expected["value"]))


@pytest.mark.cases("state", "is_empty")
def test_is_empty(case: Case) -> None:
    assert is_empty(decode(case["input"]["watermark"])) is case["expected"]


@pytest.mark.cases("state", "watermark_state")
def test_watermark_state(case: Case) -> None:
    state, changed = PathState(), []
    for event in case["input"]["events"]:
        before, state = (
            state,
            state.after_files([event["processed"]]) if "processed" in event else state.idle(),
        )
        changed.append(state != before)
    answered = {
        "changed": changed,
        "watermark": {"state": state.status, "value": state.path},
        "partition_watermarks": dict(state.names),
    }
    assert {name: answered[name] for name in case["expected"]} == case["expected"]


class _Provider:
    """Returns or raises what the case says."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._returns = inputs.get("provider_returns")
        self._raises = inputs.get("provider_raises")

    def get_watermark(self, dataflow_id: str) -> str | None:
        self._fail()
        return self._returns

    def update_watermark(
        self, dataflow_id: str, text: str, *, job_id: str | None, dataflow_run_id: str | None
    ) -> None:
        self._fail()

    def _fail(self) -> None:
        if self._raises is not None:
            kinds: dict[str, type[Exception]] = vars(builtins) | vars(errors)
            raise kinds.get(self._raises, RuntimeError)("raised by the provider")


def _manager(inputs: dict[str, Any]) -> WatermarkManager:
    return WatermarkManager(_Provider(inputs))


_DIRECTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "serialise": lambda inputs: serialise(decode(inputs["value"])),
    "deserialise": lambda inputs: deserialise(inputs["json"]),
    "manager_get": lambda inputs: _manager(inputs).get_watermark("case"),
    "manager_save": lambda inputs: _manager(inputs).save_watermark("case", decode(inputs["value"])),
}
