"""Plan the next run of a window watermark: its slices, and the work units that it skips.

``workload`` selects the work units, ``packing`` cuts them into slices, ``explanation`` tells why. See
docs/reference/windows.md.
"""

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
from partitions.window.upstream import UpstreamTables
from partitions.window.workload import Workload


def plan(
    definition: WindowWatermark,
    state: WindowState,
    units: Sequence[str],
    now: datetime,
    *,
    dataflow: str,
    state_number: int,
    rereads_whole_windows: bool = False,
    only_adds: bool = False,
    has_step: bool = False,
    reads_any_stretch: bool = True,
    request: Request = DUE,
    early_since: int | None = None,
    upstream: UpstreamTables | None = None,
) -> Plan[WindowSlice]:
    """Return the slices that the next run loads, and the work units that it skips, with the reasons.

    Args:
        definition: the declared watermark.
        state: the committed state.
        units: the units' identities, in their order.
        now: the clock of this run, aware.
        dataflow: the dataflow's name.
        state_number: the number of the entry that holds ``state``; 0 if there is none.
        rereads_whole_windows: whether a window that is read again is read from its start; else from the
            cutoff within it.
        only_adds: whether the load finds no earlier rows of what it reads.
        has_step: whether a user's step changes the rows, which may then be sums of a part of a window.
        reads_any_stretch: whether the source can read a time range that is no window. If not, tied windows
            wait until windows cover their rest.
        request: the work that the run is asked for.
        early_since: a clock that ran ahead has loaded all windows beyond this instant, in epoch
            milliseconds; None: no clock ran ahead.
        upstream: what the table that is read holds; None if the windows do not wait for it.

    Raises:
        PlanError: if there are fewer units than ``min_units``.
    """
    if isinstance(request, LateOnly):
        why = "windows have no late files"
        return Plan(dataflow, "window", state_number, now, why)
    check_min_units(units, definition.min_units, dataflow)
    state = state.rebased(definition.default_grid)
    forced, part = isinstance(request, Forced), request.of if isinstance(request, Due | Forced) else None
    workload = Workload(
        definition, state, tuple(units), now, reads_any_stretch, forced, part, early_since, upstream
    )
    slices = tuple(SlicePacker(workload, rereads_whole_windows, only_adds, has_step).slices())
    if isinstance(request, Forced) and request.reason is not None:
        slices = tuple(replace(slice_, why="replay") for slice_ in slices)
    explanation = Explanation(workload)
    skips, warnings = tuple(explanation.skips()), tuple(explanation.warnings())
    return Plan(
        dataflow,
        "window",
        state_number,
        now,
        explanation.why(),
        slices,
        skips,
        warnings,
        waiting_for_upstream=explanation.waiting_for_upstream,
    )
