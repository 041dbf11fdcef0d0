"""Watermark values as JSON text, with sentinels for values beyond JSON.

See docs/explanation/watermarks.md. A sentinel is an object whose only key names a type: ``{"__date__":
"2026-04-03"}``. A user's own dict that would read as a sentinel is wrapped as ``{"__dict__": {…}}``, so
that every value comes back unchanged.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from partitions.errors import CorruptWatermark, InvalidWatermarkValue
from partitions.json_faults import explain_json_error

Watermark = dict[str, Any]
"""Names to values: None, bool, int, float, str, datetime, date, time, Decimal, bytes, lists and dicts of these."""

_ESCAPE = "__dict__"
_SHOWN = 200
"""The most characters of a value that a message shows."""
_PLAIN = frozenset({type(None), bool, int, str})
_MAY_HOLD_SENTINELS = re.compile(r"__|\\u005f", re.IGNORECASE)
_STORABLE = frozenset({type(None), bool, int, float, str, datetime, date, time, Decimal, bytes, list, dict})


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(f"{text!r} is not a finite decimal")
    return value


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_READERS: dict[str, Callable[[str], Any]] = {
    "__datetime__": datetime.fromisoformat,
    "__date__": date.fromisoformat,
    "__time__": time.fromisoformat,
    "__decimal__": _decimal,
    "__bytes__": _bytes,
}


def serialise(value: Mapping[str, Any]) -> str:
    """Write a watermark as JSON text with sorted keys.

    Raises:
        InvalidWatermarkValue: for NaN, infinity, keys that are not text, and types beyond JSON and the
        sentinels.
    """
    encoded = {_key(key, ""): _encode(item, str(key)) for key, item in value.items()}
    return json.dumps(encoded, sort_keys=True)


def deserialise(text: str | None) -> Watermark:
    """Parse JSON text; ``None`` (no entry) is the empty watermark.

    Raises:
        CorruptWatermark: for text that does not parse, is not an object, or holds a bad sentinel.
    """
    if text is None:
        return {}
    raw = _parsed(text)
    if not isinstance(raw, dict):
        raise CorruptWatermark(
            f"watermark text is not an object: expected names to values, found {_shorten(text)}"
        )
    # A long state of windows is numbers: if no name can be a sentinel's, nothing has to be looked at.
    if not _MAY_HOLD_SENTINELS.search(text):
        return raw
    return {key: _decode(item, key) for key, item in raw.items()}


def parse_canonical(text: str) -> Any:
    """Parse canonical JSON.

    Raises:
        CorruptWatermark: for text that does not parse, or holds a bad sentinel.
    """
    return _decode(_parsed(text), "value")


def canonical(value: Any) -> str:
    """Return a storable value as canonical JSON: sorted keys, no spaces.

    It is the identity of a unit (docs/explanation/watermarks.md).
    """
    return json.dumps(_encode(value, "value"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def encode(value: Any) -> Any:
    """Return a storable value as plain JSON data with sentinels."""
    return _encode(value, "value")


def value_text(value: Any) -> str:
    """Return a storable value as JSON text for a message, shortened."""
    text = canonical(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _parsed(text: str) -> Any:
    try:
        return json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as error:
        raise CorruptWatermark(
            f"watermark text does not parse: expected a JSON object, found {_shorten(text)}: {explain_json_error(error)}"
        ) from error


def _encode(value: Any, where: str) -> Any:
    type_ = type(value)
    if type_ in _PLAIN:
        return value
    if type_ is list:
        return [
            item if type(item) in _PLAIN else _encode(item, f"{where}[{index}]")
            for index, item in enumerate(value)
        ]
    if type_ not in _STORABLE:  # a subclass (pandas.Timestamp, an IntEnum) would not come back as itself
        return _refuse(value, where)
    match value:
        case float():
            return value if math.isfinite(value) else _refuse(value, where, "NaN and infinity are not JSON")
        case datetime():
            return {"__datetime__": _isoformat(value, where)}
        case date():
            return {"__date__": value.isoformat()}
        case time():
            return {"__time__": _isoformat(value, where)}
        case Decimal():
            return (
                {"__decimal__": str(value)}
                if value.is_finite()
                else _refuse(value, where, "it is not finite")
            )
        case bytes():
            return {"__bytes__": base64.b64encode(value).decode("ascii")}
        case dict():
            encoded = {_key(key, where): _encode(item, f"{where}.{key}") for key, item in value.items()}
            return {_ESCAPE: encoded} if _reads_as_sentinel(encoded) else encoded


def _isoformat(value: datetime | time, where: str) -> str:
    text = value.isoformat()
    # A zone whose offset text does not come back (none today) must fail before it is written, not when it is read.
    if type(value).fromisoformat(text).utcoffset() != value.utcoffset():
        _refuse(value, where, "its offset does not survive isoformat()")
    return text


def _decode(raw: Any, where: str) -> Any:
    if isinstance(raw, list):
        return [_decode(item, f"{where}[{index}]") for index, item in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    if not _reads_as_sentinel(raw):
        return {key: _decode(item, f"{where}.{key}") for key, item in raw.items()}
    ((name, body),) = raw.items()
    if name == _ESCAPE:
        if not isinstance(body, dict):
            raise CorruptWatermark(f"{where}: expected an object in {_ESCAPE}, found {value_text(body)}")
        return {key: _decode(item, f"{where}.{key}") for key, item in body.items()}
    if not isinstance(body, str):
        raise CorruptWatermark(f"{where}: expected text in {name}, found {value_text(body)}")
    try:
        return _READERS[name](body)
    except (ValueError, InvalidOperation, binascii.Error) as error:
        raise CorruptWatermark(f"{where}: expected a value for {name}, found {value_text(body)}") from error


def _reads_as_sentinel(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in (*_READERS, _ESCAPE)


def _key(key: Any, where: str) -> str:
    if type(key) is str:
        return key
    raise InvalidWatermarkValue(
        f"{where or 'watermark'}: names must be text, found {key!r} ({type(key).__name__})"
    )


def _refuse(value: Any, where: str, why: str = "its type is not one of JSON's or the sentinels'") -> Any:
    raise InvalidWatermarkValue(
        f"{where}: cannot be stored in a watermark: {value!r} ({type(value).__name__}): {why}"
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):  # 1e999 is JSON, but no float holds it
        raise ValueError(f"{text} is too large")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name occurs twice")
    return result


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
