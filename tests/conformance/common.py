"""The common form of all cases: encoded values, strict comparison, kinds of errors (README)."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from partitions import errors

Case = dict[str, Any]

_DECODERS: dict[str, Callable[[str], Any]] = {
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$decimal": Decimal,
    "$bytes_hex": bytes.fromhex,
    "$float": float,
    "$object": lambda _: object(),
}

_KINDS: dict[str, type[Exception]] = {
    "configuration_error": errors.ConfigurationError,
    "invalid_watermark_value": errors.InvalidWatermarkValue,
    "corrupt_watermark": errors.CorruptWatermark,
    "provider_error": errors.ProviderError,
    "plan_error": errors.PlanError,
    "schema_error": errors.SchemaError,
}


def decode(value: Any) -> Any:
    """Return the value that an encoded value stands for."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (name := next(iter(value))) in _DECODERS:
        return _DECODERS[name](value[name])
    return {key: decode(item) for key, item in value.items()}


def same(first: Any, second: Any) -> bool:
    """Return whether two values agree in type, value and offset."""
    if type(first) is not type(second):
        return False
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, datetime | time):
        return bool(first.isoformat() == second.isoformat() and first.utcoffset() == second.utcoffset())
    if isinstance(first, float) and math.isnan(first):
        return math.isnan(second)
    return bool(first == second)


def answer(case: Case, call: Callable[[], Any]) -> Any:
    """Return the call's result, or None if it raised the kind of error that the case expects."""
    expected = case["expected"]
    if not (isinstance(expected, dict) and "error" in expected):
        return call()
    with pytest.raises(_KINDS[expected["error"]]) as caught:
        call()
    for name in {"reason", "field"} & expected.keys():
        if expected["error"] == "schema_error":
            assert getattr(caught.value, name) == expected[name]
    return None


def fails(case: Case) -> bool:
    """Return whether the case expects an error."""
    return isinstance(case["expected"], dict) and "error" in case["expected"]
