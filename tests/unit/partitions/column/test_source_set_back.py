"""A source that was set back: what tells it, and what does not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from partitions.column.predicates import ColumnRange
from partitions.column.source import SourceObservation
from partitions.column.source_set_back import check_highest, check_identity
from partitions.column.state import ColumnState
from partitions.errors import NeedsDecision

STATE = ColumnState.of({"u": 9})
TABLES = {"public.rows": "5/16384"}
SERVER: dict[str, Any] = {"server": "71", "tables": TABLES}


def identity(before: Any, now: Any) -> str:
    """What is found; "" if it is the same."""
    try:
        check_identity("flow", "rows of erp", before and json.dumps(before), now and json.dumps(now), STATE)
    except NeedsDecision as error:
        return f"{error.code}: {error.message}"
    return ""


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (SERVER | {"server": "72"}, "system identifier 71 at the last read, 72 now"),
        (SERVER | {"tables": {"public.rows": "5/16999"}}, "another table named public.rows"),
        (SERVER | {"tables": {"public.rows": "6/16384"}}, "another table named public.rows"),
    ],
)
def test_another_server_or_table_is_told_from_the_one_that_was_read(now: Any, words: str) -> None:
    assert words in identity(SERVER, now)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (SERVER, SERVER),
        (None, SERVER),
        (SERVER, None),
        (SERVER, SERVER | {"server": None}),
        (
            SERVER,
            SERVER | {"tables": TABLES | {"public.more": "5/1"}},
        ),  # a view reads another one, too
        ({"tables": {"t": "a"}, "version": 4}, {"tables": {"t": "a"}, "version": 4}),
    ],
)
def test_what_is_not_known_of_both_tells_nothing(before: Any, now: Any) -> None:
    assert identity(before, now) == ""


def test_an_older_version_is_a_copy_that_was_put_back() -> None:
    table: dict[str, Any] = {"tables": {"t": "a"}}
    assert "version 3 (version 4 at the last read)" in identity(
        table | {"version": 4}, table | {"version": 3}
    )


@pytest.mark.parametrize(
    ("highest", "lower", "is_behind"),
    [(8, 9, True), (None, 9, True), (9, 9, False), (12, 9, False), (8, 5, False), (4, 5, True)],
)
def test_rows_that_end_below_what_a_run_reads_have_gone(highest: Any, lower: int, is_behind: bool) -> None:
    seen = SourceObservation(datetime(2026, 1, 1, tzinfo=UTC), {"u": "whole"}, {"u": highest})
    ranges = (ColumnRange("u", lower, 9),)
    if is_behind:
        with pytest.raises(NeedsDecision, match="expected rows up to u = 9"):
            check_highest("flow", "rows", ranges, seen, STATE)
    else:
        check_highest("flow", "rows", ranges, seen, STATE)


def test_a_highest_value_that_no_index_tells_says_nothing() -> None:
    seen = SourceObservation(datetime(2026, 1, 1, tzinfo=UTC), {"u": "whole"}, {})
    check_highest("flow", "rows", (ColumnRange("u", 9, None),), seen, STATE)
