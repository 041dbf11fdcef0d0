"""The default table format in ``platform.yaml`` for dataflows that name none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.supported import FORMATS


def with_format(settings: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Return a dataflow's values, with the project's table format if they name none.

    The settings' own check reports an unknown format.

    Args:
        settings: the values of ``platform.yaml``.
        value: the dataflow's values.
    """
    table_format, target = settings.get("format"), value.get("target", {})
    if (
        not isinstance(table_format, str)
        or table_format not in FORMATS
        or not isinstance(target, Mapping)
        or "format" in target
    ):
        return value
    return value | {"target": {**target, "format": table_format}}
