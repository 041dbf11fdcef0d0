"""Windows whose rows lie in a folder each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from resources.kinds.window.sources import FolderWindows
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.window_feed import REPLACED, instant, watermark

Make = Callable[..., Feed]
NOW = instant("2020-01-04T06:00")


@pytest.fixture
def make(make_feed: MakeFeed) -> Make:
    def made(
        path: str = "./landing/{start:%Y-%m-%d}/{unit.u}", units: str | None = "a,b", **more: Any
    ) -> Feed:
        source = {"path": path, "extensions": [".ndjson"], **more.pop("source", {})}
        given = watermark(units=units, partial=False) | more.pop("watermark", {})
        return make_feed(source=source, watermark=given, target=more.pop("target", REPLACED), **more)

    return made


def fill(feed: Feed, *days: int, units: str = "ab") -> None:
    for day in days:
        for place, unit in enumerate(units):
            feed.put(f"2020-01-{day:02d}/{unit}/x.ndjson", day * 10 + place)


def test_each_window_of_a_unit_is_read_from_its_own_folder(make: Make) -> None:
    feed = make()
    fill(feed, 1, 2, 3, 4)
    outcome = feed.run(now=NOW)
    assert (outcome.error, outcome.work_units, outcome.files) == (None, 6, 6)
    assert feed.ids == [10, 11, 20, 21, 30, 31]
    assert {row for row in feed.rows("_unit", "_source_file") if row[1] == "2020-01-02/b/x.ndjson"} == {
        ('{"u":"b"}', "2020-01-02/b/x.ndjson")
    }


def test_of_empty_folders_no_query_is_made(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first run over a year of days that have no files would union hundreds of empty frames."""
    read: list[int] = []
    reads = FolderWindows.read

    def counted(source: FolderWindows, spark: Any, slice_: Any, works: Any, pinned: str) -> Any:
        read.append(len(works))
        return reads(source, spark, slice_, works, pinned)

    monkeypatch.setattr(FolderWindows, "read", counted)
    feed = make(
        units=None, path="./landing/{start:%Y-%m-%d}", source={"missing": "empty", "schema": "id long"}
    )
    feed.landing.mkdir(parents=True, exist_ok=True)
    feed.put("2020-01-02/x.ndjson", 2)
    outcome = feed.run(now=NOW)
    assert (outcome.error, outcome.work_units) == (None, 3)
    assert feed.ids == [2]
    assert read == [1]


@pytest.mark.full
def test_a_folder_read_whole_replaces_the_table_and_names_its_files(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"type": "window", "definition": []}, target={"load": "overwrite"})
    feed.put("x.ndjson", 1, 2)
    feed.put("more/y.ndjson", 3)
    feed.load()
    assert feed.rows("id", "_source_file") == [(1, "x.ndjson"), (2, "x.ndjson"), (3, "more/y.ndjson")]
    feed.put("x.ndjson", 4)
    feed.load()
    assert feed.rows("id", "_source_file") == [(3, "more/y.ndjson"), (4, "x.ndjson")]


def test_a_folder_that_is_not_there_is_a_failed_work_unit_and_asked_for_again(make: Make) -> None:
    feed = make()
    fill(feed, 1, 2, 3)
    for folder in ("2020-01-02/b", "2020-01-03/a"):
        (feed.landing / folder / "x.ndjson").unlink()
    outcome = feed.run(now=NOW)
    assert str(outcome.error).count("expected files in") == 1
    assert str(outcome.error).count("missing: empty") == 1
    assert "2 alike, such as: expected files in" in str(outcome.error)
    assert (outcome.work_units, outcome.failed_units, len(feed.entries)) == (4, 2, 1)
    assert feed.ids == [10, 11, 20, 31]
    fill(feed, 2, 3)
    again = feed.run(now=NOW)
    assert (again.error, again.work_units) == (None, 2)
    assert feed.ids == [10, 11, 20, 21, 30, 31]


def test_with_missing_empty_it_is_an_empty_window(make: Make) -> None:
    feed = make(source={"missing": "empty"})
    fill(feed, 1, 3)
    outcome = feed.run(now=NOW)
    assert (outcome.error, outcome.work_units) == (None, 6)
    assert feed.ids == [10, 11, 30, 31]
    assert feed.run(now=NOW).status == "nothing"


@pytest.mark.parametrize("missing", ["empty", "fail"])
def test_a_missing_root_is_no_empty_window_and_no_failed_unit(make: Make, missing: str) -> None:
    feed = make(source={"missing": missing})
    fill(feed, 1, 2, 3)
    feed.run(now=NOW)
    feed.landing.rename(feed.folder / "elsewhere")
    error = feed.fail(now=instant("2020-01-05T06:00"))
    assert (error.code, len(feed.entries)) == ("source_missing", 1)
    assert (
        f"{feed.landing}: expected a folder, found none. It was there when the last load read"
        in error.message
    )


def test_within_the_grace_a_folder_is_read_as_a_whole_and_replaced(make: Make) -> None:
    feed = make(path="./landing/{start:%Y/%m/%d}", units=None, watermark={"grace": "P1D"})
    for day in (1, 2, 3):
        feed.put(f"2020/01/{day:02d}/x.ndjson", day)
    feed.run(now=NOW)
    feed.put("2020/01/03/y.ndjson", 33)
    feed.put("2020/01/01/y.ndjson", 11)
    feed.run(now=NOW)
    assert feed.ids == [1, 2, 3, 33]


def test_a_torn_file_fails_its_window_alone(make: Make) -> None:
    feed = make(source={"extensions": [".ndjson", ".gz"]})
    fill(feed, 1, 2)
    feed.put_bytes("2020-01-02/a/torn.ndjson.gz", b"\x1f\x8b\x08\x00torn")
    outcome = feed.run(now=instant("2020-01-03T06:00"))
    assert "torn.ndjson.gz" in str(outcome.error)
    assert (outcome.work_units, outcome.failed_units) == (3, 1)
    assert feed.ids == [10, 11, 21]


def test_append_without_partial_windows_adds_each_folder_once(make: Make) -> None:
    feed = make(target={"load": "append"})
    fill(feed, 1, 2, 3)
    feed.run(now=NOW)
    fill(feed, 4)
    feed.run(now=instant("2020-01-05T06:00"))
    assert feed.ids == [10, 11, 20, 21, 30, 31, 40, 41]


def test_a_unit_that_is_no_name_of_a_folder_is_refused(make: Make) -> None:
    feed = make(units="a,../b")
    outcome = feed.run(now=NOW)
    assert "expected a value of unit u that can name a folder, found '../b'" in str(outcome.error)
    assert feed.newest is None


def test_a_folder_that_two_units_have_is_refused(make_feed: MakeFeed) -> None:
    units = [{"a": "x-y", "b": "z"}, {"a": "x", "b": "y-z"}]
    feed = make_feed(
        source={"path": "./landing/{start:%Y-%m-%d}/{unit.a}-{unit.b}"},
        watermark=watermark(units=units, partial=False),
        target=REPLACED,
    )
    feed.put("2020-01-01/x-y-z/x.ndjson", 1)
    outcome = feed.run(now=instant("2020-01-02T06:00"))
    assert "found the folder name x-y-z, which the unit a=" in str(outcome.error)
    assert feed.newest is None


@pytest.mark.parametrize(
    ("path", "units", "target", "key"),
    [
        ("./landing/{start}/{unit.u}{unit.v}", "a", REPLACED, "source.path"),
        ("./landing", "a", REPLACED, "source.path"),
        ("./landing/{start}", "a", REPLACED, "source.path"),
        ("./landing/{start}/{unit.v}", "a", REPLACED, "source.path"),
        ("./landing/{start}", None, {"load": "append"}, "target.load"),
    ],
)
def test_a_path_that_does_not_tell_the_folder_is_refused(
    make: Make, path: str, units: str | None, target: dict[str, Any], key: str
) -> None:
    feed = make(path=path, units=units, target=target, watermark={"partial": True})
    assert key in [error["key"] for error in feed.cli("validate").json["errors"]]
