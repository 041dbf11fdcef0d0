"""Convert Arrow scalars of statistics to Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def python_value(scalar: pa.Scalar) -> Any:
    """Return the Python value of a scalar; None for NULL and for years outside 1 to 9999."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return None
