"""Which rows are missing, extra and different, by the hashes of both sides."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from partitions.reconcile.differences import Differences, RowSum, find_differences
from partitions.reconcile.ranges import ABOVE, OUTSIDE


def row(key: str, hash_: str = "h", number: int = 0, position: Any = 1) -> RowSum:
    """A row whose key is its hash."""
    return RowSum(key, number, hash_, position, (key,))


def compared(
    source: list[RowSum], table: list[RowSum], limit: int = 10, *, keyed: bool = True
) -> Differences:
    """Both sides compared, sorted as they are asked for."""
    by_key = sorted(source, key=lambda each: each.key_hash), sorted(table, key=lambda each: each.key_hash)
    return find_differences([by_key], limit, ["id"] if keyed else [])


def keys(differences: Differences) -> tuple[list[str], list[str], list[str]]:
    """The keys that are missing, extra and different."""
    sorts = (differences.missing, differences.extra, differences.different)
    missing, extra, different = ([key["id"] for key in sort] for sort in sorts)
    return missing, extra, different


def counts(differences: Differences) -> dict[int, tuple[int, int, int]]:
    """The counts of each range: missing, extra, different."""
    return {number: (c.missing, c.extra, c.different) for number, c in differences.ranges.items()}


def test_keys_are_missing_extra_or_different() -> None:
    found = compared([row("a"), row("b"), row("c")], [row("b"), row("c", "other"), row("d")])
    assert keys(found) == (["a"], ["d"], ["c"])
    assert counts(found) == {0: (1, 1, 1)}


def test_a_row_that_the_table_holds_twice_is_extra_once() -> None:
    assert keys(compared([row("a")], [row("a"), row("a")])) == ([], ["a"], [])
    assert keys(compared([row("a")], [row("a", "old"), row("a")])) == ([], ["a"], [])
    assert keys(compared([row("a")], [row("a", "old"), row("a", "older")])) == ([], ["a"], ["a"])


def test_a_key_that_moved_to_another_range_is_different_there() -> None:
    found = compared([row("a", "new", 2)], [row("a", "old", 1)])
    assert (keys(found), counts(found)) == (([], [], ["a"]), {2: (0, 0, 1)})


def test_a_key_outside_of_the_requested_range_counts_where_it_is_inside() -> None:
    assert counts(compared([row("a", "new", OUTSIDE)], [row("a", "old", 1)])) == {1: (0, 0, 1)}
    assert counts(compared([row("a", "new", OUTSIDE)], [row("a", "old", OUTSIDE)])) == {}
    assert counts(compared([row("a", number=OUTSIDE)], [])) == {}


@pytest.mark.parametrize("side", [0, 1])
def test_a_key_with_a_row_above_the_watermark_takes_no_part(side: int) -> None:
    sides = [[row("a", "new", ABOVE)], [row("a", "old", 1)]]
    assert counts(compared(sides[side], sides[1 - side])) == {}


def test_the_latest_of_several_source_rows_of_a_key_counts() -> None:
    source = [row("a", "1", 0, 1), row("a", "2", 0, 2), row("a", "none", 0, None)]
    assert counts(compared(source, [row("a", "2")])) == {}
    assert keys(compared(source, [row("a", "1")])) == ([], [], ["a"])
    assert keys(compared(source, [])) == (["a"], [], [])
    ties = [row("a", "1", 0, 1), row("a", "2", 0, 1)]
    assert counts(compared(ties, [row("a", "2")])) == {}


def test_rows_without_keys_are_a_multiset_in_each_range() -> None:
    source = [row("a"), row("a"), row("b", number=1)]
    found = compared(source, [row("a"), row("c", number=1), row("c", number=1)], keyed=False)
    assert counts(found) == {0: (1, 0, 0), 1: (1, 2, 0)}
    assert keys(found) == ([], [], [])


def test_all_rows_count_beyond_the_limit_of_keys() -> None:
    found = compared([row(f"{number:03}") for number in range(30)], [], limit=3)
    assert (counts(found), keys(found)) == ({0: (30, 0, 0)}, (["000", "001", "002"], [], []))


def test_random_sides_add_up() -> None:
    draw = random.Random(4)
    for _ in range(200):
        names = [f"{number:02}" for number in range(12)]
        source = {name: draw.choice("xy") for name in names if draw.random() < 0.7}
        table = {name: draw.choice("xy") for name in names if draw.random() < 0.7}
        found = compared([row(*item) for item in source.items()], [row(*item) for item in table.items()])
        missing, extra, different = keys(found)
        assert Counter(missing) == Counter(source.keys() - table.keys())
        assert Counter(extra) == Counter(table.keys() - source.keys())
        both = source.keys() & table.keys()
        assert Counter(different) == Counter(name for name in both if source[name] != table[name])


def test_a_table_has_all_newest_rows_of_a_key_and_none_that_the_source_lacks() -> None:
    source = [RowSum("k", 0, text, position, (1,)) for text, position in (("a", 1), ("b", 2), ("c", 2))]

    def sorts(*texts: str) -> dict[str, int]:
        table = [RowSum("k", 0, text, None, (1,)) for text in texts]
        found = find_differences([(source, table)], 9, ("id",), keeps_several=True)
        return {sort: len(getattr(found, sort)) for sort in ("missing", "extra", "different")}

    equal = {"missing": 0, "extra": 0, "different": 0}
    assert sorts("b", "c") == sorts("a", "b", "c") == equal
    assert sorts("b") == sorts("b", "c", "c") == sorts("b", "c", "x") == {**equal, "different": 1}
    assert sorts() == {**equal, "missing": 2}
