"""Look-back that a dataflow takes from its connection (docs/reference/columns.md, Look-back).

It goes before the model is made: a dataflow with it is checked like one that has written it itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from partitions.column.lookback import LookBack, look_back
from partitions.errors import ConfigurationError
from platform_assets.project.document import value_at


def look_backs_of(settings: Mapping[str, Any]) -> dict[str, LookBack]:
    """Return the look-back of each connection that has one, from the values of ``platform.yaml``; one with a mistake counts as none."""
    blocks: dict[str, LookBack] = {}
    connections = settings.get("connections")
    for name, connection in connections.items() if isinstance(connections, Mapping) else ():
        with suppress(ConfigurationError):  # which the settings' own check reports
            block = look_back(connection) if isinstance(connection, Mapping) else None
            if block is not None:
                blocks[name] = block
    return blocks


def with_look_back(look_backs: Mapping[str, LookBack], value: dict[str, Any]) -> dict[str, Any]:
    """Return a dataflow's values with its connection's look-back, if it is above a column watermark and has no block of its own.

    A block of its own replaces the connection's as a whole, also an empty one.
    """
    watermark, block = value.get("watermark"), look_backs.get(str(value_at(value, ("source", "connection"))))
    if block is None or not isinstance(watermark, Mapping) or watermark.get("type") != "column":
        return value
    if any(str(key).startswith("backward") for key in watermark):
        return value
    return value | {"watermark": {**watermark, "backward": block.given}}
