"""Which files and windows a promote swaps."""

from __future__ import annotations

import pytest

from partitions.path.source import SourceFile
from partitions.replay.parts import promoted_files, promoted_works
from partitions.window.grid import Grid
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit

DAY = 86_400_000


def work(first: int, lower: float | None = None, unit: str = "{}", end: float | None = None) -> WorkUnit:
    """The window of a day, as it is read: from an instant on, up to one; all in days."""
    start = first * DAY
    begun = start if lower is None else int(lower * DAY)
    return WorkUnit(start, start + DAY if end is None else int(end * DAY), unit, begun, "forced")


def test_files_that_runs_have_loaded_since_or_will_load_are_not_swapped() -> None:
    listed = [SourceFile(path, 1, "v", 0) for path in ("a/1", "a/2", "b/1")]
    made = promoted_files(listed, {"a/2"}, {"a/1", "a/2"})
    assert [file.path for file in made] == ["a/1"]


@pytest.mark.parametrize(
    ("since", "whole", "swapped"),
    [
        ([], False, [(1, 2), (2, 3), (3, 3.5)]),
        ([], True, [(1, 2), (2, 3)]),
        ([work(2)], False, [(1, 2), (3, 3.5)]),
        ([work(2, 2.5)], False, [(1, 2), (2, 2.5), (3, 3.5)]),
        ([work(2, 2.5)], True, [(1, 2)]),
        ([work(1), work(2), work(3)], False, []),
        ([work(2, unit="other")], False, [(1, 2), (2, 3), (3, 3.5)]),
    ],
)
def test_windows_are_swapped_as_far_as_the_live_state_has_them_and_no_run_has_read_them_since(
    since: list[WorkUnit], whole: bool, swapped: list[tuple[float, float]]
) -> None:
    loaded = WindowState(Grid("none"), {"u": []})
    for start, high in ((1, 2.0), (2, 3.0), (3, 3.5)):
        loaded = loaded.with_high("u", start * DAY, int(high * DAY))
    works = [work(first, unit="u") for first in (1, 2, 3, 4)]
    read = [each._replace(unit="u") if each.unit == "{}" else each for each in since]
    made = promoted_works(works, loaded, read, whole=whole)
    assert [((part.lower or 0) / DAY, (part.end or 0) / DAY) for part in made] == swapped
    assert all((part.start or 0) // DAY == (part.lower or 0) // DAY for part in made)
