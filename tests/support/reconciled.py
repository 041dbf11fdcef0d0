"""Comparisons of source and table by the command, and tables that somebody changes by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.columns import Columns
from tests.support.iceberg import foreign_table

SORTS = ("missing", "extra", "different")


def reconciled(flow: Columns, *options: str, code: int = 0) -> dict[str, Any]:
    """Return the answer of the command for one dataflow."""
    answer = flow.feed.cli("reconcile", "flow", *options)
    assert answer.code == code, answer.out + answer.err
    document: dict[str, Any] = answer.json["dataflows"][0]
    return document


def repaired(flow: Columns, *options: str, code: int = 0) -> dict[str, Any]:
    """Return the answer of a comparison that repairs what differs."""
    return reconciled(flow, "--repair", "--reason", "because", "--yes", *options, code=code)


def sums_of(document: dict[str, Any]) -> list[dict[str, int]]:
    """Return the counts of differing rows of each range."""
    return [{sort: range_[sort] for sort in SORTS} for range_ in document["ranges"]]


def ids_of(document: dict[str, Any]) -> dict[str, list[int]]:
    """Return the ids of all keys that are shown, sorted."""
    return {sort: sorted(key["id"] for key in document[sort]) for sort in SORTS}


def by_hand(flow: Columns) -> Callable[[str], None]:
    """Return what runs Spark's SQL on the table as a program of somebody else would; ``{t}`` is its name."""
    feed = flow.feed
    session = feed.platform.engine(feed.dataflow).session()
    is_iceberg = feed.definition["target"].get("format") == "iceberg"
    name = foreign_table(session, feed.table) if is_iceberg else f"delta.`{feed.table}`"

    def run(statement: str) -> None:
        session.sql(statement.replace("{t}", name)).collect()

    return run


def reasons(flow: Columns) -> list[str]:
    """Return why each entry was appended, oldest first."""
    return [entry.why for entry in flow.feed.entries]
