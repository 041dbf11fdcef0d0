"""Events of runs for a lineage catalog (docs/how-to/lineage.md), received by a real server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from resources.spark.connect_server import free_port
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.webhooks import Receiver, webhook_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as running:
        yield running


def told_of(feed: Feed, receiver: Receiver, *commands: str) -> list[dict[str, Any]]:
    """Run, and return the new events, each with the fields that the standard requires."""
    before = len(receiver.taken)
    feed.cli("run", NAME, *commands)
    events: list[dict[str, Any]] = receiver.taken[before:]
    for event in events:
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        assert event["producer"].startswith("urn:strandline:")
        assert event["schemaURL"].startswith("https://openlineage.io/spec/")
        assert UUID(event["run"]["runId"])
        assert (event["job"]["namespace"], event["job"]["name"]) == ("project", NAME)
        datasets = [*event["inputs"], *event["outputs"]]
        assert all(dataset["namespace"] and dataset["name"] for dataset in datasets)
        parts = [event["run"], event["job"], *datasets]
        for facets in [
            part.get(key, {}) for part in parts for key in ("facets", "inputFacets", "outputFacets")
        ]:
            # The library adds its own version as a tag.
            own = [facet for name, facet in facets.items() if name != "tags"]
            assert all(facet["_producer"] == event["producer"] and facet["_schemaURL"] for facet in own)
    assert len({event["run"]["runId"] for event in events}) <= 1
    return events


def with_catalog(feed: Feed, url: str, **more: str) -> Feed:
    feed.settings["lineage"] = {"openlineage": {"url": url, **more}}
    feed.__post_init__()
    return feed


def test_a_run_tells_what_it_reads_and_writes_and_how_columns_are_made(
    make_feed: MakeFeed, receiver: Receiver
) -> None:
    sql = "select id, concat(name, '!') as loud from input"
    feed = make_feed(source={"schema": "id long, name string"}, sql=sql, owners=["team:sales"])
    feed.environment["DAGSTER_HOME"] = str(feed.folder / "dagster")
    (feed.folder / "dagster").mkdir()
    with_catalog(feed, receiver.url)
    feed.put("1.ndjson", {"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    start, complete = told_of(feed, receiver)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    files = {"namespace": "file", "name": str(feed.landing)}
    for event in (start, complete):
        assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [("file", files["name"])]
        assert [(one["namespace"], one["name"]) for one in event["outputs"]] == [("file", str(feed.table))]
        assert UUID(event["run"]["facets"]["parent"]["run"]["runId"])
        assert event["run"]["facets"]["parent"]["job"]["name"] == f"load_{NAME}"
        assert event["job"]["facets"]["sql"]["query"] == sql
        assert event["job"]["facets"]["ownership"]["owners"][0]["name"] == "team:sales"
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert read["inputFacets"]["inputStatistics"]["fileCount"] == 1
    assert [(field["name"], field["type"]) for field in read["facets"]["schema"]["fields"]] == [
        ("id", "bigint"),
        ("name", "string"),
    ]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert [(field["name"], field["type"]) for field in written["facets"]["schema"]["fields"]][:2] == [
        ("id", "bigint"),
        ("loud", "string"),
    ]
    assert written["facets"]["storage"]["storageLayer"] == "delta"

    def made_of(column: str, how: str) -> dict[str, Any]:
        transformations = [{"type": "DIRECT", "subtype": how}]
        return {"inputFields": [{**files, "field": column, "transformations": transformations}]}

    lineage = written["facets"]["columnLineage"]["fields"]
    assert lineage == {"id": made_of("id", "IDENTITY"), "loud": made_of("name", "TRANSFORMATION")}

    feed.put_text("2.ndjson", '{"id": "x"}\n')
    _, failed = told_of(feed, receiver)
    assert failed["eventType"] == "FAIL"
    assert (
        "file 2.ndjson, line 1: field id: expected bigint"
        in failed["run"]["facets"]["errorMessage"]["message"]
    )


@pytest.mark.without_jvm
def test_a_catalog_that_is_away_or_silent_only_makes_a_warning(
    make_feed: MakeFeed, receiver: Receiver
) -> None:
    feed = with_catalog(make_feed(), f"http://127.0.0.1:{free_port()}")
    feed.put("1.ndjson", 1)
    (ran,) = feed.command("run", NAME).json
    (warning,) = [line for line in ran["warnings"] if "lineage" in line]
    assert warning.startswith("the lineage catalog was not told of this run: ")
    assert "Connection refused" in warning
    with_catalog(feed, receiver.url, timeout="PT0.2S")
    receiver.holds_back.clear()
    feed.put("2.ndjson", 2)
    (ran,) = feed.command("run", NAME).json
    receiver.holds_back.set()
    assert [line for line in ran["warnings"] if "lineage" in line] == [
        "the lineage catalog was not told of this run: no answer within 0.2 s"
    ]
    assert feed.ids == [1, 2]


@pytest.mark.without_jvm
def test_the_standard_variables_name_a_catalog_and_without_any_a_run_says_so(
    make_feed: MakeFeed, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = make_feed()
    feed.settings["lineage"] = {"openlineage": {}}
    feed.__post_init__()
    monkeypatch.chdir(feed.folder)
    feed.put("1.ndjson", 1)
    (ran,) = feed.command("run", NAME).json
    assert "expected lineage.openlineage.url in platform.yaml" in ran["warnings"][-1]
    config = feed.folder / "openlineage.yml"
    config.write_text(f"transport: {{type: http, url: '{receiver.url}'}}\n")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    feed.put("2.ndjson", 2)
    start, complete = told_of(feed, receiver)
    assert (start["eventType"], complete["eventType"], feed.ids) == ("START", "COMPLETE", [1, 2])
    assert list(complete["outputs"][0]["facets"]["columnLineage"]["fields"]) == ["id"]


@pytest.mark.without_jvm
def test_without_the_key_nobody_hears_of_a_run(
    make_feed: MakeFeed, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", receiver.url)
    feed = make_feed()
    feed.put("1.ndjson", 1)
    assert told_of(feed, receiver) == []
    assert feed.ids == [1]
