"""A run over commits that dies at any step reads the same commits again, whatever is committed meanwhile.

It dies in this process, so that all steps, loads and formats are cheap; :mod:`tests.integration.test_crash_matrix` kills real ones.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.commit_worlds import STEPS
from tests.support.commits import OF_CHANGES, UPSTREAMS, Upstream, copying, replayed, rows_of
from tests.support.feed import Feed
from tests.support.steps import Killed, killed_at

_KEYED = {"merge_keys": ["id"]}
WAYS: dict[str, dict[str, Any]] = {
    "append": {},
    "merge_upsert": {"target": {"load": "merge_upsert", **_KEYED}},
    "deletes by rule": {"target": {"load": "merge_upsert", **_KEYED, "delete_when": "v = 'gone'"}},
    "scd2": {
        "target": {"load": "scd2", **_KEYED, "effective_column": "at"},
        "sql": "SELECT *, _commit_timestamp AS at FROM input",
    },
    "keep": {"source": {"on_change": "keep"}},
    "first read in parts": {
        "target": {"load": "merge_upsert", **_KEYED},
        "watermark": {"checkpoint": {"files": 1, "commits": 1}},
    },
}
"""Definitions by how they load."""
QUICK = {("scd2", "delta", Step.WRITTEN), ("keep", "iceberg", Step.INTENT_PUT)}
"""The cells of `make test`."""


def _cells() -> list[Any]:
    cells = [(way, kind, step) for way in WAYS for kind in UPSTREAMS for step in STEPS]
    return [pytest.param(*cell, marks=() if cell in QUICK else pytest.mark.full) for cell in cells]


def _change(upstream: Upstream, way: str) -> None:
    """Commit what the run that dies reads: changes, unless the load only takes new rows."""
    upstream.append((4, "d"))
    if way != "append":
        upstream.update(1, "x")
        upstream.merge((3, "gone"), (5, "e"))
        upstream.delete(2)


def _change_meanwhile(upstream: Upstream, way: str) -> None:
    """Commit what a slice that is read again must not read: its own keys, and joined files."""
    upstream.append((6, "f"))
    if way != "append":
        upstream.update(1, "later")
        upstream.append((2, "again"))
    upstream.compact()


@pytest.mark.each_case
@pytest.mark.parametrize(("way", "kind", "step"), _cells())
def test_a_run_that_died_reads_the_same_commits_again(
    tmp_path: Path, engine: SparkEngine, way: str, kind: str, step: Step
) -> None:
    feed = Feed(tmp_path / "project", engine, copying(**WAYS[way]))
    feed.define(target={"format": kind})
    upstream = UPSTREAMS[kind](feed.folder / "lake", engine)
    upstream.append((1, "a"), (2, "b"))
    upstream.append((3, "c"))
    if way != "first read in parts":
        feed.load()
    _change(upstream, way)
    with pytest.raises(Killed):
        feed.run(killed_at(step, 1))
    intent = feed.open_intent
    _change_meanwhile(upstream, way)
    with suppress(Killed):
        feed.run(killed_at(step, 1))
    feed.load()
    if intent is not None:
        finished = next(entry for entry in feed.entries if entry.number == intent.number)
        assert finished.watermark == intent.watermark, "the slice ends where it was planned to"
    _check(feed, upstream, way)
    assert feed.load().status == "nothing"
    assert [entry.number for entry in feed.entries] == list(range(1, len(feed.entries) + 1))
    assert feed.open_intent is None


def _check(feed: Feed, upstream: Upstream, way: str) -> None:
    rows = upstream.rows()
    match way:
        case "keep":
            assert replayed(feed.rows(*OF_CHANGES)) == rows
        case "scd2":
            versions = feed.rows("id", "v", "_is_current")
            assert [version[:2] for version in versions if version[2]] == rows
            ended = [version[:2] for version in versions if not version[2]]
            assert ended == [(1, "a"), (1, "x"), (2, "b"), (3, "c")]
        case "deletes by rule":
            assert rows_of(feed) == [row for row in rows if row[1] != "gone"]
        case _:
            assert rows_of(feed) == rows
