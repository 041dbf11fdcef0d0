"""What becomes of a window whose upstream lacks a part of it (docs/how-to/chains.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from partitions.errors import ConfigurationError
from partitions.model import Duration, Model


def _not_zero(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("expected a duration above zero, or incomplete: load, found none")
    return value


class LoadAfter(Model):
    """Load an incomplete window once it has ended long enough ago.

    Attributes:
        load_after: the time from the window's end until it is loaded.
    """

    load_after: Annotated[Duration, AfterValidator(_not_zero)]

    @property
    def milliseconds(self) -> int:
        """Return the duration in milliseconds."""
        return self.load_after // timedelta(milliseconds=1)


def _word_or_mapping(value: object) -> object:
    if value in ("wait", "load") or isinstance(value, dict | LoadAfter):
        return value
    raise ConfigurationError(f"expected wait, load or {{load_after: PT6H}}, found {value!r}")


Incomplete = Annotated[Literal["wait", "load"] | LoadAfter, BeforeValidator(_word_or_mapping)]
"""``wait``: never load it; ``load``: load it like any other; :class:`LoadAfter`: load it later.

A window that was loaded while it was incomplete is loaded again once it is complete.
"""


def loads_incomplete(incomplete: Literal["wait", "load"] | LoadAfter, end: int, now: int) -> bool:
    """Return whether an incomplete window is loaded; ``end`` and ``now`` are epoch milliseconds."""
    if isinstance(incomplete, LoadAfter):
        return end + incomplete.milliseconds <= now
    return incomplete == "load"
