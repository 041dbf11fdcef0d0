"""``schema_mode: overwrite`` beside ``load: overwrite``: the table takes the columns that its source has (docs/reference/schemas.md)."""

from __future__ import annotations

import pytest

from platform_assets.project.errors import InvalidProject
from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed, dies_after

WHOLE = {
    "source": {"type": "table", "table": "raw/rows"},
    "watermark": {"type": "window", "definition": []},
    "target": {"load": "overwrite", "schema_mode": "overwrite"},
}


def _source(feed: Feed, query: str) -> None:
    rows = feed.engine.session().sql(query)
    place = str(feed.folder / "lake" / "raw" / "rows")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(place)


@pytest.mark.full
def test_the_table_takes_the_columns_of_its_source_and_history_is_readable(make_feed: MakeFeed) -> None:
    feed = make_feed(**WHOLE)
    _source(feed, "SELECT 1L AS id, 10L AS value, 'x' AS gone")
    feed.load()
    _source(feed, "SELECT 1L AS id, 'ten' AS value, true AS new")
    outcome = feed.load()
    assert feed.rows("id", "value", "new") == [(1, "ten", True)]
    assert outcome.warnings[-1] == (
        "the columns of the table change: value was bigint, is string; gone is missing (string); new is new (boolean)"
    )
    before = feed.engine.session().read.format("delta").option("versionAsOf", 0).load(str(feed.table))
    assert [tuple(row) for row in before.select("id", "value", "gone").collect()] == [(1, 10, "x")]


@pytest.mark.full
def test_a_run_that_dies_before_the_columns_change_again_leads_to_the_newest(make_feed: MakeFeed) -> None:
    feed = make_feed(**WHOLE)
    _source(feed, "SELECT 1L AS id")
    feed.load()
    _source(feed, "SELECT 2L AS id, 'a' AS name")
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.INTENT_PUT))
    _source(feed, "SELECT 3L AS id, 5L AS other")
    feed.load()
    feed.load()
    assert feed.rows("id", "other") == [(3, 5)]


def test_overwrite_beside_a_load_that_keeps_rows_is_refused_with_the_reason(make_feed: MakeFeed) -> None:
    feed = make_feed(target={"schema_mode": "overwrite"})
    with pytest.raises(
        InvalidProject, match="found overwrite beside load: append, expected strict, merge or rescue"
    ):
        _ = feed.dataflow
