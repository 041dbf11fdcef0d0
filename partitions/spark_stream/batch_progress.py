"""What Spark says of each batch of a stream, as values that are stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class OperatorProgress:
    """What one stateful operator did in a batch.

    Attributes:
        name: Spark's.
        state_rows: that it remembers after the batch.
        updated: of them, in the batch.
        removed: of them, since the watermark has passed them.
        dropped_by_watermark: late rows; of an aggregate those that were aggregated in part already.
    """

    name: str
    state_rows: int
    updated: int
    removed: int
    dropped_by_watermark: int


@dataclass(frozen=True)
class BatchProgress:
    """One batch, also one without rows, which only moves the watermark on.

    Attributes:
        batch_id: from 0, of one checkpoint.
        rows_in: that it has read.
        watermark: that it ran with, an aware UTC instant; None if the query has none.
        operators: the one furthest downstream first.
    """

    batch_id: int
    rows_in: int
    watermark: datetime | None
    operators: tuple[OperatorProgress, ...] = ()

    @property
    def dropped_by_watermark(self) -> int:
        """Of all operators."""
        return sum(operator.dropped_by_watermark for operator in self.operators)

    @property
    def state_rows(self) -> int:
        """Of all operators."""
        return sum(operator.state_rows for operator in self.operators)

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> BatchProgress:
        """Read Spark's own report."""
        watermark = (report.get("eventTime") or {}).get("watermark")
        return cls(
            report["batchId"],
            sum(source["numInputRows"] for source in report["sources"]),  # of all sources Connect has no sum
            datetime.fromisoformat(watermark) if watermark else None,
            tuple(
                OperatorProgress(
                    operator["operatorName"],
                    operator["numRowsTotal"],
                    operator["numRowsUpdated"],
                    operator["numRowsRemoved"],
                    operator["numRowsDroppedByWatermark"],
                )
                for operator in report["stateOperators"]
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as `run --json` and the log have it; the watermark as ISO text."""
        return {
            "batch_id": self.batch_id,
            "rows_in": self.rows_in,
            "watermark": self.watermark.isoformat() if self.watermark else None,
            "dropped_by_watermark": self.dropped_by_watermark,
            "state_rows": self.state_rows,
            "operators": [vars(operator) for operator in self.operators],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> BatchProgress:
        """Read what :meth:`as_json` has made."""
        at = stored["watermark"]
        return cls(
            stored["batch_id"],
            stored["rows_in"],
            datetime.fromisoformat(at) if at else None,
            tuple(OperatorProgress(**operator) for operator in stored["operators"]),
        )
