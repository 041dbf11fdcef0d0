"""Which files and windows a promote swaps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.path.source import SourceFile
from partitions.predicate import Among, AnyOf, Between, matches
from partitions.replay.promoted import promoted_files, promoted_works, rows_of_files
from partitions.window.calendar_grid import Grid
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit
from tests.support.windows import with_high

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


@given(st.lists(st.text("ab/\U0001f600\ue000", max_size=4), unique=True, min_size=1, max_size=30), st.data())
def test_the_condition_of_files_holds_their_rows_and_no_others(known: list[str], data: st.DataObject) -> None:
    swapped = set(data.draw(st.lists(st.sampled_from(known), min_size=1)))
    where = rows_of_files("f", swapped, {*known} - swapped)
    assert {path for path in known if matches(where, {"f": path})} == swapped
    assert not matches(where, {"f": None})


def test_files_without_others_between_them_are_one_range() -> None:
    many = [f"2026/{number:06d}" for number in range(100_000)]
    first, second = Between("f", many[0], many[7], True, True), Between("f", many[9], many[-1], True, True)
    assert rows_of_files("f", {*many} - {many[8]}, [many[8], "2025/1"]) == AnyOf((first, second))


def test_the_longest_ranges_between_others_are_taken() -> None:
    known = [f"{number:04d}" for number in range(3000)]
    others = {path for number, path in enumerate(known) if number % 5 == 4 or (number < 300 and number % 2)}
    where = rows_of_files("f", {*known} - others, others)
    assert isinstance(where, AnyOf)
    assert sum(isinstance(part, Between) for part in where.parts) == 100
    (named,) = (part for part in where.parts if isinstance(part, Among))
    assert len(named.values) == 3000 - len(others) - 100 * 4


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
def test_windows_are_swapped_where_loaded_and_not_read_since(
    since: list[WorkUnit], whole: bool, swapped: list[tuple[float, float]]
) -> None:
    loaded = WindowState(Grid("none"), {"u": []})
    for start, high in ((1, 2.0), (2, 3.0), (3, 3.5)):
        loaded = with_high(loaded, "u", start * DAY, int(high * DAY))
    works = [work(first, unit="u") for first in (1, 2, 3, 4)]
    read = [each._replace(unit="u") if each.unit == "{}" else each for each in since]
    made = promoted_works(works, loaded, read, whole=whole)
    assert [((part.lower or 0) / DAY, (part.end or 0) / DAY) for part in made] == swapped
    assert all((part.start or 0) // DAY == (part.lower or 0) // DAY for part in made)
