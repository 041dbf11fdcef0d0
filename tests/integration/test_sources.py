"""A source that is empty, missing, refused or breaks off: told apart, and nothing is committed from a part of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.proxy import CountingProxy
from tests.support.seaweed import Seaweed
from tests.support.trees import put_objects

NO_SPARK = SparkEngine(remote="sc://127.0.0.1:1")
"""Nothing answers there: a test that gets along with it starts no Spark."""


def _untouched(feed: Feed) -> bool:
    return feed.newest is None and feed.open_intent is None and not feed.table.exists()


class TestFolders:
    @pytest.fixture
    def feed(self, tmp_path: Path) -> Feed:
        return Feed(tmp_path / "project", NO_SPARK)

    def test_an_empty_landing_zone_is_fine(self, feed: Feed) -> None:
        answer = feed.cli("run", NAME)
        assert (answer.code, answer.json[0]["status"], answer.json[0]["state_number"]) == (0, "nothing", 0)
        assert _untouched(feed)

    def test_a_zone_with_other_files_only_is_empty(self, feed: Feed) -> None:
        for name in ("a.txt", "_b.ndjson", ".c.ndjson", "d.ndjson.part"):
            feed.put(name, 1)
        feed.command("run", NAME)
        assert _untouched(feed)

    def test_a_missing_folder_is_an_error(self, feed: Feed) -> None:
        feed.landing.rmdir()
        answer = feed.cli("run", NAME)
        assert (answer.code, answer.error["code"]) == (1, "source_missing")
        assert str(feed.landing) in answer.error["message"]
        assert not feed.landing.exists()
        assert _untouched(feed)

    def test_a_file_in_its_place_is_an_error(self, feed: Feed) -> None:
        feed.landing.rmdir()
        feed.landing.write_text("x")
        answer = feed.cli("run", NAME)
        assert (answer.code, answer.error["code"]) == (1, "source_not_folder")

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may list every folder")
    def test_a_folder_that_may_not_be_listed_is_an_error(self, feed: Feed) -> None:
        feed.put("a/1.ndjson", 1)
        feed.put("b/1.ndjson", 1)
        (feed.landing / "b").chmod(0)
        answer = feed.cli("run", NAME)
        assert (answer.code, answer.error["code"]) == (1, "source_denied")
        assert _untouched(feed)

    def test_plan_says_the_same_as_run(self, feed: Feed) -> None:
        feed.landing.rmdir()
        planned, run = feed.cli("plan", NAME), feed.cli("run", NAME)
        assert (planned.code, planned.error) == (1, run.error)


def test_a_name_that_cannot_be_loaded_is_told_and_holds_no_other_file_back(feed: Feed) -> None:
    feed.put("date=1/a.ndjson", 1)
    feed.put("date=2/b.ndjson", 2)
    feed.put("date=2/c.ndjson", 3)
    good = feed.landing / "date=2" / "c.ndjson"
    bad = good.rename(good.with_name(os.fsdecode(b"\xff.ndjson")))
    feed.put_text("date=2/orders.tmp", "half")
    said = [
        r'skipped "date=2/\udcff.ndjson": a name that is not UTF-8. Rename or remove it',
        "skipped 'date=2/orders.tmp': names of this source's files end in .ndjson or .jsonl",
    ]
    planned = feed.cli("plan", NAME).json[0]["warnings"]
    outcome = feed.load()
    for warnings in (planned, outcome.warnings):
        warnings = [warning for warning in warnings if warning.startswith("skipped")]
        assert [warning[: len(text)] for warning, text in zip(warnings, said, strict=True)] == said
    assert feed.ids == [1, 2]
    bad.rename(good)
    assert any(warning.startswith(said[1]) for warning in feed.load().warnings)
    assert feed.ids == [1, 2, 3]


@pytest.mark.s3
class TestObjectStore:
    @pytest.fixture
    def in_bucket(self, tmp_path: Path, seaweed: Seaweed) -> MakeFeed:
        """A dataflow whose landing zone is a prefix of a bucket."""

        def make(bucket: str, port: int | None = None, secret: str = "") -> Feed:
            keys = {"K": seaweed.access_key_id, "S": secret or seaweed.secret_access_key}
            land = {
                "type": "s3",
                "endpoint": f"http://127.0.0.1:{port or seaweed.port}",
                "region": "us-east-1",
                "access_key_id": {"env": "K"},
                "secret_access_key": {"env": "S"},
            }
            source = {"path": f"s3://{bucket}/landing", "connection": "land"}
            return Feed(
                tmp_path / "project", NO_SPARK, {"source": source}, {"connections": {"land": land}}, keys
            )

        return make

    def test_an_empty_bucket_is_fine(self, in_bucket: MakeFeed, seaweed: Seaweed) -> None:
        with seaweed.bucket() as place:
            feed = in_bucket(place.url.removeprefix("s3://"))
            answer = feed.cli("run", NAME)
            assert (answer.code, answer.json[0]["status"]) == (0, "nothing")
            assert _untouched(feed)

    @pytest.mark.parametrize(
        ("code", "changed"),
        [
            ("source_missing", {"bucket": "no-such-bucket"}),
            ("source_denied", {"secret": "wrong-secret-value"}),
            ("source_unreachable", {"port": 1}),
        ],
    )
    def test_a_missing_bucket_wrong_credentials_and_no_answer_are_told_apart(
        self, in_bucket: MakeFeed, seaweed: Seaweed, code: str, changed: dict[str, Any]
    ) -> None:
        with seaweed.bucket() as place:
            feed = in_bucket(**{"bucket": place.url.removeprefix("s3://")} | changed)
            answer = feed.cli("run", NAME)
            assert (answer.code, answer.error["code"]) == (1, code)
            assert feed.definition["source"]["path"] in answer.error["message"]
            assert "wrong-secret-value" not in answer.out + answer.err
            assert _untouched(feed)

    def test_nothing_is_committed_from_a_listing_that_breaks_off(
        self, in_bucket: MakeFeed, seaweed: Seaweed, proxy: CountingProxy
    ) -> None:
        with seaweed.bucket() as place:
            names = [f"date=1/{number:05}.ndjson" for number in range(1100)]
            put_objects(place.child("landing"), names, b'{"id": 1}\n')
            feed = in_bucket(place.url.removeprefix("s3://"), port=proxy.port)
            proxy.record.break_at = 2
            answer = feed.cli("run", NAME)
            assert (answer.code, answer.error["code"]) == (1, "source_unreachable")
            assert _untouched(feed), "1,000 of 1,100 files were listed before it broke off"
            proxy.record.break_at = None
            (plan,) = feed.cli("plan", NAME).json
            assert [len(piece["files"]) for piece in plan["slices"]] == [1000, 100]
