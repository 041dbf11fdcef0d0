"""The options of a comparison, as a user gives them (docs/reference/cli.md, reconcile)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.reconcile.repair import MAX_KEYS, SORTS, RepairedSorts
from partitions.reconcile.result import Level
from partitions.watermark import compare_values

LIMIT = 20
"""Most keys of each sort that are shown."""


@dataclass(frozen=True)
class ReconcileOptions:
    """What to compare.

    Attributes:
        start: start of the range, inclusive; None: no lower bound.
        end: end of the range, exclusive; None: the watermark.
        every: length of a range; None: one range.
        keys: whether keys must be compared.
        rows: whether all columns are compared.
        limit: most keys of each sort that are shown.
        full_read: whether a source that cannot count may be read as a whole.
        repairs: which differing rows are repaired afterwards; None: none.
    """

    start: str | None = None
    end: str | None = None
    every: str | None = None
    keys: bool = False
    rows: bool = False
    limit: int = LIMIT
    full_read: bool = False
    repairs: RepairedSorts | None = None

    @property
    def kept_keys(self) -> int:
        """Most keys of each sort that the comparison keeps."""
        return self.limit if self.repairs is None else max(self.limit, MAX_KEYS + 1)

    @property
    def repaired_sorts(self) -> tuple[str, ...]:
        """Sorts of differing rows that are repaired afterwards."""
        return () if self.repairs is None else SORTS[self.repairs]

    @property
    def is_whole(self) -> bool:
        """Whether all rows up to the watermark are compared."""
        return self.start is None and self.end is None

    def check_range(self, start: Any, end: Any) -> None:
        """Check that a range has values.

        Args:
            start: its start, as the watermark compares it; None: no lower bound.
            end: its end, exclusive; None: the watermark.

        Raises:
            ConfigurationError: the start is not below the end.
        """
        if start is not None and end is not None and compare_values(start, end) >= 0:
            raise ConfigurationError(
                f"expected --start below --end, which is exclusive; found --start {self.start} and --end {self.end}"
            )

    def level(self, dataflow: Dataflow) -> Level:
        """Return what is compared.

        Raises:
            ConfigurationError: keys must be compared, and the dataflow has none.
        """
        if self.keys and not dataflow.target.merge_keys:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --keys: expected target.merge_keys, which say what identifies a row; found none. "
                "Compare the rows instead, with --rows"
            )
        if self.rows:
            return "rows"
        return "keys" if dataflow.target.merge_keys else "counts"
