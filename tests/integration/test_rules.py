"""Rules of rows: what becomes of rows that fail, exactly once (docs/how-to/rules-for-rows.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.errors import RulesBroken
from partitions.supported import FORMATS
from resources.decisions.rejected import release_rejected
from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import NAME, NOW, Feed, dies_after, rows_in

QUICK_CELLS = {("delta", "append"), ("iceberg", "merge_upsert"), ("parquet", "append")}
"""The cells of formats and loads in `make test`."""
POSITIVE = {"name": "positive", "expect": "v >= 0"}
SOURCE = {"schema": "id long, v long, s string"}


def rejected(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    """The rejected rows: the id, the rules and the number, or other columns; sorted."""
    folder = Path(f"{feed.table}_rejected")
    if not folder.exists():
        return []
    rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return sorted(
        tuple(row[name] for name in columns or ("id", "_rejected_by", "_rejected_number")) for row in rows
    )


def test_rows_that_fail_go_into_a_table_of_their_own(make_feed: MakeFeed) -> None:
    rules = [POSITIVE, {"not_null": ["s"], "on_fail": "warn"}, {"accepted": {"s": ["a", "b"]}}]
    feed = make_feed(source=SOURCE, rules=rules)
    feed.put(
        "1.ndjson",
        {"id": 1, "v": 1, "s": "a"},
        {"id": 2, "v": -1, "s": "a"},
        {"id": 3, "v": None, "s": None},
        {"id": 4, "v": -4, "s": "c"},
    )
    outcome = feed.load()
    assert feed.ids == [1, 3]
    assert rejected(feed) == [(2, "positive", 1), (4, "positive, accepted_s", 1)]
    assert (outcome.rows, outcome.rejected) == (2, 2)
    assert outcome.failed_rules == {"positive": 2, "not_null_s": 1, "accepted_s": 1}
    assert outcome.warnings == [
        "2 rows failed a rule: see table bronze/flow_rejected, or strandline rejected flow (positive 2, accepted_s 1)",
        "1 loaded row failed rule not_null_s (on_fail: warn)",
    ]
    entry = feed.newest
    assert entry is not None
    assert (entry.checked, entry.rejected, entry.rows) == (4, 2, 2)
    feed.put("2.ndjson", {"id": 5, "v": 5, "s": "b"})
    assert feed.load().rejected == 0
    assert feed.ids == [1, 3, 5]
    listed = feed.cli("rejected", NAME, "--json").json
    assert (listed["rows"], [(rule["rule"], rule["rows"]) for rule in listed["rules"]]) == (
        2,
        [("positive", 2), ("accepted_s", 1)],
    )


def test_a_slice_that_breaks_a_limit_loads_nothing(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE | {"max": "25%"}])
    feed.put("1.ndjson", *({"id": number, "v": number} for number in range(4)))
    feed.put("2.ndjson", {"id": 5, "v": -1}, {"id": 6, "v": -1})
    error = feed.fail()
    assert isinstance(error, RulesBroken)
    assert error.code == "rules_broken"
    assert error.message == (
        "dataflow flow: expected rows of slice 1 that meet the rules, found rule positive: 2 of 6 rows (33.3%) "
        "fail 'v >= 0', at most 25% may (max). Nothing of the slice was loaded, and its number was abandoned. "
        "Correct the rows at the source, raise max, or correct the rule, and run again"
    )
    assert (feed.ids, rejected(feed)) == ([], [])
    feed.define(rules=[POSITIVE | {"max": "34%"}])
    assert feed.load().rejected == 2
    assert (feed.ids, [row[0] for row in rejected(feed)]) == ([0, 1, 2, 3], [5, 6])
    feed.define(rules=[POSITIVE | {"on_fail": "fail"}])
    feed.put("3.ndjson", {"id": 7, "v": 7}, {"id": 8, "v": -8})
    assert "1 of 2 rows (50%) fail 'v >= 0', none may (on_fail: fail)" in feed.fail().message
    assert feed.ids == [0, 1, 2, 3]


@pytest.mark.parametrize("step", [Step.SET_ASIDE, Step.WRITTEN])
def test_a_run_that_dies_beside_the_commit_leaves_each_row_once(make_feed: MakeFeed, step: Step) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": 1})
    feed.load()
    feed.put("2.ndjson", {"id": 2, "v": 2}, {"id": 3, "v": -3})
    crash(feed, step)
    assert [row[0] for row in rejected(feed)] == [3]
    feed.define(rules=[{"name": "other", "expect": "v < 0"}])  # the slice keeps the rules that it began with
    outcome = feed.load()
    assert feed.ids == [1, 2]
    assert rejected(feed) == [(3, "positive", 2)]
    assert (outcome.status, outcome.rejected, outcome.failed_rules) == ("recovered", 1, {"positive": 1})


@pytest.mark.remedy("configuration", "rejected")
def test_released_rows_are_loaded_once_and_those_that_fail_stay(make_feed: MakeFeed) -> None:
    rules: list[dict[str, Any]] = [POSITIVE, {"not_null": ["s"]}]
    feed = make_feed(source=SOURCE, rules=rules)
    feed.put("1.ndjson", {"id": 1, "v": 1, "s": "a"}, {"id": 2, "v": -2, "s": "a"}, {"id": 3, "v": -3})
    feed.put("2.ndjson", {"id": 4, "v": 4}, {"id": 5, "v": -50, "s": "a"})
    feed.load()
    refused = feed.cli("rejected", NAME, "--release", "other", "--reason", "because", "--yes")
    assert (refused.code, "positive, not_null_s" in refused.error["message"]) == (2, True)
    assert [rule["rule"] for rule in feed.command("rejected", NAME).json["rules"]] == [
        "positive",
        "not_null_s",
    ]
    nothing = release(feed, "positive")
    assert (nothing["released"], nothing["remaining"], nothing["number"]) == (0, 3, None)
    feed.define(rules=[POSITIVE | {"expect": "v >= -10"}, {"not_null": ["s"]}])
    for step in (Step.INTENT_PUT, Step.WRITTEN):
        copy = feed.copy(feed.folder.parent / f"dies_{step}")
        with pytest.raises(KeyboardInterrupt):
            release_rejected(
                copy.platform, copy.dataflow, "positive", "because", NOW, observer=dies_after(step)
            )
        assert len(rejected(copy)) == 4
        copy.load()
        assert (copy.ids, rejected(copy)) == (
            [1, 2],
            [(3, "not_null_s", 1), (4, "not_null_s", 1), (5, "positive", 1)],
        )
    done = release(feed, "positive")
    assert (done["released"], done["remaining"], done["entry"]["why"]) == (1, 2, "release")
    assert feed.ids == [1, 2]
    assert rejected(feed) == [(3, "not_null_s", 1), (4, "not_null_s", 1), (5, "positive", 1)]
    entry = feed.newest
    assert entry is not None
    assert (entry.rows, entry.total_rows, entry.reason) == (1, 2, "because")
    assert feed.load().status == "nothing"


def release(feed: Feed, rule: str) -> Any:
    """Release the rows of a rule by the command; return its document."""
    return feed.command("rejected", NAME, "--release", rule, "--reason", "because", "--yes").json


GRID = [
    pytest.param(
        name,
        load,
        partition_by,
        id=f"{name} {load} {'partitioned' if partition_by else 'plain'}",
        marks=() if (name, load) in QUICK_CELLS and not partition_by else pytest.mark.full,
    )
    for name, ways in FORMATS.items()
    for load in ("append", "merge_upsert", "scd2")
    for partition_by in ([], ["s"])
    if ways[load] is None and (name, partition_by) != ("parquet", ["s"])
]


@pytest.mark.each_case
@pytest.mark.parametrize(("table_format", "load", "partition_by"), GRID)
def test_each_load_of_each_format_rejects_releases_and_reads_again(
    make_feed: MakeFeed, table_format: str, load: str, partition_by: list[str]
) -> None:
    keys: dict[str, Any] = {} if load == "append" else {"merge_keys": ["id"]}
    if load == "scd2":
        keys["effective_column"] = "v"
    target = {"format": table_format, "load": load, **keys, "partition_by": partition_by}
    feed = make_feed(source=SOURCE, target=target, rules=[{"name": "known", "expect": "s != 'x'"}])
    feed.put(
        "1.ndjson", {"id": 1, "v": 1, "s": "a"}, {"id": 2, "v": 1, "s": "x"}, {"id": 3, "v": 1, "s": "b"}
    )
    feed.put("2.ndjson", {"id": 1, "v": 2, "s": "x"}, {"id": 3, "v": 2, "s": "c"})
    feed.load()
    loaded = [(1, 1, "a"), (3, 1, "b"), (3, 2, "c")]
    assert table_rows(feed) == (loaded if load != "merge_upsert" else [(1, 1, "a"), (3, 2, "c")])
    side = Path(f"{feed.table}_rejected")
    assert rows_in(side, ("id", "v", "_rejected_by")) == [(1, 2, "known"), (2, 1, "known")]
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    assert rows_in(side, ("id", "v", "_rejected_by")) == [(1, 2, "known"), (2, 1, "known")]
    feed.define(rules=[{"name": "known", "expect": "s != 'x' OR id = 1"}])
    assert release(feed, "known")["released"] == 1
    assert table_rows(feed) == sorted(
        [(1, 2, "x"), (3, 2, "c")] if load == "merge_upsert" else [*loaded, (1, 2, "x")]
    )
    assert rows_in(side, ("id", "v", "_rejected_by")) == [(2, 1, "known")]
    assert feed.command("rejected", NAME).json["rows"] == 1


def table_rows(feed: Feed) -> list[tuple[Any, ...]]:
    """The rows of the table: id, v and s."""
    return rows_in(feed.table, ("id", "v", "s"))


def test_unique_and_references_compare_with_tables_at_the_planned_version(make_feed: MakeFeed) -> None:
    rules = [{"unique": ["id"]}, {"references": {"v": "bronze/known.id"}}]
    feed = make_feed(source=SOURCE, rules=rules)
    known = Feed(feed.folder, feed.engine, name="known")
    known.put("k.ndjson", 1, 2)
    known.load()
    feed.put("1.ndjson", {"id": 1, "v": 1}, {"id": 1, "v": 1}, {"id": 2, "v": 9}, {"id": 3, "v": None})
    feed.put("2.ndjson", {"id": None, "v": 2}, {"id": None, "v": 2}, {"id": 4, "v": 2})
    feed.load()
    assert feed.rows("id", "v") == [(None, 2), (None, 2), (3, None), (4, 2)]
    assert sorted(rejected(feed, "id", "_rejected_by")) == [
        (1, "unique_id"),
        (1, "unique_id"),
        (2, "references_v"),
    ]
    feed.put("3.ndjson", {"id": 3, "v": 1}, {"id": 5, "v": 5})
    feed.load()
    assert sorted(rejected(feed, "id", "_rejected_by"))[-2:] == [(3, "unique_id"), (5, "references_v")]
    known.put("l.ndjson", 5)
    known.load()
    assert release(feed, "references_v")["released"] == 1
    assert feed.rows("id", "v")[-1] == (5, 5)


def test_rows_that_delete_their_key_are_exempt_and_keys_may_change(make_feed: MakeFeed) -> None:
    target = {"load": "merge_upsert", "merge_keys": ["id"], "delete_when": "s = 'd'"}
    feed = make_feed(source=SOURCE, target=target, rules=[{"not_null": ["v"]}, {"unique": ["v"]}])
    feed.put(
        "1.ndjson", {"id": 1, "v": 1, "s": "a"}, {"id": 2, "v": 2, "s": "a"}, {"id": 2, "v": 3, "s": "a"}
    )
    feed.put("2.ndjson", {"id": 1, "s": "d"})
    feed.put(
        "3.ndjson", {"id": 2, "v": 3, "s": "b"}, {"id": 3, "v": 3, "s": "b"}, {"id": 4, "v": None, "s": "b"}
    )
    feed.define(watermark={"checkpoint": {"interval_files": 1}})
    outcome = feed.load()
    assert feed.rows("id", "v", "s") == [(2, 3, "a")]
    assert sorted(rejected(feed, "id", "_rejected_by")) == [
        (2, "unique_v"),
        (3, "unique_v"),
        (4, "not_null_v"),
    ]
    assert outcome.rejected == 3
