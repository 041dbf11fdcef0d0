"""The ledger of files counts the same files and rows in its headline as in its rows (docs/reference/files.md)."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.without_jvm


def ledger_counts(feed: Feed, *options: str) -> tuple[int, int]:
    """Return the files and rows of the ledger, which the headline, each form and the rows have in common."""
    (document,) = feed.command("ledger", NAME, *options).json
    covered: dict[str, Any] = document["covered"]
    counts = (covered["files"], covered["rows"])
    named = f"{counts[0]} files?, {counts[1]} rows?"
    assert re.search(named, feed.text("ledger", NAME, *options).splitlines()[0])
    assert re.search(named, feed.text("ledger", NAME, "--format", "html", *options))
    if not options:
        assert counts == (document["totals"]["files"], document["totals"]["rows"])
    assert feed.newest is not None
    assert feed.newest.total_files == counts[0]
    return counts


@pytest.fixture
def loaded(feed: Feed) -> Feed:
    """Four files of two rows are loaded."""
    for number in range(1, 5):
        feed.put(f"d={number % 2}/{number}.ndjson", number, number * 10)
    feed.load()
    return feed


def test_after_a_load_the_headline_counts_the_files_of_the_rows(loaded: Feed) -> None:
    assert ledger_counts(loaded) == (4, 8)
    assert ledger_counts(loaded, "--from", "d=1") == (4, 8), "the headline is about all partitions"


def test_adopting_a_lost_state_counts_the_files_of_the_table(loaded: Feed) -> None:
    shutil.rmtree(loaded.state)
    loaded.decide("adopt", "--deleted", "load")
    assert ledger_counts(loaded) == (4, 8)
    loaded.put("d=2/5.ndjson", 5)
    loaded.load()
    assert ledger_counts(loaded) == (5, 9)


def test_adopting_counts_no_file_that_the_table_has_no_row_of(loaded: Feed) -> None:
    shutil.rmtree(loaded.state)
    loaded.put("d=0/1.ndjson", 9)
    loaded.decide("adopt", "--deleted", "load")
    assert ledger_counts(loaded) == (4, 8)


def test_adopting_an_earlier_table_counts_only_the_files_of_that_time(loaded: Feed) -> None:
    from deltalake import DeltaTable

    version = DeltaTable(str(loaded.table)).version()
    loaded.put("d=2/5.ndjson", 5)
    loaded.load()
    DeltaTable(str(loaded.table)).restore(version)
    loaded.decide("adopt")
    assert ledger_counts(loaded) == (4, 8)
    loaded.load()
    assert ledger_counts(loaded) == (5, 9)


def test_rows_of_missing_files_leave_the_counts_with_their_commit(loaded: Feed) -> None:
    (loaded.landing / "d=0/2.ndjson").unlink()
    loaded.decide("rewind", "--to", "0", "--replace", "--gone", "delete")
    assert ledger_counts(loaded) == (4, 8), "the next loads delete them"
    loaded.load()
    assert ledger_counts(loaded) == (3, 6)
    loaded.put("d=0/2.ndjson", 2)
    loaded.put("d=2/5.ndjson", 5)
    loaded.load()
    loaded.command("late", NAME)
    assert ledger_counts(loaded) == (5, 8)


def test_a_replay_that_deletes_missing_files_leaves_them_out(loaded: Feed) -> None:
    (loaded.landing / "d=0/2.ndjson").unlink()
    loaded.command("replay", NAME, "--start", "d=0", "--end", "d=1", "--replace", "--gone", "delete")
    assert ledger_counts(loaded) == (3, 6)


def test_an_import_after_a_lost_state_counts_its_files(loaded: Feed) -> None:
    lines = loaded.command("state", "export", NAME).out
    (loaded.folder / "export.jsonl").write_text(lines)
    shutil.rmtree(loaded.state)
    loaded.decide("import", str(loaded.folder / "export.jsonl"))
    assert ledger_counts(loaded) == (4, 8)


def test_a_reset_that_keeps_the_table_begins_to_count_anew(loaded: Feed) -> None:
    loaded.decide("reset", "--replace")
    loaded.load()
    assert ledger_counts(loaded) == (4, 8)
