"""Annotations of functions that Dagster takes, as types.

Here they are texts (``from __future__ import annotations``). Dagster does not know the type of a context by its
name, and compiles each text some ten times for each function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def annotate(function: Callable[..., Any], *, returns: Any, **parameters: Any) -> None:
    """Annotate a function with types.

    Args:
        function: the function.
        returns: the type of what it returns.
        parameters: the type of each parameter.
    """
    function.__annotations__ = {**parameters, "return": returns}
