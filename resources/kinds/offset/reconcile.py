"""The comparison of a table above with the table that its commits are loaded into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from typing_extensions import override

from partitions.column.state import ColumnState
from partitions.errors import ConfigurationError
from partitions.offset.changes import change_treatment
from partitions.offset.state import OffsetState
from partitions.reconcile.families import family_of
from partitions.reconcile.ranges import Ranges
from partitions.sources.table import TableSource
from resources.kinds.offset.opening import source_log
from resources.reconcile.rows import OpenedSource, ReconcileRows
from resources.reconcile.side import ComparedSide
from resources.reconcile.spark_side import SparkSide
from resources.tables.contract.commit_log import ReadPosition


@dataclass(frozen=True)
class OffsetReconcile(ReconcileRows):
    """The comparison of an offset watermark: with the table above at the position of the state."""

    applies_deletes = True
    no_repair = "commits are read again by a replay"

    @override
    def check(self) -> None:
        """Check that the table holds all rows that the table above has at the position."""
        super().check()
        source, state = self.dataflow.source, self._state
        assert isinstance(source, TableSource)
        treatment = change_treatment(source, self.dataflow.target)
        obstacle = None
        if not self.options.is_whole or self.options.every:
            obstacle = "a range (--start, --end, --every), which commits do not have"
        elif treatment not in ("apply", "stop"):
            obstacle = f"on_change: {treatment}, with which the table holds other rows than the table above"
        elif source.from_ not in (None, "snapshot", "earliest"):
            obstacle = "from, so that older rows were never loaded"
        elif state.position is None or state.snapshot is not None:
            obstacle = "a first read that is not done"
        elif state.unreadable or state.accepted:
            obstacle = "commits that a decision has passed over"
        if obstacle is not None:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: reconcile expects a table that holds the rows of {source.label}, found {obstacle}"
            )

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield the table above at the position of the state."""
        staging = self.stores.staging(self.dataflow)
        with staging.emptied():
            above, position = source_log(self.stores, self.dataflow, staging).rows, self._state.position
            assert position is not None
            version = above.commits.version_of(ReadPosition.of(position))
            fixed, spark = above.at(version), self.stores.engine(self.dataflow).session()
            pinned = self.pinned_columns()
            side = SparkSide(lambda rows: fixed.read_rows(spark, (rows,), pinned))
            yield OpenedSource(side, version=version)

    def ranges(self, source: ComparedSide) -> Ranges:
        """Return all rows as one range."""
        keys = self.dataflow.target.merge_keys
        types = source.columns().items()
        comparable = (name for name, type_ in types if type_ is not None and family_of(type_) is not None)
        return Ranges(keys[0] if keys else next(comparable), ColumnState(), ())

    @property
    def _state(self) -> OffsetState:
        return OffsetState.of(self.entry.state())
