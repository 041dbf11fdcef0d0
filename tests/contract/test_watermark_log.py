"""One contract of the watermark log, held by every backend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from partitions.errors import Conflict, CorruptWatermark, InvalidWatermarkValue, NeedsDecision, ProviderError
from resources.places import Place
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, Holder, Intent, new_id, utc_now
from resources.watermarks.log import WatermarkLog
from resources.watermarks.manager import WatermarkManager
from resources.watermarks.provider import LogProvider
from tests.support.feed import CHECKOUT
from tests.support.http import serving
from tests.support.proxy import CountingProxy
from tests.support.seaweed import Seaweed

FLOW = "flow"

Write = Callable[[str, bytes], None]


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place of each kind."""
    if request.param == "folder":
        yield Place(str(tmp_path / "state"))
        return
    with request.getfixturevalue("seaweed").bucket() as bucket:
        yield bucket.child("state")


@pytest.fixture
def log(place: Place) -> WatermarkLog:
    return WatermarkLog(open_blobs(place))


def entry(number: int, watermark: str = "{}") -> Entry:
    return Entry(
        id=new_id(),
        number=number,
        watermark=watermark,
        why="run",
        time=utc_now(),
        fingerprint="f",
        kind="path",
        app_id="a",
    )


def intent(number: int, path: str = "a") -> Intent:
    holder = Holder(host="h", pid=1, started=1)
    return Intent(
        id=new_id(), number=number, dataflow=FLOW, kind="path", app_id="a", before="{}", watermark=json.dumps({"path": path}),
        definition={}, fingerprint="f", pinned="p", file_list="l", holder=holder, time=utc_now(),
    )  # fmt: skip


def test_a_dataflow_without_entries_has_no_newest(log: WatermarkLog) -> None:
    assert log.newest(FLOW) is None
    assert list(log.history(FLOW)) == []


def test_the_newest_is_the_highest_number_and_the_history_runs_downwards(log: WatermarkLog) -> None:
    kept = [log.append(FLOW, entry(number), expected=number - 1) for number in range(1, 13)]
    assert log.newest(FLOW) == kept[-1]
    assert list(log.history(FLOW)) == kept[::-1]
    assert list(log.history(FLOW, 3)) == kept[:-4:-1]


def test_a_number_that_is_taken_is_a_conflict_and_the_first_writer_s_entry_stands(log: WatermarkLog) -> None:
    first = log.append(FLOW, entry(1, '{"a": 1}'), expected=0)
    with pytest.raises(Conflict, match="number 1 was taken"):
        log.append(FLOW, entry(1, '{"a": 2}'), expected=0)
    assert log.newest(FLOW) == first


def test_a_put_that_is_tried_again_after_its_answer_was_lost_is_no_conflict(log: WatermarkLog) -> None:
    one = entry(1)
    log.append(FLOW, one, expected=0)
    assert log.append(FLOW, one, expected=0) == one


def test_dataflows_do_not_see_each_other_s_entries_even_where_names_are_prefixes(log: WatermarkLog) -> None:
    log.append("flow", entry(1), expected=0)
    log.append("flow_b", entry(1), expected=0)
    log.append("flow_b", entry(2), expected=1)
    assert [found.number for found in (log.newest("flow"), log.newest("flow_b")) if found] == [1, 2]


def test_the_first_intent_of_a_number_stands(log: WatermarkLog) -> None:
    first, second = intent(1, "a"), intent(1, "b")
    assert log.put_intent(first) == first
    assert log.put_intent(second) == first
    assert log.intent(FLOW, 1) == first
    assert log.intent(FLOW, 2) is None


def test_eight_writers_of_fifty_entries_each_leave_400_without_a_gap_and_the_losers_hear_of_it(
    place: Place,
) -> None:
    def write(_: int) -> int:
        log, conflicts, mine = WatermarkLog(open_blobs(place)), 0, 0
        while mine < 50:
            newest = log.newest(FLOW)
            number = newest.number if newest else 0
            try:
                log.append(FLOW, entry(number + 1), expected=number)
                mine += 1
            except Conflict:
                conflicts += 1
        return conflicts

    with ThreadPoolExecutor(8) as pool:
        conflicts = sum(pool.map(write, range(8)))
    history = list(WatermarkLog(open_blobs(place)).history(FLOW))
    assert [found.number for found in history] == list(range(400, 0, -1))
    assert len({found.id for found in history}) == 400
    assert conflicts > 0


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b'{"schema_version": 1}', b"\xff\xfe"])
def test_an_entry_that_does_not_read_stops_and_is_never_taken_for_an_empty_state(
    place: Place, log: WatermarkLog, garbage: bytes
) -> None:
    log.append(FLOW, entry(1), expected=0)
    open_blobs(place).put(f"{FLOW}/entries/9999999997-0000000002.json", garbage)
    with pytest.raises(CorruptWatermark, match="entry 2 of flow"):
        log.newest(FLOW)


def test_an_entry_of_a_newer_version_stops_and_says_to_upgrade(place: Place, log: WatermarkLog) -> None:
    raw = json.loads(entry(1).to_bytes()) | {"schema_version": 99, "what_we_cannot_know": 1}
    open_blobs(place).put(f"{FLOW}/entries/9999999998-0000000001.json", json.dumps(raw).encode())
    with pytest.raises(NeedsDecision, match="newer Strandline") as caught:
        log.newest(FLOW)
    assert (caught.value.code, caught.value.exit_code) == ("newer_state", 4)


def test_a_provider_appends_after_what_it_last_returned_so_no_update_is_lost(log: WatermarkLog) -> None:
    one, two = WatermarkManager(LogProvider(log)), WatermarkManager(LogProvider(log))
    assert one.get_watermark(FLOW) is two.get_watermark(FLOW) is None
    one.save_watermark(FLOW, {"id": 1}, job_id="job", dataflow_run_id="run")
    with pytest.raises(Conflict):
        two.save_watermark(FLOW, {"id": 2})
    assert two.get_watermark(FLOW) == {"id": 1}
    two.save_watermark(FLOW, {"id": 2})
    assert one.get_watermark(FLOW) == {"id": 2}
    newest = log.newest(FLOW)
    assert newest is not None
    assert [(found.job_id, found.run_id) for found in log.history(FLOW)] == [(None, None), ("job", "run")]


def test_a_value_that_cannot_be_stored_is_refused_before_anything_is_written(log: WatermarkLog) -> None:
    with pytest.raises(InvalidWatermarkValue):
        WatermarkManager(LogProvider(log)).save_watermark(FLOW, {"bad": object()})
    assert log.newest(FLOW) is None


@pytest.mark.s3
def test_on_s3_the_newest_costs_two_requests_however_long_the_log_is(seaweed: Seaweed) -> None:
    with ExitStack() as stack:
        bucket = stack.enter_context(seaweed.bucket())
        proxy = stack.enter_context(serving(CountingProxy(seaweed.port)))
        log = WatermarkLog(open_blobs(bucket))
        for number in range(1, 1201):
            open_blobs(bucket).put(
                f"{FLOW}/entries/{9_999_999_999 - number:010d}-{number:010d}.json", entry(number).to_bytes()
            )
        counted = WatermarkLog(open_blobs(replace(bucket, connection=seaweed.through(proxy.port))))
        found = counted.newest(FLOW)
        assert found is not None
        assert found.number == 1200
        assert len(proxy.record.lists) == 1
        assert log.newest(FLOW) == found


@pytest.mark.s3
def test_a_store_that_cannot_be_reached_is_an_error_and_never_an_empty_state(seaweed: Seaweed) -> None:
    with seaweed.bucket() as bucket:
        gone = replace(bucket, connection=seaweed.through(1))
        with pytest.raises(ProviderError):
            WatermarkLog(open_blobs(gone)).newest(FLOW)


def test_a_process_killed_while_it_appends_to_a_folder_leaves_whole_entries_only(tmp_path: Path) -> None:
    script = (
        "import sys; from tests.contract.test_watermark_log import *\n"
        "log = WatermarkLog(open_blobs(Place(sys.argv[1])))\n"
        "while True:\n"
        "    newest = log.newest(FLOW)\n"
        "    number = newest.number if newest else 0\n"
        "    log.append(FLOW, entry(number + 1, json.dumps({'pad': 'x' * 4000})), expected=number)\n"
        "    print(number + 1, flush=True)\n"
    )
    log = WatermarkLog(open_blobs(Place(str(tmp_path))))
    for round_ in range(1, 6):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], cwd=CHECKOUT, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(7 * round_)][-1]
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        numbers = [found.number for found in log.history(FLOW, 10_000)]
        assert numbers == list(range(len(numbers), 0, -1))
        assert numbers[0] >= said  # what was acknowledged is there
