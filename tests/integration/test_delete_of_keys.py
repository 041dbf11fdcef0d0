"""A withheld version does not touch its key: the table keeps the last version that does not match.

See docs/how-to/deleting-and-keeping.md, What stays in force.
"""

from __future__ import annotations

import pytest

from tests.integration.conftest import MakeFeed

SCHEMA = "id long, customer long, at timestamp"
OLD, NEW = "2026-05-01T00:00:00Z", "2026-05-30T00:00:00Z"


@pytest.mark.parametrize(
    "load", ["merge_upsert", *(pytest.param(load, marks=pytest.mark.full) for load in ("merge_overwrite", "scd2"))]
)  # fmt: skip
def test_a_withheld_version_leaves_the_last_one_that_does_not_match(make_feed: MakeFeed, load: str) -> None:
    effective = {"effective_column": "at"} if load == "scd2" else {}
    feed = make_feed(
        source={"schema": SCHEMA},
        target={"load": load, "merge_keys": ["id"], **effective},
        **({"late_files": "ignore", "on_bad_file": "stop"} if load == "merge_overwrite" else {}),
    )
    feed.put("1.ndjson", {"id": 1, "customer": 8, "at": OLD}, {"id": 2, "customer": 7, "at": OLD})
    feed.load()
    answer = feed.command("delete", feed.name, "--where", "customer = 7", "--reason", "asked for", "--yes")
    assert "the table keeps the key's last version that does not match" in answer.err
    feed.put("2.ndjson", {"id": 1, "customer": 7, "at": NEW})
    feed.put("3.ndjson", {"id": 5, "customer": 8, "at": OLD})
    feed.put("4.ndjson", {"id": 5, "customer": 7, "at": NEW})
    assert feed.load().withheld == 2
    assert feed.rows("id", "customer") == [(1, 8), (5, 8)]
    feed.command("delete", feed.name, "--where", "id = 1", "--reason", "asked for", "--yes")
    assert feed.rows("id", "customer") == [(5, 8)]


@pytest.mark.full
def test_a_version_below_the_retention_leaves_the_one_above_it(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": SCHEMA},
        target={
            "load": "merge_upsert",
            "merge_keys": ["id"],
            "retention": {"column": "at", "keep": "P10D"},
        },
    )
    feed.put("1.ndjson", {"id": 1, "customer": 8, "at": NEW})
    feed.load()
    feed.put("2.ndjson", {"id": 1, "customer": 9, "at": OLD})
    assert feed.load().withheld == 1
    assert feed.rows("id", "customer") == [(1, 8)]
