"""The look-back that a dataflow takes from its connection (docs/reference/columns.md, Look-back).

It is filled in before validation, so that the dataflow is checked as if it had written the look-back
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from partitions.column.lookback import LookBack, parse_look_back
from partitions.errors import ConfigurationError
from platform_assets.project.document import value_at


def look_backs_of(settings: Mapping[str, Any]) -> dict[str, LookBack]:
    """Return the look-back of each connection in ``platform.yaml`` that has a valid one."""
    look_backs: dict[str, LookBack] = {}
    connections = settings.get("connections")
    for name, connection in connections.items() if isinstance(connections, Mapping) else ():
        with suppress(ConfigurationError):  # which the settings' own check reports
            connection_look_back = parse_look_back(connection) if isinstance(connection, Mapping) else None
            if connection_look_back is not None:
                look_backs[name] = connection_look_back
    return look_backs


def with_look_back(look_backs: Mapping[str, LookBack], value: dict[str, Any]) -> dict[str, Any]:
    """Return a dataflow's values, with its connection's look-back if it has none of its own.

    Only a column watermark takes it. A look-back of its own, even an empty one, replaces the connection's
    as a whole.
    """
    watermark, connection_look_back = (
        value.get("watermark"),
        look_backs.get(str(value_at(value, ("source", "connection")))),
    )
    if (
        connection_look_back is None
        or not isinstance(watermark, Mapping)
        or watermark.get("type") != "column"
    ):
        return value
    if any(str(key).startswith("backward") for key in watermark):
        return value
    return value | {"watermark": {**watermark, "backward": connection_look_back.units}}
