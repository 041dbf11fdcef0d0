"""Name the types of JSON values for people."""

from __future__ import annotations

from typing import Any


def json_type(value: Any) -> str:
    """Return the type of a JSON value in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "an array"
    return "an object"
