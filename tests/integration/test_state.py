"""A state that cannot be read, is lost, or does not fit the table or the definition: nothing runs until somebody decides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.without_jvm

Break = Callable[[bytes], bytes]

GARBAGE: dict[str, Break] = {
    "words": lambda old: b"not json",
    "nothing": lambda old: b"",
    "half of it": lambda old: old[: len(old) // 2],
    "no text": lambda old: b"\xff\xfe\x00",
    "a list": lambda old: b"[]",
    "null": lambda old: b"null",
    "deeply nested": lambda old: b"[" * 100_000,
    "a missing key": lambda old: _changed(old, number=None),
    "an unknown key": lambda old: _changed(old, surprise=1),
    "a wrong type": lambda old: _changed(old, number="two"),
}
ENTRY: dict[str, Break] = GARBAGE | {
    "another number": lambda old: _changed(old, number=7),
    "a watermark that is no json": lambda old: _changed(old, watermark="nonsense"),
    "a watermark that is no object": lambda old: _changed(old, watermark="17"),
    "a watermark with a bad sentinel": lambda old: _changed(
        old, watermark='{"path": {"__datetime__": "soon"}}'
    ),
    "a watermark of another kind": lambda old: _changed(old, watermark='{"updated_at": 17}'),
    "a path that is no text": lambda old: _changed(old, watermark='{"path": 17}'),
}


def _changed(old: bytes, **changes: Any) -> bytes:
    record = json.loads(old) | changes
    return json.dumps({key: value for key, value in record.items() if value is not None}).encode()


def _all_files(folder: Path) -> dict[str, bytes]:
    """All files but notes, which hold no truth."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if "/notes/" not in name}


@pytest.fixture(scope="module")
def loaded_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Two entries: a.ndjson and b.ndjson."""
    feed = Feed(
        tmp_path_factory.mktemp("loaded"), engine, {"watermark": {"checkpoint": {"interval_files": 1}}}
    )
    feed.put("a.ndjson", 1)
    feed.put("b.ndjson", 2)
    feed.load()
    return feed


@pytest.fixture(scope="module")
def interrupted_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """One entry, a.ndjson, and the intent of b.ndjson, which was written and not appended."""
    feed = Feed(tmp_path_factory.mktemp("interrupted"), engine)
    feed.put("a.ndjson", 1)
    feed.load()
    feed.put("b.ndjson", 2)
    _interrupt(feed, Step.VERIFIED)
    return feed


class _Interrupted(BaseException):
    """Leaves the loop as a crash does, but for the process."""


def _interrupt(feed: Feed, at: Step) -> None:
    def observer(step: Step, line: str) -> None:
        if step is at:
            raise _Interrupted

    with pytest.raises(_Interrupted):
        feed.run(observer)


@pytest.fixture
def loaded(loaded_once: Feed, tmp_path: Path) -> Feed:
    """A copy of one's own, with a file that waits."""
    feed = loaded_once.copy(tmp_path / "project")
    feed.put("c.ndjson", 3)
    return feed


@pytest.fixture
def interrupted(interrupted_once: Feed, tmp_path: Path) -> Feed:
    """A copy of one's own."""
    return interrupted_once.copy(tmp_path / "project")


def _untouched(feed: Feed) -> bool:
    return feed.newest is None and feed.open_intent is None and not feed.table.exists()


def _refused(feed: Feed, code: str, *, what: str = "") -> str:
    """A run exits 4 with the code, says what to do, and changes nothing; returns its message."""
    before = _all_files(feed.folder)
    answer = feed.cli("run", NAME)
    assert (answer.code, answer.error["code"]) == (4, code)
    assert what in answer.error["message"]
    assert _all_files(feed.folder) == before, "nothing was read, written or repaired"
    return str(answer.error["message"])


class TestCorrupt:
    @pytest.mark.parametrize("how", ENTRY)
    def test_an_entry_that_does_not_read_stops_the_run(self, loaded: Feed, how: str) -> None:
        newest = min((loaded.state / "entries").iterdir())
        newest.write_bytes(ENTRY[how](newest.read_bytes()))
        message = _refused(loaded, "corrupt_state", what="entry 2 of flow")
        assert "estore" in message, "it says what to do"

    @pytest.mark.parametrize("command", ["plan", "list", "state show", "state history"])
    def test_every_command_that_reads_it_says_so(self, loaded: Feed, command: str) -> None:
        newest = min((loaded.state / "entries").iterdir())
        newest.write_bytes(b"garbage")
        answer = loaded.cli(*command.split(), NAME)
        assert (answer.code, answer.error["code"]) == (4, "corrupt_state")

    def test_an_older_entry_is_never_taken_in_its_place(self, loaded: Feed) -> None:
        newest = min((loaded.state / "entries").iterdir())
        newest.write_bytes(b"garbage")
        _refused(loaded, "corrupt_state")
        newest.unlink()
        assert loaded.load().status == "recovered", "number 2 has its intent and its commit still"
        assert loaded.ids == [1, 2, 3]

    def test_a_strange_name_in_the_log_stops_the_run(self, loaded: Feed) -> None:
        (loaded.state / "entries" / "#swap#").write_bytes(b"")
        _refused(loaded, "corrupt_state", what="#swap#")

    @pytest.mark.parametrize("how", GARBAGE)
    def test_an_intent_that_does_not_read_stops_the_run(self, interrupted: Feed, how: str) -> None:
        intent = max((interrupted.state / "intents").iterdir())
        intent.write_bytes(GARBAGE[how](intent.read_bytes()))
        _refused(interrupted, "corrupt_state", what=intent.name)

    @pytest.mark.parametrize("content", [b"garbage", b"", b"H4sI", None])
    def test_an_unreadable_file_list_stops_recovery(self, interrupted: Feed, content: bytes | None) -> None:
        intent = interrupted.open_intent
        assert intent is not None
        assert intent.file_list is not None
        _spoil(interrupted.folder / "state" / intent.file_list, content)
        _refused(interrupted, "corrupt_state", what=intent.file_list)

    @pytest.mark.parametrize(
        "content", [b"garbage", b"", b"\xff", b"{}", b'{"columns": 1, "folders": []}', None]
    )
    def test_an_unreadable_pinned_schema_stops_the_run(self, loaded: Feed, content: bytes | None) -> None:
        (schema,) = (loaded.state / "schemas").iterdir()
        _spoil(schema, content)
        _refused(loaded, "corrupt_state", what=schema.name)


def _spoil(path: Path, content: bytes | None) -> None:
    path.unlink() if content is None else path.write_bytes(content)


class TestNewer:
    def test_an_entry_of_a_newer_version_stops_the_run_and_asks_for_an_upgrade(self, loaded: Feed) -> None:
        newest = min((loaded.state / "entries").iterdir())
        newest.write_bytes(_changed(newest.read_bytes(), schema_version=2, field_of_the_future=1))
        assert "pgrade" in _refused(loaded, "newer_state", what="2")
        assert loaded.cli("plan", NAME).error["code"] == "newer_state"

    def test_an_intent_of_a_newer_version_stops_the_run(self, interrupted: Feed) -> None:
        intent = max((interrupted.state / "intents").iterdir())
        intent.write_bytes(_changed(intent.read_bytes(), schema_version=2, field_of_the_future=1))
        _refused(interrupted, "newer_state")


class TestLost:
    def test_a_table_with_rows_but_no_state_stops_the_run(self, loaded: Feed) -> None:
        shutil.rmtree(loaded.state)
        _refused_to_write(loaded, "state_lost")

    def test_a_state_whose_table_is_gone_stops_the_run(self, loaded: Feed) -> None:
        shutil.rmtree(loaded.table)
        _refused_to_write(loaded, "table_missing")

    def test_a_table_older_than_the_state_stops_the_run(self, loaded: Feed) -> None:
        last = max((loaded.table / "_delta_log").glob("*.json"))
        last.unlink()
        _refused_to_write(loaded, "table_behind")

    def test_a_state_older_than_the_table_stops_the_run(self, loaded: Feed) -> None:
        """As after a restore of the state alone."""
        min((loaded.state / "entries").iterdir()).unlink()
        (loaded.state / "intents" / "0000000002.json").unlink()
        _refused_to_write(loaded, "foreign_tag")

    def test_a_reset_loads_everything_into_the_table_that_is_there(self, loaded: Feed) -> None:
        shutil.rmtree(loaded.state)
        loaded.decide("reset")
        loaded.load()
        assert loaded.ids == [1, 1, 2, 2, 3]
        assert loaded.entries[0].reason == "because"

    @pytest.mark.needs_spark
    def test_a_table_of_somebody_else_in_its_place_stops_the_first_run(self, feed: Feed) -> None:
        feed.engine.session().range(3).write.format("delta").save(str(feed.table))
        feed.put("a.ndjson", 1)
        _refused_to_write(feed, "state_lost")

    def test_a_project_with_a_copy_of_the_state_is_noticed(self, loaded: Feed, tmp_path: Path) -> None:
        """Two copies of one state load into one table: the second to write finds the number taken."""
        other = Feed(
            tmp_path / "other", loaded.engine, loaded.definition, {"lake": str(loaded.folder / "lake")}
        )
        shutil.copytree(loaded.folder / "state", other.folder / "state")
        shutil.rmtree(other.landing)
        shutil.copytree(loaded.landing, other.landing)
        other.load()
        _refused_to_write(loaded, "other_writer")
        assert loaded.ids == [1, 2, 3]

    @pytest.mark.parametrize("verb", ["adopt", "reset"])
    def test_an_unfinished_slices_number_is_settled(self, loaded: Feed, tmp_path: Path, verb: str) -> None:
        other = Feed(
            tmp_path / "other", loaded.engine, loaded.definition, {"lake": str(loaded.folder / "lake")}
        )
        shutil.copytree(loaded.folder / "state", other.folder / "state")
        shutil.copytree(loaded.landing, other.landing, dirs_exist_ok=True)
        loaded.put("d.ndjson", 4)
        _interrupt(loaded, Step.INTENT_PUT)
        other.load()
        accept = ("state", "accept", NAME, "--reason", "x", "--yes")
        for refused, code in ((("run", NAME), "other_writer"), (accept, "foreign_tag")):
            answer = loaded.cli(*refused)
            assert (answer.code, answer.error["code"]) == (4, code)
            assert [choice.split()[2] for choice in answer.error["choices"]] == ["adopt", "reset"]
        loaded.decide(verb)
        loaded.load()
        assert loaded.ids == ([1, 2, 3, 4] if verb == "adopt" else [1, 1, 2, 2, 3, 3, 4])
        assert [entry.why for entry in loaded.entries][2:4] == ["abandon", verb]


_CHOICES = {
    "state_lost": ["adopt flow", "import flow FILE", "reset flow --replace", "reset flow"],
    "table_missing": ["reset flow"],
    "table_behind": ["adopt flow", "reset flow --replace"],
    "foreign_tag": ["adopt flow", "reset flow --replace"],
    "other_writer": ["adopt flow", "reset flow --replace"],
}
"""What an operator may choose, most advisable first."""


def _refused_to_write(feed: Feed, code: str) -> None:
    """As :func:`_refused`, with the commands to choose from; a list of files may have been kept."""
    rows, entries = feed.commits if feed.table.exists() else [], feed.entries
    answer = feed.cli("run", NAME)
    assert (answer.code, answer.error["code"]) == (4, code)
    assert answer.error["choices"] == [
        f"strandline state {choice} --reason TEXT" for choice in _CHOICES[code]
    ]
    assert feed.entries == entries
    assert (feed.commits if feed.table.exists() else []) == rows
    assert feed.open_intent is None


class TestDefinition:
    @pytest.mark.parametrize(
        "change",
        [
            {"source": {"path": "./elsewhere"}},
            {"source": {"extensions": [".ndjson", ".json"]}},
            {"watermark": {"scope": "partition"}},
            {"watermark": {"tracking": "set"}},
            {"watermark": {"partition_filter": {"prefix_template": "date=%Y-%m-%d", "lookback": 3}}},
            {"target": {"table": "bronze/other"}},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_a_changed_definition_stops_plan_and_run(self, loaded: Feed, change: dict[str, Any]) -> None:
        loaded.define(**change)
        _refused(loaded, "definition_changed")
        assert loaded.cli("plan", NAME).error["code"] == "definition_changed"

    def test_the_error_names_what_changed_and_what_that_means(self, loaded: Feed) -> None:
        loaded.define(source={"path": "./elsewhere"}, target={"table": "bronze/other"})
        message = _refused(loaded, "definition_changed")
        assert "source.path was ./landing, is ./elsewhere (files in the new location whose paths" in message
        assert "target.table was bronze/flow, is bronze/other (the rows loaded so far" in message
        assert "extensions was" not in message

    def test_a_watermark_of_another_scope_cannot_be_accepted(self, loaded: Feed) -> None:
        """It would stand for no partition at all, and everything would be loaded again."""
        loaded.define(watermark={"scope": "partition"})
        offered = loaded.cli("run", NAME).error["choices"]
        assert offered == [
            f"strandline state reset {NAME} {more}--reason TEXT" for more in ("", "--replace ")
        ]
        answer = loaded.cli("state", "accept", NAME, "--reason", "x", "--yes")
        assert (answer.code, len(loaded.entries)) == (4, 2)
        assert "the watermark has another form" in answer.error["message"]
        assert answer.error["choices"] == offered

    def test_accept_goes_on_from_the_watermark(self, loaded: Feed) -> None:
        loaded.landing.rename(loaded.folder / "moved")
        loaded.define(source={"path": "./moved"})
        _refused(loaded, "definition_changed")
        loaded.decide("accept")
        loaded.load()
        assert loaded.ids == [1, 2, 3]
        assert [entry.why for entry in loaded.entries] == ["run", "run", "accept", "run"]
        assert loaded.entries[2].reason == "because"

    def test_what_is_no_part_of_it_may_change(self, loaded: Feed) -> None:
        loaded.define(
            description="other words",
            tags={"a": "b"},
            watermark={"checkpoint": {"interval_files": 7}, "max_slices": 5, "settle": "PT0S"},
        )
        loaded.load()
        assert loaded.ids == [1, 2, 3]

    @pytest.mark.needs_spark
    def test_an_unfinished_slice_keeps_its_own_definition_or_stops(self, make_feed: MakeFeed) -> None:
        feed = make_feed(sql="select id, 'old' as query from input")
        feed.put("a.ndjson", 1)
        _interrupt(feed, Step.INTENT_PUT)
        feed.define(sql="select id, 'new' as query from input")
        answer = feed.cli("run", NAME)
        assert (answer.code, answer.error["code"]) == (4, "intent_changed")
        assert "sql" in answer.error["message"]
        feed.define(sql="select id, 'old' as query from input")
        assert (feed.load().status, feed.rows("id", "query")) == ("recovered", [(1, "old")])

    def test_a_partition_column_that_is_not_there_is_mended_and_run_again(self, make_feed: MakeFeed) -> None:
        feed = make_feed(target={"partition_by": ["no_such_column"]})
        feed.put("a.ndjson", 1)
        error = feed.fail()
        assert "no_such_column" in error.message
        assert _untouched(feed)
        feed.define(target={"partition_by": []})
        feed.load()
        assert feed.ids == [1]
