"""Read the stored observations of a dataflow's work units (docs/reference/windows.md, The simulator)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.window.simulate import Observation
from resources.watermarks.entry import Entry
from resources.watermarks.lists import SEEN_WORK_UNITS
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import OBSERVED
from resources.watermarks.work_units import WORK_UNITS, loaded_units

_ALL = 1_000_000


def observations(log: WatermarkLog, dataflow: str) -> Iterator[Observation]:
    """Yield each read of a work unit, as far as the log goes back, in no order."""
    for entry in log.history(dataflow, _ALL):
        if entry.work_units and entry.file_list:
            yield from _of(log, dataflow, entry, entry.file_list)


def _of(log: WatermarkLog, dataflow: str, entry: Entry, works: str) -> Iterator[Observation]:
    observed = log.find_list(dataflow, OBSERVED, f"{entry.number:010d}-{entry.id}", SEEN_WORK_UNITS)
    if observed is None:
        return
    by_key = {(start, unit): (rows, digest) for start, unit, rows, digest in observed.rows}
    stored = log.get_list(works, WORK_UNITS)
    for work in loaded_units(stored):
        if work.key in by_key and work.end is not None and work.lower is not None:
            yield Observation(
                stored.head["at"], work.unit, work.start, work.end, work.lower, *by_key[work.key]
            )
