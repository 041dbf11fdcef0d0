"""Signatures of functions that Dagster takes, with types.

Here annotations are texts (``from __future__ import annotations``). Dagster does not know the type of a context by its
name. It also asks for each function's signature some fifteen times, which Python makes anew unless the function has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any


def annotate(function: Callable[..., Any], *, returns: Any, **parameters: Any) -> None:
    """Give a function a signature with types.

    Args:
        function: the function.
        returns: the type of what it returns.
        parameters: the type of each of its parameters, in their order.
    """
    function.__signature__ = _signature(tuple(parameters.items()), returns)  # type: ignore[attr-defined]  # a function takes any


@lru_cache
def _signature(parameters: tuple[tuple[str, Any], ...], returns: Any) -> Signature:
    return Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=of) for name, of in parameters],
        return_annotation=returns,
    )
