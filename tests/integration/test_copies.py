"""Files that come twice under two names are loaded, skipped or told, as `duplicates` says, and once at each kill."""

from __future__ import annotations

import hashlib
import shutil
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from partitions.alerts.alert import Alert
from partitions.path.copies import Content, content_of
from partitions.path.listing_positions import FromBeginning
from resources.alerts.scan import AlertScan
from resources.connections.places import Place
from resources.kinds.path.copies import CopyFinder
from resources.kinds.path.late import late_step
from resources.listing import list_above
from resources.outcome import Step
from resources.watermarks.ingested import IngestedFiles
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed, dies_after
from tests.support.seaweed import Seaweed
from tests.support.trees import put_objects

pytestmark = pytest.mark.without_jvm

SKIP = {"watermark": {"duplicates": "skip", "checkpoint": {"interval_files": 2}}}


def records(feed: Feed) -> dict[str, str | None]:
    """The reason of each recorded file."""
    record = IngestedFiles(feed.platform.log, NAME, feed.newest)
    return {file.path: file.reason for file in record.all()}


def test_a_copy_is_skipped_within_a_listing_and_against_all_that_was_loaded(make_feed: MakeFeed) -> None:
    feed = make_feed(**SKIP)
    for name, row in (("a", 1), ("b", 1), ("c", 2), ("d", 1), ("e", 3)):
        feed.put(f"{name}.ndjson", row)
    feed.put_text("f.ndjson", "")
    feed.put_text("g.ndjson", "")
    outcome = feed.load()
    assert (feed.ids, feed.path) == ([1, 2, 3], "g.ndjson")
    assert records(feed) == {
        "a.ndjson": None,
        "b.ndjson": "same content as a.ndjson",
        "c.ndjson": None,
        "d.ndjson": "same content as a.ndjson",
        "e.ndjson": None,
        "f.ndjson": None,
        "g.ndjson": None,
    }
    assert (
        "1 file with the content of another file skipped: b.ndjson (same content as a.ndjson)"
        in outcome.warnings
    )
    IngestedFiles(feed.platform.log, NAME, feed.newest).merge(1)
    feed.put("h.ndjson", 2)
    (feed.landing / "c.ndjson").unlink()
    feed.load()
    assert (feed.ids, records(feed)["h.ndjson"]) == ([1, 2, 3], "same content as c.ndjson")
    feed.put("0.ndjson", 3)
    late_step(feed.platform, feed.dataflow, NOW)
    assert (feed.ids, records(feed)["0.ndjson"]) == ([1, 2, 3], "same content as e.ndjson")
    (ledger,) = feed.command("ledger", NAME).json
    assert (ledger["totals"]["files"], ledger["totals"]["duplicates"]) == (5, 4)


@pytest.mark.parametrize("step", [Step.LIST_KEPT, Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED])
def test_a_run_that_dies_skips_the_same_copies(make_feed: MakeFeed, step: Step) -> None:
    feed = make_feed(**SKIP)
    feed.put("a.ndjson", 1)
    feed.load()
    for name, row in (("b", 1), ("c", 2), ("d", 2), ("e", 4)):
        feed.put(f"{name}.ndjson", row)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))
    feed.load()
    assert feed.ids == [1, 2, 4]
    assert [path for path, reason in records(feed).items() if reason] == ["b.ndjson", "d.ndjson"]


def test_files_of_one_content_that_are_both_loaded_stay_both_when_they_are_read_again(
    make_feed: MakeFeed,
) -> None:
    feed = make_feed()
    feed.put("d=1/a.ndjson", 1)
    feed.put("d=1/b.ndjson", 1)
    feed.load()
    feed.define(watermark={"duplicates": "skip"})
    feed.decide("rewind", "--to", "0")
    feed.load()
    assert feed.ids == [1, 1, 1, 1], "append adds the rows of files that are read again"
    feed.put("d=1/c.ndjson", 1)
    feed.load()
    assert (feed.ids, records(feed)["d=1/c.ndjson"]) == ([1, 1, 1, 1], "same content as d=1/a.ndjson")


@pytest.mark.parametrize("gone", ["delete", "keep"])
def test_a_renamed_file_is_there_once_after_a_rewind(make_feed: MakeFeed, gone: str) -> None:
    feed = make_feed(**SKIP)
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 2)
    feed.load()
    (feed.landing / "2.ndjson").rename(feed.landing / "2b.ndjson")
    feed.decide("rewind", "--to", "0", "--replace", "--gone", gone)
    feed.load()
    assert feed.ids == [1, 2]


@pytest.mark.parametrize("decision", ["adopt", "rewind"])
def test_a_decision_that_records_files_again_keeps_their_checksums(
    make_feed: MakeFeed, decision: str
) -> None:
    feed = make_feed(**SKIP)
    feed.put("x/1.ndjson", 1)
    feed.put("x/2.ndjson", 2)
    feed.load()
    if decision == "adopt":
        feed.decide("adopt")
    else:
        feed.decide("reset", "--replace")
        feed.load()
        feed.decide("rewind", "--to", "1", "--replace")
    feed.put("x/3.ndjson", 1)
    feed.load()
    assert feed.ids == [1, 2]


def test_the_preview_says_that_copies_of_files_without_a_checksum_are_loaded(make_feed: MakeFeed) -> None:
    feed = make_feed(**SKIP)
    feed.put("1.ndjson", 1)
    feed.load()
    shutil.rmtree(feed.state)
    note = "the log has no checksum of 1 file (1.ndjson): a copy of such a file is loaded like any other"
    assert note in feed.decide("adopt").err


def test_files_below_folders_of_other_values_are_no_copies(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, country string"}, **SKIP)
    for path in ("country=de/1.ndjson", "country=fr/1.ndjson", "country=fr/2.ndjson"):
        feed.put(path, 1)
    feed.load()
    assert feed.ids == [1, 1]
    assert records(feed)["country=fr/2.ndjson"] == "same content as country=fr/1.ndjson"


def test_the_last_judgement_of_a_slice_decides_what_its_warning_says(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"duplicates": "skip"})
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 1)
    (slice_,) = feed.platform.plan(feed.dataflow, NOW).slices
    finder = CopyFinder(
        feed.dataflow, Place(str(feed.landing)), feed.platform.log, feed.platform.table(feed.dataflow)
    )
    judged = finder.mark_copies(slice_, None)
    assert [copy.file.path for copy in judged.copies] == ["2.ndjson"]
    assert len(finder.remarks) == 1
    judged = finder.mark_copies(judged.without("1.ndjson", "bad"), None)
    assert ([file.path for file in judged.files], finder.remarks) == (["2.ndjson"], ())


def test_the_preview_of_a_rewind_leaves_out_skipped_copies(make_feed: MakeFeed) -> None:
    feed = make_feed(**SKIP)
    feed.put("1.ndjson", 1)
    feed.load()
    feed.put("2.ndjson", 1)
    feed.load()
    said = feed.decide("rewind", "--to", "0", "--replace").err
    assert "1 of these files was ingested before" in said
    assert "holds no row" not in said


@pytest.mark.parametrize("files_of_a_slice", [1, 2])
def test_an_original_that_is_read_again_with_its_copy_stays_the_original(
    make_feed: MakeFeed, files_of_a_slice: int
) -> None:
    checkpoint = {"interval_files": files_of_a_slice}
    feed = make_feed(watermark={"duplicates": "skip", "tracking": "set", "checkpoint": checkpoint})
    feed.put("2.ndjson", 1)
    feed.load()
    feed.put("1.ndjson", 1)
    feed.load()
    feed.command("files", "unprocess", NAME, "1.ndjson", "2.ndjson")
    feed.load()
    assert feed.ids == [1, 1], "unprocess adds the rows of the original a second time"
    assert records(feed) == {"1.ndjson": "same content as 2.ndjson", "2.ndjson": None}


def test_an_alert_is_told_until_a_load_without_copies(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"duplicates": "alert"})

    def alerts() -> list[Alert]:
        from dagster import DagsterInstance

        with DagsterInstance.ephemeral() as instance:
            scan = AlertScan(feed.platform, ("duplicate_files",), instance, NOW, 2)
            return [verdict.alert for verdict in scan.verdicts(feed.dataflow) if verdict.alert is not None]

    feed.put("a.ndjson", 1)
    feed.load()
    assert alerts() == []
    feed.put("b.ndjson", 1)
    outcome = feed.load()
    assert feed.ids == [1, 1]
    told = "1 file with the content of another file loaded: b.ndjson (same content as a.ndjson). To skip such files, set duplicates: skip"
    assert told in outcome.warnings
    text = "1 file loaded twice, b.ndjson (same content as a.ndjson): duplicates: skip would not load them\n  strandline ledger flow"
    assert alerts() == [Alert("flow", "duplicate_files", text)]
    feed.put("c.ndjson", 2)
    feed.run(now=NOW + timedelta(1))
    assert alerts() == []


def test_the_etag_of_an_object_tells_its_content(seaweed: Seaweed) -> None:
    with seaweed.bucket() as bucket:
        put_objects(bucket, ["a.json", "b.json"], b"same")
        put_objects(bucket, ["c.json"], b"else")
        files = list_above(bucket, FromBeginning(), (".json",)).listed.files
    contents = [content_of(file.path, file.size, file.version, None) for file in files]
    assert (
        contents[0]
        == contents[1]
        == Content(4, f"md5:{hashlib.md5(b'same', usedforsecurity=False).hexdigest()}")
    )
    assert contents[2] not in (None, contents[0])


FILES_OF_ROWS = {**SKIP, "target": {"load": "append", "origin_columns": True}}


@pytest.fixture
def copied(make_feed: MakeFeed) -> Feed:
    """Row 1 is loaded from ``a/1``, and ``b/1`` was skipped as its copy; row 2 came last."""
    feed = make_feed(**FILES_OF_ROWS, source={"schema": "id long"})
    feed.put("a/1.ndjson", 1)
    feed.load()
    feed.put("b/1.ndjson", 1)
    feed.put("c/2.ndjson", 2)
    feed.load()
    assert (feed.ids, records(feed)["b/1.ndjson"]) == ([1, 2], "same content as a/1.ndjson")
    return feed


@pytest.mark.needs_spark
@pytest.mark.parametrize("load", ["rewind", "replay", "promote"])
def test_a_copy_is_loaded_once_its_original_has_other_content(copied: Feed, load: str) -> None:
    feed = copied
    feed.put("a/1.ndjson", 9)
    if load == "rewind":
        feed.decide("rewind", "--to", "0", "--replace")
        feed.load()
    elif load == "replay":
        answer = feed.command("replay", NAME, "--start", "a/", "--end", "b/", "--replace")
        assert "whose rows go: b/1.ndjson. It is late now" in answer.out + answer.err
    else:
        feed.command("replay", NAME, "--start", "a/", "--end", "b/", "--into", "bronze/again")
        feed.command("promote", NAME, "bronze/again", "--reason", "because", "--yes")
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1, 2, 9]
    late_step(feed.platform, feed.dataflow, NOW)
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    assert feed.ids == [1, 2, 9]


@pytest.mark.needs_spark
@pytest.mark.parametrize("change", ["corrected", "gone", "touched"])
@pytest.mark.parametrize("load", ["rewind", "replay"])
def test_the_preview_counts_copies_that_a_corrected_or_gone_original_frees(
    copied: Feed, load: str, change: str
) -> None:
    feed, original = copied, copied.landing / "a/1.ndjson"
    feed.put("d/1.ndjson", 1)
    feed.load()
    gone = ("--gone", "delete") if change == "gone" else ()
    if change == "gone":
        original.unlink()
    else:
        feed.put("a/1.ndjson", 9 if change == "corrected" else 1)
    if load == "rewind":
        told = feed.decide("rewind", "--to", "0", "--replace", *gone).err
        feed.load()
    else:
        path = ("--start", "a/1.ndjson", "--end", "a/1.ndjson~", "--column", "_source_file")
        told = feed.command("replay", NAME, *path, "--replace", *gone, "--dry-run").out
        feed.command("replay", NAME, *path, "--replace", *gone)
    sentence = (
        "2 files skipped before as the copy of a file that has other content now, or whose rows go: "
        "b/1.ndjson, d/1.ndjson. They are freed: each content is loaded once"
    )
    assert (sentence in told, "are freed" in told) == ((change != "touched"),) * 2
    for _ in range(2):
        late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == {"corrected": [1, 2, 9], "gone": [1, 2], "touched": [1, 2]}[change]


@pytest.mark.needs_spark
@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN])
def test_a_copy_that_a_killed_run_frees_is_loaded_once(copied: Feed, step: Step) -> None:
    feed = copied
    feed.put("a/1.ndjson", 9)
    feed.decide("rewind", "--to", "0", "--replace")
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))
    feed.load()
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1, 2, 9]


@pytest.mark.needs_spark
@pytest.mark.parametrize("gone", ["delete", "keep"])
def test_a_copy_of_a_file_that_is_gone_with_its_rows_is_loaded_when_read_again(
    copied: Feed, gone: str
) -> None:
    feed = copied
    (feed.landing / "a/1.ndjson").unlink()
    if gone == "keep":
        DeltaTable(str(feed.table)).delete("id = 1")
        feed.decide("rewind", "--to", "0", "--replace", "--deleted", "load")
    else:
        feed.decide("rewind", "--to", "0", "--replace", "--gone", "delete")
    feed.load()
    late_step(feed.platform, feed.dataflow, NOW)
    assert feed.ids == [1, 2]


@pytest.mark.needs_spark
def test_a_new_copy_of_a_file_whose_rows_others_deleted_is_skipped(copied: Feed) -> None:
    feed = copied
    DeltaTable(str(feed.table)).delete("id = 1")
    feed.put("d/1.ndjson", 1)
    feed.load()
    assert feed.ids == [2]


@pytest.mark.needs_spark
def test_an_isolated_replay_of_a_copy_is_not_promoted_beside_its_original(make_feed: MakeFeed) -> None:
    feed = make_feed(**FILES_OF_ROWS)
    feed.put("a/1.ndjson", 1)
    feed.load()
    feed.put("b/1.ndjson", 1)
    feed.put("b/2.ndjson", 2)
    feed.load()
    assert feed.ids == [1, 2]
    feed.command("replay", NAME, "--start", "b/", "--end", "c/", "--into", "bronze/again")
    answer = feed.command("promote", NAME, "bronze/again", "--reason", "because", "--yes")
    skipped = "1 file with the content of another file skipped: b/1.ndjson (same content as a/1.ndjson)"
    assert skipped in answer.err
    assert feed.ids == [1, 2]
