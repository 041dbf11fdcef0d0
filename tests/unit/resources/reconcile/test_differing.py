"""Rows in Arrow: the keys that differ are found in any batches, as a comparison of all rows finds them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from partitions.reconcile.differences import Differences, RowSum, find_differences
from partitions.reconcile.ranges import ABOVE, OUTSIDE
from resources.reconcile.differing import differing_rows
from resources.reconcile.expressions import KEY_HASH, RANGE, ROW_HASH
from resources.sources.jdbc.text_tables import tables_of_csv, tables_of_rows

COLUMNS = (KEY_HASH, RANGE, ROW_HASH, "named_0", "named_1")


def batches(rows: list[RowSum], draw: random.Random) -> Iterator[pa.Table]:
    """The rows in tables of any size, some of them empty."""
    rows = list(rows)
    while rows:
        size = draw.choice([0, 1, 2, 7])
        part, rows = rows[:size], rows[size:]
        values = [(row.key_hash, str(row.range), row.row_hash, str(row.position), row.key[0]) for row in part]
        columns = [list(column) for column in zip(*values, strict=True)] or [[] for _ in COLUMNS]
        yield pa.table([pa.array(column, "string") for column in columns], names=list(COLUMNS))


def rows_of(table: pa.Table) -> list[RowSum]:
    """The rows of a table."""
    return [
        RowSum(row[KEY_HASH], int(row[RANGE]), row[ROW_HASH], int(row["named_0"]), (row["named_1"],))
        for row in table.to_pylist()
    ]


def drawn(draw: random.Random, *, several: bool) -> list[RowSum]:
    """Rows of few keys, most of them the same on both sides."""
    rows = list[RowSum]()
    for number in range(draw.randrange(40)):
        for _ in range(draw.choice([0, 1, 1, 1, 1, 1, 2] if several else [0, 1, 1, 1, 1])):
            hash_ = draw.choice(["h"] * 8 + ["i"])
            place = draw.choice([0] * 9 + [1, ABOVE, OUTSIDE])
            rows.append(RowSum(f"{number:02d}", place, hash_, draw.choice([1, 1, 2]), (f"k{number}",)))
    return rows


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_keys_that_differ_are_found_in_any_batches(keyed: bool, several: bool) -> None:
    draw = random.Random(5)
    keys = ["id"] if keyed else []
    for _ in range(150):
        source, table = drawn(draw, several=several), drawn(draw, several=several)
        expected = find_differences([(source, table)], 99, keys)
        parts = differing_rows(batches(source, draw), batches(table, draw))
        found = find_differences(((rows_of(ours), rows_of(theirs)) for ours, theirs in parts), 99, keys)
        assert state_of(found) == state_of(expected)


def state_of(differences: Differences) -> Any:
    """Keys and counts, without ranges in which nothing differs."""
    counts = {
        number: vars(count) for number, count in differences.ranges.items() if any(vars(count).values())
    }
    return differences.missing, differences.extra, differences.different, counts


def test_equal_rows_make_no_object() -> None:
    rows = [RowSum(f"{number:02d}", 0, "h", 1, ("k",)) for number in range(50)]
    draw = random.Random(5)
    assert list(differing_rows(batches(rows, draw), batches(rows, draw))) == []


def test_texts_of_a_copy_and_of_a_cursor_are_the_rows() -> None:
    text = 'a,"b"\n\r\t\\N \\. ü'
    lines = [memoryview(f'"{text.replace(chr(34), chr(34) * 2)}",{number}\n'.encode()) for number in range(3)]
    (table,) = tables_of_csv(lines, ["text", "number"])
    expected = [{"text": text, "number": str(number)} for number in range(3)]
    assert table.to_pylist() == expected
    (table,) = tables_of_rows([(text, number) for number in range(3)], ["text", "number"])
    assert table.to_pylist() == expected
    long = "x" * 5_000_000
    assert [
        row["text"]
        for table in tables_of_csv([f"{long},1\n".encode(), f"{long},2\n".encode()], ["text", "n"])
        for row in table.to_pylist()
    ] == [long, long]
