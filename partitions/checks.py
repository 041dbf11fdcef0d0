"""The names of a dataflow's checks, and what its file says about their failures.

See docs/reference/dagster.md, Checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from partitions.model import Flag, Model
from partitions.refusal import Refusal

WATERMARK_MONOTONE = "watermark_monotone"
ROWS_ACCOUNTED = "rows_accounted"
UP_TO_DATE = "up_to_date"

RECONCILED = "reconciled"
"""The check of dataflows with ``reconcile``: whether the last comparison found no difference."""

COMMON = (WATERMARK_MONOTONE, ROWS_ACCOUNTED, UP_TO_DATE)
"""The checks that every dataflow has."""

NAMES_SORT_BY_TIME = "names_sort_by_time"
LATE_FILES = "late_files"
QUARANTINED_FILES = "quarantined_files"
LEDGER = "ledger"
EPOCH_BOUNDS = "epoch_bounds"
SORTED = "sorted"
SPLIT_DRIFT = "split_drift"


class CheckSettings(Model):
    """What a failure of a check means.

    Attributes:
        blocking: whether a failure stops the assets downstream. It is an error then, unless ``severity``
        says otherwise.
        severity: the severity of each failure; None: the check's own. A warning stops nothing.
    """

    blocking: Flag = False
    severity: Literal["warn", "error"] | None = None

    @property
    def failure(self) -> Literal["warn", "error"] | None:
        """Return the severity of each failure; None: the check's own."""
        return self.severity or ("error" if self.blocking else None)


def check_refusals(settings: Mapping[str, Any], names: Sequence[str]) -> Iterator[Refusal]:
    """Yield an entry of ``checks`` for each name that is no check of the dataflow."""
    for name in settings:
        if name not in names:
            yield Refusal(("checks", name), name, f"a check of this dataflow: {', '.join(sorted(names))}")
