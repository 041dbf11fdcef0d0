"""Commands over several dataflows: all are tried, and one exit code tells the worst (spec 09, Exit codes)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError

_ORDER = (4, 1, 3, 0)
_USAGE = 2
_ALONE = (2, 3, 4)  # an error that is the whole answer for one dataflow


def each(
    flows: Sequence[Dataflow],
    answer: Callable[[Dataflow], dict[str, Any]],
    failed: Callable[[Dataflow, StrandlineError], dict[str, Any]],
) -> tuple[list[dict[str, Any]], int]:
    """Ask for every dataflow; an error of one becomes its part of the answer.

    Returns:
        the answers in order, and the exit code.

    Raises:
        StrandlineError: that of a single dataflow which is of the wrong kind, which somebody must decide about, or which is held.
    """
    documents, codes = [], [0]
    for flow in flows:
        try:
            documents.append(answer(flow))
        except StrandlineError as error:
            if len(flows) == 1 and error.exit_code in _ALONE:
                raise
            documents.append(failed(flow, error))
            codes.append(error.exit_code)
    return documents, worst(codes)


def worst(codes: Sequence[int]) -> int:
    """The exit code of many: the first of 4, 1, 3, 0 that occurs; wrong usage (2) of a part counts as a failure."""
    return next(code for code in _ORDER if code in (1 if one == _USAGE else one for one in codes))
