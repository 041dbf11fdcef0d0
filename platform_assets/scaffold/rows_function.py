"""Rows of a dataflow of `type: python`: replace the body (docs/reference/python-functions.md)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any


def rows(request: Any) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - for your own body
    """Yield the rows of a request: between `lower` and `upper`, or between `start` and `end`.

    Rows outside of the request are left out.
    """
    yield {"order_id": 1, "updated_at": datetime(2026, 1, 1, 10, tzinfo=UTC), "amount": 9.5}
    yield {"order_id": 2, "updated_at": datetime(2026, 1, 2, 9, tzinfo=UTC), "amount": 40.0}
