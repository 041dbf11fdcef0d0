"""Spark's report of each batch of a stream, as values that are stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class OperatorProgress:
    """The progress of one stateful operator in a batch.

    Attributes:
        name: the operator's name in Spark's report.
        state_rows: rows in its state after the batch.
        updated: state rows that the batch updated.
        removed: state rows that the watermark has passed.
        dropped_by_watermark: late rows; an aggregate counts partly aggregated ones.
    """

    name: str
    state_rows: int
    updated: int
    removed: int
    dropped_by_watermark: int


@dataclass(frozen=True)
class BatchProgress:
    """The progress of one batch, even one without rows, which only raises the watermark.

    Attributes:
        batch_id: from 0, of one checkpoint.
        rows_in: the number of rows read.
        watermark: used by the batch, an aware UTC instant; None if the query has none.
        operators: the one furthest downstream first.
    """

    batch_id: int
    rows_in: int
    watermark: datetime | None
    operators: tuple[OperatorProgress, ...] = ()

    @property
    def dropped_by_watermark(self) -> int:
        """Return the late rows of all operators."""
        return sum(operator.dropped_by_watermark for operator in self.operators)

    @property
    def state_rows(self) -> int:
        """Return the state rows of all operators."""
        return sum(operator.state_rows for operator in self.operators)

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> BatchProgress:
        """Parse Spark's own report."""
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
        """Return the form of `run --json` and the log; the watermark as ISO text."""
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
        """Parse the form of :meth:`as_json`."""
        at = stored["watermark"]
        return cls(
            stored["batch_id"],
            stored["rows_in"],
            datetime.fromisoformat(at) if at else None,
            tuple(OperatorProgress(**operator) for operator in stored["operators"]),
        )
