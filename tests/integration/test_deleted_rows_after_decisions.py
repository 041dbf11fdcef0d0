"""Rows that others deleted stay away after a decision that takes the table, unless an operator says otherwise."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Answer, Feed
from tests.support.moves import write_export

pytestmark = [pytest.mark.each_case, pytest.mark.without_jvm]

ONE_BY_ONE = {"checkpoint": {"interval_files": 1}}
REPLAY = ("replay", NAME, "--start", "d1", "--end", "d9", "--replace")
REWIND = ("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes")
AGAIN = pytest.mark.parametrize("command", [REWIND, REPLAY], ids=["rewind", "replay"])


def load_three(make_feed: MakeFeed, *, rows: int = 1, **definition: Any) -> Feed:
    """A dataflow that has loaded three files one by one, of rows n, 10 n, and so on."""
    watermark = {"type": "path", **ONE_BY_ONE} | definition.pop("watermark", {})
    feed = make_feed(watermark=watermark, **definition)
    for number in (1, 2, 3):
        feed.put(f"d{number}/{number}.ndjson", *(number * 10**power for power in range(rows)))
    feed.load()
    return feed


def delete_by_hand(feed: Feed, *ids: int) -> None:
    """Delete rows as another program does."""
    for id_ in ids:
        DeltaTable(str(feed.table)).delete(f"id = {id_}")


def stops(answer: Answer) -> bool:
    """Whether a command has asked about deleted rows."""
    return (answer.code, answer.error.get("code") if answer.code else "") == (4, "deleted_rows")


def take_table(feed: Feed, how: str) -> None:
    """Make a decision that takes the table as it is."""
    if how == "adopt of a lost state":
        shutil.rmtree(feed.state)
    if how == "reset taken back":
        feed.decide("reset", "--replace")
        feed.decide("rewind", "--to", "3")
    elif how == "set":
        feed.decide("set", '{"path": "d5/5.ndjson"}')
    else:
        feed.decide("adopt", "--deleted", "load")


@AGAIN
@pytest.mark.parametrize("how", ["adopt", "adopt of a lost state", "reset taken back", "set"])
def test_a_row_deleted_before_a_decision_does_not_come_back_unasked(
    make_feed: MakeFeed, how: str, command: tuple[str, ...]
) -> None:
    feed = load_three(make_feed, rows=2)
    delete_by_hand(feed, 20)
    take_table(feed, how)
    assert stops(feed.cli(*command))
    assert feed.ids == [1, 2, 3, 10, 30]


@AGAIN
@pytest.mark.parametrize("how", ["adopt", "adopt of a lost state", "reset taken back"])
def test_nothing_is_asked_if_no_row_was_deleted_before_a_decision(
    make_feed: MakeFeed, how: str, command: tuple[str, ...]
) -> None:
    feed = load_three(make_feed, rows=2)
    take_table(feed, how)
    assert feed.cli(*command).code == 0
    feed.load()
    assert feed.ids == [1, 2, 3, 10, 20, 30]


@AGAIN
@pytest.mark.parametrize("deletes", ["before, skipped", "after"])
def test_a_file_that_a_decision_took_as_loaded_does_not_come_back_unasked(
    make_feed: MakeFeed, deletes: str, command: tuple[str, ...]
) -> None:
    feed, is_before = load_three(make_feed), deletes == "before, skipped"
    if is_before:
        delete_by_hand(feed, 2)
    shutil.rmtree(feed.state)
    feed.decide("adopt", *(["--deleted", "skip"] if is_before else []))
    if not is_before:
        delete_by_hand(feed, 2)
    assert stops(feed.cli(*command))
    assert feed.ids == [1, 3]


def test_after_rows_were_let_in_a_replay_says_that_it_cannot_know_what_is_missing(
    make_feed: MakeFeed,
) -> None:
    feed = load_three(make_feed)
    delete_by_hand(feed, 2)
    shutil.rmtree(feed.state)
    feed.decide("adopt", "--deleted", "load")
    feed.load()
    feed.command("late", NAME)
    assert feed.ids == [1, 2, 3]
    asked = feed.cli(*REPLAY)
    assert stops(asked)
    assert "nothing tells whether others have deleted rows" in asked.error["message"]
    assert feed.cli(*REPLAY, "--deleted", "load").code == 0
    assert feed.ids == [1, 2, 3]


def sweep(feed: Feed) -> None:
    """Load what is new, then what is late."""
    feed.load()
    feed.command("late", NAME)


def imports(feed: Feed, file: str, *more: str) -> Answer:
    """Import an export."""
    return feed.cli("state", "import", NAME, file, *more, "--reason", "x", "--yes")


@pytest.mark.remedy("configuration", "state import --deleted load")
@pytest.mark.parametrize("is_lost", [False, True], ids=["log", "lost log"])
@pytest.mark.parametrize("rows", [(4, 44), (44,)], ids=["part of a file", "whole file"])
def test_an_import_asks_about_deleted_rows_that_it_reads_again(
    make_feed: MakeFeed, rows: tuple[int, ...], is_lost: bool
) -> None:
    feed = load_three(make_feed)
    file = write_export(feed)
    feed.put("d4/4.ndjson", *rows)
    feed.load()
    delete_by_hand(feed, 44)
    if is_lost:
        shutil.rmtree(feed.state)
    assert stops(imports(feed, file))
    refused = imports(feed, file, "--deleted", "skip")
    assert (refused.code, "expected --deleted load" in refused.error["message"]) == (2, True)
    assert "1 row" in feed.decide("import", file, "--deleted", "load").err
    sweep(feed)
    assert feed.ids == sorted([1, 2, 3, *rows])


@pytest.mark.remedy("deleted_rows", "state import --deleted load", "state import --deleted skip")
@pytest.mark.parametrize(("answer", "ids"), [("load", [1, 2, 3, 9]), ("skip", [1, 2, 3])])
def test_an_import_asks_about_a_late_file_whose_rows_others_deleted(
    make_feed: MakeFeed, answer: str, ids: list[int]
) -> None:
    feed = load_three(make_feed)
    file = write_export(feed)
    feed.put("d2/9.ndjson", 9)
    feed.command("late", NAME)
    delete_by_hand(feed, 9)
    asked = imports(feed, file)
    assert stops(asked)
    assert "1 row of d2/9.ndjson" in asked.error["message"]
    feed.decide("import", file, "--deleted", answer)
    sweep(feed)
    assert feed.ids == ids


@pytest.mark.parametrize("is_lost", [False, True], ids=["log", "lost log"])
def test_an_import_asks_nothing_if_no_row_was_deleted(make_feed: MakeFeed, is_lost: bool) -> None:
    feed = load_three(make_feed)
    file = write_export(feed)
    feed.put("d4/4.ndjson", 4)
    feed.put("d2/9.ndjson", 9)
    sweep(feed)
    feed.put("d1/8.ndjson", 8)
    if is_lost:
        shutil.rmtree(feed.state)
    assert imports(feed, file, "--deleted", "skip").code == 0
    sweep(feed)
    assert feed.ids == [1, 2, 3, 4, 8, 9]


def test_a_row_below_an_imported_watermark_is_asked_about_when_it_is_read_again(make_feed: MakeFeed) -> None:
    feed = load_three(make_feed, rows=2)
    file = write_export(feed)
    feed.put("d4/4.ndjson", 4)
    feed.load()
    delete_by_hand(feed, 20)
    assert imports(feed, file).code == 0
    feed.load()
    assert stops(feed.cli(*REWIND))
    assert stops(feed.cli(*REPLAY))


def lose_count(feed: Feed, how: str) -> list[str]:
    """End what the lists of the state count; return the decision that leads on."""
    if how.startswith("reset"):
        feed.decide("reset", "--replace")
    if how == "adopt rewind":
        feed.decide("adopt")
    if how == "lost list":
        shutil.rmtree(feed.state / "files")
    return ["rewind", "--to", "3", "--replace"] if how.endswith("rewind") else ["adopt"]


@pytest.mark.parametrize("how", ["reset adopt", "reset rewind", "adopt rewind", "lost list"])
def test_a_file_without_rows_is_not_late_before_an_operator_says_so(make_feed: MakeFeed, how: str) -> None:
    feed = load_three(make_feed)
    delete_by_hand(feed, 2)
    verb, *options = lose_count(feed, how)
    asked = feed.cli("state", verb, NAME, *options, "--reason", "x", "--yes")
    assert stops(asked)
    assert "1 row of d2/2.ndjson" in asked.error["message"]
    feed.decide(verb, *options, "--deleted", "load")
    sweep(feed)
    assert feed.ids == [1, 2, 3]


@pytest.mark.parametrize("how", ["reset adopt", "reset rewind", "adopt rewind", "lost list"])
def test_a_file_that_was_never_loaded_is_late_without_a_question(make_feed: MakeFeed, how: str) -> None:
    feed = load_three(make_feed)
    feed.put("d2/9.ndjson", 9)
    verb, *options = lose_count(feed, how)
    feed.decide(verb, *options)
    sweep(feed)
    assert feed.ids == [1, 2, 3, 9]


@pytest.mark.parametrize("how", ["reset", "adopt", "import", "import of a lost log"])
def test_a_deleted_row_of_a_file_that_is_away_is_asked_about(make_feed: MakeFeed, how: str) -> None:
    feed = load_three(make_feed)
    file, is_lost = write_export(feed), how == "import of a lost log"
    feed.put("d2/9.ndjson", 9)
    feed.command("late", NAME)
    delete_by_hand(feed, 9)
    away = feed.folder / "away"
    (feed.landing / "d2/9.ndjson").rename(away)
    if how in ("reset", "adopt"):
        feed.decide(how, *(["--replace"] if how == "reset" else []))
        command = ["rewind", "--to", "4", "--replace"]
    else:
        command = ["import", file]
    if is_lost:
        shutil.rmtree(feed.state)
    asked = feed.cli("state", *command[:1], NAME, *command[1:], "--reason", "x", "--yes")
    assert stops(asked)
    assert ("d2/9.ndjson" in asked.error["message"]) != is_lost
    feed.decide(*command, "--deleted", "load")
    away.rename(feed.landing / "d2/9.ndjson")
    sweep(feed)
    assert feed.ids == [1, 2, 3, 9]
