"""The planner of the window kind (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from partitions.plan import Plan
from partitions.request import DUE, Due, Forced, LateOnly, Request
from partitions.window.definition import WindowWatermark
from partitions.window.explanation import Explanation
from partitions.window.packing import SlicePacker
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.units import check_min_units
from partitions.window.workload import Workload


def plan(
    definition: WindowWatermark,
    state: WindowState,
    units: Sequence[str],
    now: datetime,
    *,
    dataflow: str,
    number: int,
    reads_whole_windows: bool = False,
    reads_any_stretch: bool = True,
    request: Request = DUE,
    since: int | None = None,
) -> Plan[WindowSlice]:
    """Plan the work units that a run takes on, cut into slices, and the skips.

    Args:
        definition: the declared watermark.
        state: the committed state.
        units: the units' identities, in their order.
        now: the clock of this run, aware.
        dataflow: the dataflow's name.
        number: the number of the entry that holds ``state``; 0 if there is none.
        reads_whole_windows: whether a window is always read as a whole.
        reads_any_stretch: whether the source can read any stretch of time, not only windows.
        request: what the run is asked for.
        since: a clock running ahead loaded everything beyond this instant, epoch milliseconds; None: no
        clock did.

    Raises:
        PlanError: if there are fewer units than ``min_units``.
    """
    if isinstance(request, LateOnly):
        why = "windows have no late files"
        return Plan(dataflow, "window", number, now, why)
    check_min_units(units, definition.min_units, dataflow)
    state = state.rebased(definition.default_grid)
    forced, part = isinstance(request, Forced), request.of if isinstance(request, Due | Forced) else None
    workload = Workload(definition, state, tuple(units), now, reads_any_stretch, forced, part, since)
    slices = tuple(SlicePacker(workload, reads_whole_windows).slices())
    if isinstance(request, Forced) and request.reason is not None:
        slices = tuple(replace(slice_, why="replay") for slice_ in slices)
    explanation = Explanation(workload)
    skips, warnings = tuple(explanation.skips()), tuple(explanation.warnings())
    return Plan(dataflow, "window", number, now, explanation.why(), slices, skips, warnings)
