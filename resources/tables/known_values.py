"""Values that statistics tell, as Python has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def known_value(scalar: pa.Scalar) -> Any:
    """Return the value; None for NULL, and for a year that Python does not have."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return None
