"""The comparison of files with the record of loaded ones (docs/how-to/is-my-table-right.md)."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from partitions.errors import ConfigurationError
from partitions.path.ledger import Counts
from partitions.path.state import PathState
from partitions.reconcile.differences import RangeCounts
from partitions.reconcile.ranges import ComparedRange
from partitions.reconcile.result import ComparedPosition, RangeResult, Reconciliation
from resources.kinds.path.partition_ledger import recorded_counts
from resources.kinds.path.source_comparison import compare_with_source
from resources.reconcile.kind import ReconcileKind
from resources.tables.contract.commits import Version
from resources.watermarks.ingested import IngestedFiles

PATH = "path"
"""The key of a file."""


@dataclass(frozen=True)
class PathReconcile(ReconcileKind):
    """The comparison of a path watermark: by the names, sizes and versions of files, not by their rows."""

    @override
    def check(self) -> None:
        """Refuse options about rows and ranges of them."""
        options = self.options
        values = {
            "--start": options.start,
            "--end": options.end,
            "--every": options.every,
            "--keys": options.keys,
            "--rows": options.rows,
        }
        name = self.dataflow.name
        if self.options.repairs:
            raise ConfigurationError(
                f"dataflow {name}: --repair: expected rows above a column, found a path watermark. Late files are loaded by"
                f" `late_files`; read rewritten ones again with `strandline replay {name} --start … --end … --replace`",
                code="no_repair",
            )
        flags = [flag for flag, value in values.items() if value]
        if flags:
            raise ConfigurationError(
                f"dataflow {name}: {flags[0]}: reconcile compares files by name, size and version, and all of"
                " them at once. Leave it out"
            )

    @override
    def compared(self, version: Version) -> Reconciliation:
        """List the files up to the watermark, and compare them with the record. Reads no file and no table."""
        entry, dataflow = self.entry, self.dataflow
        record, state = IngestedFiles(self.stores.log, dataflow.name, entry), PathState.of(entry.state())
        has_watermark = dataflow.path.tracking == "watermark"
        comparison = compare_with_source(
            self.stores,
            dataflow,
            entry,
            record,
            up_to=state if has_watermark else None,
            named=self.options.limit,
        )
        counts = RangeCounts(
            comparison.unknown_count if has_watermark else 0,
            _total(comparison.counts, "gone_files"),
            _total(comparison.counts, "changed"),
        )
        last = state.last.path if has_watermark and state.last else None
        range_ = ComparedRange(PATH, None, last, upper_inclusive=True)
        loaded = _total(recorded_counts(record), "files")
        return Reconciliation(
            dataflow.name,
            "files",
            entry.state(),
            ComparedPosition(entry.number, None),
            [RangeResult(range_, comparison.listed, loaded, counts)],
            [{PATH: path} for path in comparison.unknown] if has_watermark else (),
            [{PATH: path} for path in comparison.gone_files],
            [{PATH: path} for path in comparison.changed],
        )


def _total(counts: Counts, name: str) -> int:
    return sum(getattr(place, name) or 0 for place in counts.values())
