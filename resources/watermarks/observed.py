"""What the writes of a dataflow saw of their work units, read back from beside the log (spec 03, Simulator)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.window.simulate import Observation
from partitions.window.slices import WorkUnit
from resources.watermarks.entry import Entry
from resources.watermarks.log import OBSERVED, WatermarkLog

_ALL = 1_000_000


def observations(log: WatermarkLog, dataflow: str) -> Iterator[Observation]:
    """Each time that a work unit was read, as far as the log goes back; in no order."""
    for entry in log.history(dataflow, _ALL):
        if entry.kind == "window" and entry.work_units and entry.file_list:
            yield from _of(log, dataflow, entry, entry.file_list)


def _of(log: WatermarkLog, dataflow: str, entry: Entry, works: str) -> Iterator[Observation]:
    seen = {
        (start, unit): (rows, digest)
        for start, unit, rows, digest in log.find_list(dataflow, OBSERVED, f"{entry.number:010d}-{entry.id}")
    }
    if not seen:
        return
    first, *rows = log.get_list(works)
    for one in (WorkUnit(*row) for row in rows if len(row) == len(WorkUnit._fields)):
        if one.key in seen and one.end is not None and one.lower is not None:
            yield Observation(first[1], one.unit, one.start, one.end, one.lower, *seen[one.key])
