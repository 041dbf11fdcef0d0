"""What every backend of the watermark log promises (docs/explanation/watermarks.md, The log)."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from threading import Barrier

import pytest

from partitions.errors import ConfigurationError, Conflict, CorruptWatermark, NeedsDecision, ProviderError
from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.watermarks.blobs import open_blobs
from resources.watermarks.lists import INGESTED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.manager import WatermarkManager
from resources.watermarks.provider import LogProvider
from tests.support import writers
from tests.support.gates import until
from tests.support.proxy import CountingProxy
from tests.support.seaweed import Seaweed
from tests.support.trees import put_objects
from tests.support.writers import entry, intent

FLOW = "flow"


@pytest.fixture
def log(place: Place | Database) -> WatermarkLog:
    return WatermarkLog(open_blobs(place))


def _numbers(log: WatermarkLog) -> list[int]:
    return [one.number for one in log.history(FLOW)]


class TestEntries:
    def test_a_log_that_does_not_exist_has_no_entry(self, log: WatermarkLog) -> None:
        assert (log.newest(FLOW), list(log.history(FLOW)), log.intent(FLOW, 1)) == (None, [], None)

    def test_the_newest_entry_is_the_last_append_however_many_there_are(self, log: WatermarkLog) -> None:
        for number in range(1, 13):
            written = log.append(FLOW, entry(number, number), expected=number - 1)
            assert log.newest(FLOW) == written
        assert _numbers(log) == list(range(12, 0, -1))
        assert [one.number for one in log.history(FLOW, 3)] == [12, 11, 10]

    def test_a_number_is_taken_once_and_the_loser_gets_a_conflict(self, log: WatermarkLog) -> None:
        first = log.append(FLOW, entry(1, 1), expected=0)
        with pytest.raises(Conflict, match="number 1"):
            log.append(FLOW, entry(1, 2), expected=0)
        assert log.newest(FLOW) == first

    def test_an_entry_must_be_the_next_one(self, log: WatermarkLog) -> None:
        with pytest.raises(ProviderError):
            log.append(FLOW, entry(3), expected=1)
        assert log.newest(FLOW) is None

    def test_appending_one_entry_twice_is_appending_it_once(self, log: WatermarkLog) -> None:
        """A put whose answer was lost is tried again, by the client's library or by a run that recovers."""
        ours = entry(1)
        assert log.append(FLOW, ours, expected=0) == log.append(FLOW, ours, expected=0) == ours
        assert _numbers(log) == [1]

    def test_dataflows_do_not_see_each_other(self, log: WatermarkLog) -> None:
        names = ["a", "ab", "a b", "a%20b", "größe", "entries"]
        for value, name in enumerate(names):
            log.append(name, entry(1, value), expected=0)
        found = [log.newest(name) for name in names]
        assert [one and one.state()["value"] for one in found] == list(range(len(names)))
        assert log.newest("b") is None

    def test_a_large_entry_comes_back_whole(self, log: WatermarkLog) -> None:
        text = json.dumps(
            {"paths": {f"date={day}": "x" * 50 for day in range(20_000)}, "closed_before": None}
        )
        log.append(FLOW, entry(1).model_copy(update={"watermark": text}), expected=0)
        newest = log.newest(FLOW)
        assert newest is not None
        assert newest.watermark == text


class TestWriters:
    def test_eight_processes_have_one_winner_each(self, place: Place | Database, log: WatermarkLog) -> None:
        context, count, each = writers.processes(), 8, 50
        start, told = context.Barrier(count), context.SimpleQueue()
        started = [
            context.Process(target=writers.append_many, args=(place, FLOW, writer, each, start, told))
            for writer in range(count)
        ]
        for process in started:
            process.start()
        answers = [told.get() for _ in started]
        for process in started:
            process.join(60)
        assert [process.exitcode for process in started] == [0] * count
        entries = list(log.history(FLOW))
        assert [one.number for one in entries] == list(range(count * each, 0, -1)), "no gap, none twice"
        assert {one.id for one in entries} == {won for ids, _ in answers for won in ids}
        assert sum(len(ids) for ids, _ in answers) == count * each
        assert sum(lost for _, lost in answers) > 0, "they did meet"

    def test_one_of_many_threads_at_a_number_wins_and_others_conflict(self, log: WatermarkLog) -> None:
        start = Barrier(8)

        def append(writer: int) -> str:
            start.wait(30)
            try:
                return log.append(FLOW, entry(1, writer), expected=0).id
            except Conflict:
                return "conflict"

        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(append, range(8)))
        newest = log.newest(FLOW)
        assert newest is not None
        assert sorted(said) == sorted([newest.id] + ["conflict"] * 7)

    def test_a_provider_never_overwrites_what_was_saved_since(self, place: Place | Database) -> None:
        one, two = (WatermarkManager(LogProvider(WatermarkLog(open_blobs(place)))) for _ in range(2))
        one.save_watermark(FLOW, {"id": 1})
        assert two.get_watermark(FLOW) == {"id": 1}
        one.save_watermark(FLOW, {"id": 2})
        with pytest.raises(Conflict):
            two.save_watermark(FLOW, {"id": 3})
        assert one.get_watermark(FLOW) == {"id": 2}

    def test_the_manager_saves_no_lower_value_and_drops_no_column(self, place: Place | Database) -> None:
        manager = WatermarkManager(LogProvider(WatermarkLog(open_blobs(place))))
        manager.save_watermark(FLOW, {"id": 5, "day": date(2026, 1, 2)})
        for lower in ({"id": 4, "day": date(2026, 1, 3)}, {"id": 6}, {"id": 6, "day": None}):
            with pytest.raises(NeedsDecision) as refused:
                manager.save_watermark(FLOW, lower)
            assert refused.value.code == "would_fall"
        manager.save_watermark(FLOW, {"id": 5, "day": date(2026, 1, 3)})
        assert manager.get_watermark(FLOW) == {"id": 5, "day": date(2026, 1, 3)}

    def test_a_saved_watermark_says_that_it_is_no_commit_of_rows(self, place: Place | Database) -> None:
        log, warnings = WatermarkLog(open_blobs(place)), list[str]()
        manager = WatermarkManager(LogProvider(log), warnings.append)
        for number in (1, 2):
            manager.save_watermark(FLOW, {"id": number})
        assert len(warnings) == 1
        assert warnings[0].startswith(
            f"watermark {FLOW}: saved apart from any rows, so it is not one commit with them."
        )
        reasons = [entry.reason for entry in log.history(FLOW)]
        assert reasons == ["saved by save_watermark, apart from any rows"] * 2

    def test_a_manager_leaves_other_watermarks(self, place: Place | Database, log: WatermarkLog) -> None:
        first = log.append(FLOW, entry(1), expected=0)
        manager = WatermarkManager(LogProvider(log))
        with pytest.raises(
            ConfigurationError, match="found one of kind path, which the dataflow's runs save"
        ):
            manager.save_watermark(FLOW, manager.get_watermark(FLOW) or {})
        assert log.newest(FLOW) == first

    def test_a_killed_writer_leaves_no_half_entry(self, place: Place | Database, log: WatermarkLog) -> None:
        def goes_on(number: int) -> bool:
            newest = log.newest(FLOW)
            return newest is not None and newest.number >= number

        for _ in range(8):
            length = len(_numbers(log))
            process = writers.processes().Process(target=writers.append_until_killed, args=(place, FLOW))
            process.start()
            until(partial(goes_on, length + 5))
            process.kill()
            process.join(60)
            numbers = _numbers(log)
            assert numbers == list(range(len(numbers), 0, -1))


class TestIntents:
    def test_an_intent_is_never_overwritten(self, log: WatermarkLog) -> None:
        first, second = intent(), intent()
        assert log.put_intent(first) == first
        assert log.put_intent(second) == first
        assert log.intent(FLOW, 1) == first

    def test_putting_one_intent_twice_is_putting_it_once(self, log: WatermarkLog) -> None:
        ours = intent()
        assert log.put_intent(ours) == log.put_intent(ours) == ours

    def test_each_number_has_its_own(self, log: WatermarkLog) -> None:
        one, two = log.put_intent(intent(1)), log.put_intent(intent(2))
        assert (log.intent(FLOW, 1), log.intent(FLOW, 2), log.intent(FLOW, 3)) == (one, two, None)

    def test_lists_and_schemas_come_back_as_they_were(self, log: WatermarkLog) -> None:
        rows = [["größe/%20 [x]/\U0001f600.ndjson", 7, "1795275042794747867", 1, None]]
        stored = StoredList(INGESTED_FILES, rows, {"any": 1})
        assert log.get_list(log.put_list(FLOW, "0000000001-x", stored), INGESTED_FILES) == stored
        assert log.get_schema(log.put_schema(FLOW, "id long, größe string")) == "id long, größe string"
        assert log.put_schema(FLOW, "id long") == log.put_schema(FLOW, "id long")


class TestUnreadable:
    @pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b"\xff"])
    def test_a_newest_entry_that_does_not_read_is_corrupt_never_absent(
        self, place: Place | Database, log: WatermarkLog, content: bytes
    ) -> None:
        log.append(FLOW, entry(1), expected=0)
        log.append(FLOW, entry(2), expected=1)
        open_blobs(place).put(f"{FLOW}/entries/9999999997-0000000002.json", content)
        for read in (log.newest, lambda flow: list(log.history(flow))):
            with pytest.raises(CorruptWatermark, match="entry 2 of flow"):
                read(FLOW)

    def test_a_newer_record_is_never_guessed_at(self, place: Place | Database, log: WatermarkLog) -> None:
        record = json.loads(entry(1).to_bytes()) | {"schema_version": 2, "unheard_of": True}
        open_blobs(place).put(f"{FLOW}/entries/9999999998-0000000001.json", json.dumps(record).encode())
        with pytest.raises(NeedsDecision) as caught:
            log.newest(FLOW)
        assert (caught.value.code, caught.value.exit_code) == ("newer_state", 4)

    def test_a_conflict_with_a_bad_entry_is_told(self, place: Place | Database, log: WatermarkLog) -> None:
        open_blobs(place).put(f"{FLOW}/entries/9999999998-0000000001.json", b"half an ent")
        with pytest.raises(CorruptWatermark):
            log.append(FLOW, entry(1), expected=0)


class TestLocalCrashes:
    """kill -9 between any two of the calls that an append makes leaves a whole entry, or none."""

    @pytest.fixture
    def place(self, tmp_path_factory: pytest.TempPathFactory) -> Place:
        return Place(str(tmp_path_factory.mktemp("local") / "state"))

    @pytest.mark.parametrize(
        ("before", "count", "there"),
        [("fsync", 1, False), ("link", 1, False), ("unlink", 1, True), ("fsync", 2, True)],
        ids=["temporary file not synced", "not linked", "linked", "folder not synced"],
    )
    def test_a_writer_killed_within_an_append(
        self, place: Place, log: WatermarkLog, before: str, count: int, there: bool
    ) -> None:
        log.append(FLOW, entry(1), expected=0)
        process = writers.processes().Process(
            target=writers.append_and_die, args=(place, FLOW, 2, before, count)
        )
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        assert _numbers(log) == ([2, 1] if there else [1])
        number = 3 if there else 2
        log.append(FLOW, entry(number), expected=number - 1)
        assert _numbers(log)[0] == number


@pytest.mark.s3
class TestRequests:
    """What it costs on an object store, and what becomes of an answer that is lost."""

    @pytest.fixture
    def place(self, seaweed: Seaweed, bucket: Place, proxy: CountingProxy) -> Place:
        """A store behind the proxy."""
        return Place(bucket.url, seaweed.through(proxy.port)).child("state")

    @pytest.mark.parametrize("entries", [0, 1, 1500])
    def test_the_newest_entry_costs_two_requests_however_long_the_history_is(
        self, place: Place, bucket: Place, proxy: CountingProxy, log: WatermarkLog, entries: int
    ) -> None:
        names = [f"{9_999_999_999 - number:010d}-{number:010d}.json" for number in range(1, entries + 1)]
        put_objects(bucket.child(f"state/{FLOW}/entries"), names, b"{}")
        if entries:
            log.append(FLOW, entry(entries + 1), expected=entries)
        proxy.record.requests.clear()
        newest = log.newest(FLOW)
        assert (newest.number if newest else 0) == (entries + 1 if entries else 0)
        assert len(proxy.record.requests) <= 2

    def test_an_append_is_one_put_and_two_looks(self, proxy: CountingProxy, log: WatermarkLog) -> None:
        log.append(FLOW, entry(1), expected=0)
        assert [method for method, _ in proxy.record.requests if method != "HEAD"] == ["PUT", "GET", "GET"]
        assert [conditional for _, conditional in proxy.record.puts] == [True]

    def test_an_empty_look_of_an_append_is_confirmed_by_a_head(
        self, proxy: CountingProxy, log: WatermarkLog
    ) -> None:
        for number in (1, 2):
            proxy.record.requests.clear()
            log.append(FLOW, entry(number), expected=number - 1)
            assert [method for method, _ in proxy.record.requests] == ["PUT", "GET", "HEAD", "GET"]

    def test_an_append_with_a_lost_answer_is_ours(self, proxy: CountingProxy, log: WatermarkLog) -> None:
        proxy.record.lose = 1
        ours = entry(1)
        assert log.append(FLOW, ours, expected=0) == ours
        assert log.newest(FLOW) == ours

    def test_an_intent_with_a_lost_answer_is_ours(self, proxy: CountingProxy, log: WatermarkLog) -> None:
        proxy.record.lose = 1
        ours = intent()
        assert log.put_intent(ours) == ours
        assert log.intent(FLOW, 1) == ours

    def test_an_append_whose_every_answer_is_lost_is_an_error_and_is_whole(
        self, bucket: Place, proxy: CountingProxy, log: WatermarkLog
    ) -> None:
        proxy.record.lose = 100
        ours = entry(1)
        with pytest.raises(ProviderError):
            log.append(FLOW, ours, expected=0)
        assert WatermarkLog(open_blobs(bucket.child("state"))).newest(FLOW) == ours
        proxy.record.lose = 0
        assert log.append(FLOW, ours, expected=0) == ours, "trying again finds it"

    def test_an_append_that_lost_its_answer_and_the_race_is_a_conflict(
        self, bucket: Place, proxy: CountingProxy, log: WatermarkLog
    ) -> None:
        theirs = WatermarkLog(open_blobs(bucket.child("state"))).append(FLOW, entry(1), expected=0)
        proxy.record.lose = 1
        with pytest.raises(Conflict):
            log.append(FLOW, entry(1), expected=0)
        assert log.newest(FLOW) == theirs

    def test_a_store_that_does_not_answer_is_an_error_never_an_empty_log(self, seaweed: Seaweed) -> None:
        closed = WatermarkLog(open_blobs(Place("s3://bucket/state", seaweed.through(1))))
        for ask in (
            lambda: closed.newest(FLOW),
            lambda: closed.intent(FLOW, 1),
            lambda: closed.append(FLOW, entry(1), expected=0),
        ):
            with pytest.raises(ProviderError) as caught:
                ask()
            assert caught.value.transient

    def test_wrong_credentials_and_buckets_are_no_empty_log(self, seaweed: Seaweed, bucket: Place) -> None:
        connection = seaweed.connection
        wrong = type(connection)(
            connection.endpoint, connection.region, connection.access_key_id, "wrong-secret-value"
        )
        for place in (Place("s3://no-such-bucket/state", connection), Place(bucket.url, wrong)):
            with pytest.raises(ProviderError) as caught:
                WatermarkLog(open_blobs(place)).newest(FLOW)
            assert "wrong-secret-value" not in caught.value.message
