"""The common form of all cases: encoded values, strict comparison, kinds of errors (README, Common form)."""

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
    """Turn an encoded value into what it stands for."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (name := next(iter(value))) in _DECODERS:
        return _DECODERS[name](value[name])
    return {key: decode(item) for key, item in value.items()}


def same(left: Any, right: Any) -> bool:
    """Whether two values agree in type, value and offset."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, datetime | time):
        return bool(left.isoformat() == right.isoformat() and left.utcoffset() == right.utcoffset())
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def answer(case: Case, call: Callable[[], Any]) -> Any:
    """What the call returns; where the case expects an error, None once the error of that kind was raised."""
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
    """Whether the case expects an error."""
    return isinstance(case["expected"], dict) and "error" in case["expected"]
