"""Values of Python as the plain values that a project file has, so that the same models check them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from inspect import isfunction
from typing import Any
from zoneinfo import ZoneInfo

from partitions.ddl import ddl_name
from resources.sources.python.arrow_ddl import arrow_ddl


def plain(value: Any) -> Any:
    """Return a value as YAML has it: durations, times and zones as text, functions by their names.

    A value of another type stays; the model refuses it.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, timedelta):
        return _iso_duration(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, ZoneInfo):
        return value.key
    if isfunction(value):
        return function_name(value) or value
    return value


def schema_text(schema: Any) -> Any:
    """Return a schema in Spark DDL: of a mapping of names to types, or of an Arrow schema.

    Raises:
        TypeError: no column has the type of an Arrow field.
    """
    if isinstance(schema, Mapping):
        return ", ".join(f"{ddl_name(str(name))} {data_type}" for name, data_type in schema.items())
    is_arrow = type(schema).__module__.partition(".")[0] == "pyarrow" and hasattr(schema, "field")
    return arrow_ddl(schema) if is_arrow else schema


def function_name(function: Callable[..., Any]) -> str | None:
    """Return ``package.module:name`` of a function; None if a module has no such function by that name."""
    module = sys.modules.get(function.__module__)
    name = function.__name__
    if function.__qualname__ != name or not name.isidentifier() or not hasattr(module, name):
        return None
    return f"{function.__module__}:{name}"


def _iso_duration(value: timedelta) -> str:
    """Return a duration in ISO 8601; a negative one as Python shows it, which the model refuses."""
    if value < timedelta(0):
        return str(value)
    if not value % timedelta(days=1):
        return f"P{value.days}D"
    seconds = value / timedelta(seconds=1)
    return f"PT{int(seconds)}S" if seconds == int(seconds) else f"PT{seconds:f}S"
