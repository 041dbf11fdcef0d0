"""Commands over several dataflows: all are tried, and the worst exit code counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from resources.outcome import error_json

_ORDER = (4, 1, 3, 0)
_USAGE = 2
_ALONE = (2, 3, 4)  # an error that is the whole answer for one dataflow


def collect_results(
    flows: Sequence[Dataflow],
    answer: Callable[[Dataflow], dict[str, Any]],
    failed: Callable[[Dataflow, StrandlineError], dict[str, Any]],
    broken: Mapping[str, StrandlineError] = MappingProxyType({}),
    *,
    raises_alone: bool = True,
) -> tuple[list[dict[str, Any]], int]:
    """Return an answer for every dataflow; a dataflow's error becomes its answer.

    Args:
        flows: dataflows with valid files.
        answer: returns the answer for a dataflow.
        failed: returns the answer for a failed dataflow.
        broken: the errors of invalid files; each has an answer, and the exit code is that of wrong project
        files.
        raises_alone: whether the error of the only dataflow is raised if it is one of those below.

    Returns:
        the answers, those of broken files last, and the exit code.

    Raises:
        StrandlineError: if the only dataflow is of the wrong kind, needs a decision of the operator, or is
        held.
    """
    documents, codes = [], [0]
    for flow in flows:
        try:
            documents.append(answer(flow))
        except StrandlineError as error:
            if raises_alone and len(flows) == 1 and not broken and error.exit_code in _ALONE:
                raise
            documents.append(failed(flow, error))
            codes.append(error.exit_code)
    documents += [{"dataflow": name, "error": error_json(error)} for name, error in broken.items()]
    return documents, _USAGE if broken else worst_exit_code(codes)


def worst_exit_code(codes: Sequence[int]) -> int:
    """Return the first of 4, 1, 3, 0 among the codes; wrong usage (2) of a part counts as failure (1)."""
    return next(code for code in _ORDER if code in (1 if part == _USAGE else part for part in codes))
