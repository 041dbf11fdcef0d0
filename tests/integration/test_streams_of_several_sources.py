"""Streams of Spark's engine over several sources: what unions and joins keep, and each row once whatever dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from resources.outcome import Outcome
from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment
from tests.support.feed import CHECKOUT, NAME, NOW, Feed, call_of

_START = datetime(2026, 1, 1, tzinfo=UTC)
_DEDUPLICATED = {"type": "drop_duplicates_within_watermark", "keys": ["id"]}
Rows = Mapping[int, int]
"""Ids of rows to their event times, in seconds."""


class Sources(Feed):
    """A union or a join of the folders ``left`` and ``right``, of which a batch has a file of each."""

    @classmethod
    def of(
        cls, folder: Path, engine: SparkEngine, *operators: Mapping[str, Any], **watermark: Any
    ) -> Sources:
        files = {"type": "files", "format": "ndjson", "schema": "id long, ts timestamp"}
        stream = {
            "type": "stream",
            "engine": "structured_streaming",
            "event_time": "ts",
            "timeout": "PT10S",
            "checkpoint": {"interval_files": 1},
        }
        made = cls(
            folder,
            engine,
            {
                "watermark": stream | watermark,
                "operators": list(operators),
                "target": {"origin_columns": False},
            },
        )
        left, right = ({"name": name, "path": f"./landing/{name}", **files} for name in ("left", "right"))
        return made.define(source=[left, right | {"timeout": "15 seconds"}])  # type: ignore[return-value]

    def add(self, name: str, rows: Rows) -> None:
        """Put a file; Spark reads files by their modification time."""
        number = sum(len(files) for _, _, files in os.walk(self.landing))
        given = [{"id": id_, "ts": (_START + timedelta(seconds=at)).isoformat()} for id_, at in rows.items()]
        path = self.landing / self.put(f"{name}/{number}.ndjson", *given)
        os.utime(path, (1_700_000_000 + number,) * 2)

    @property
    def streams(self) -> Path:
        return self.folder / "lake/_streams/bronze" / self.name / self.name

    def reads(self, steps: Sequence[tuple[Rows, Rows]]) -> Outcome:
        for left, right in steps:
            self.add("left", left)
            self.add("right", right)
        return self.load()


def _batches(outcome: Outcome) -> list[tuple[int, int, int]]:
    """Of each batch: its rows, the watermark that it ran with in seconds, and the rows that this has dropped."""
    return [
        (each.rows_in, _seconds(each.watermark), each.dropped_by_watermark) for each in outcome.batches or ()
    ]


def _seconds(at: datetime | None) -> int:
    return max(0, int((at - _START) / timedelta(seconds=1))) if at else 0


@pytest.mark.each_case
@pytest.mark.parametrize(
    ("policy", "ids", "batches"),
    [
        ("min", [1, 2, 3, 4, 5, 6, 7, 8, 9], [(3, 0, 0), (2, 5, 0), (2, 25, 0), (2, 45, 0)]),
        pytest.param(
            "max",
            [1, 2, 3, 4, 5, 6, 8],
            [(3, 0, 0), (2, 490, 0), (2, 500, 1), (2, 510, 1)],
            marks=pytest.mark.full,
        ),
    ],
)
@pytest.mark.full
def test_a_union_under_min_keeps_the_rows_of_a_slow_source_and_under_max_drops_them(
    policy: str,
    ids: list[int],
    batches: list[tuple[int, int, int]],
    tmp_path: Path,
    spark_engine: SparkEngine,
) -> None:
    union = Sources.of(tmp_path, spark_engine, {"type": "union"}, _DEDUPLICATED, policy=policy)
    outcome = union.reads(
        [
            ({1: 10, 2: 500}, {3: 20}),
            ({4: 510}, {5: 40}),  # judged by the watermark of the batch before, which had none
            ({6: 520}, {7: 60}),
            ({8: 530}, {9: 70}),
        ]
    )
    assert union.ids == ids
    # after the first batch 500 - 10 of the one, 20 - 15 of the other
    assert [each for each in _batches(outcome) if each[0]] == batches
    assert _seconds(union.watermark["global"]) == (55 if policy == "min" else 520)
    # a run begins without the watermarks of the sources, of which one has nothing new
    union.add("left", {10: 2000})
    union.load()
    assert _seconds(union.watermark["global"]) == (55 if policy == "min" else 1990)


@pytest.mark.full
def test_a_bad_file_of_one_source_holds_back_all(tmp_path: Path, spark_engine: SparkEngine) -> None:
    union = Sources.of(tmp_path, spark_engine, {"type": "union"}).define(unknown_fields="ignore")
    union.put_text("left/0.ndjson", '{"id": 1, "ts": "2026-01-01T00:00:00Z", "more": 1}\n')
    union.put_text("right/0.ndjson", '{"id": 2, "ts": "09:15"}\n')
    error = union.fail()
    assert error.code == "bad_record"
    assert "source right: file 0.ndjson, line 1: field ts" in error.message
    assert union.ids == []
    union.put_text("right/0.ndjson", '{"id": 2, "ts": "2026-01-01T09:15:00Z"}\n')
    union.load()
    assert union.ids == [1, 2]


@pytest.mark.full
def test_a_join_drops_late_rows_and_tells_of_unmatched(tmp_path: Path, spark_engine: SparkEngine) -> None:
    join = {"type": "join", "how": "left", "on": ["id"], "within": "PT20S"}
    joined = Sources.of(tmp_path, spark_engine, join, _DEDUPLICATED)
    outcome = joined.reads(
        [
            ({1: 10, 2: 20}, {1: 12, 3: 30}),  # 1 finds 1; 2 finds none, and nothing asks for 3
            ({9: 200}, {9: 221}),  # too far apart
            ({7: 400}, {7: 400}),
            ({8: 15, 6: 500}, {8: 15}),  # both 8 are late, below 185; 6 may find one yet
        ]
    )
    found = [
        (id_, _seconds(left.replace(tzinfo=UTC)), right and _seconds(right.replace(tzinfo=UTC)))
        for id_, left, right in joined.rows("id", "ts", "right_ts")
    ]
    assert found == [(1, 10, 12), (2, 20, None), (7, 400, 400), (9, 200, None)]
    assert sum(dropped for _, _, dropped in _batches(outcome)) == 2
    told = outcome.as_json()["stream"]["batches"][-1]["operators"]
    assert [each["name"] for each in told] == ["dedupeWithinWatermark", "symmetricHashJoin"]


@pytest.mark.full
def test_a_kill_before_the_checkpoint_leaves_rows_once(tmp_path: Path, spark_engine: SparkEngine) -> None:
    union = Sources.of(tmp_path, spark_engine, {"type": "union"}, _DEDUPLICATED)
    for number in range(6):
        union.add("left", {2 * number: 10 * number})
        union.add("right", {2 * number + 1: 10 * number})
    number = _kill_between_sink_and_checkpoint(union)
    outcome = union.load()
    assert union.ids == list(range(12))
    assert len(list((union.streams / "first/outbox" / f"{number:010d}").glob("*/_SUCCESS"))) == 2
    assert outcome.batches is not None


def _kill_between_sink_and_checkpoint(feed: Sources) -> int:
    """Kill a run with its Java at a moment when a batch is in the outbox whose end the checkpoint does not know; return the batch."""
    process = subprocess.Popen(
        call_of(feed.folder, "run", NAME),
        cwd=CHECKOUT,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None:
        if _between(feed) is not None:
            os.killpg(process.pid, signal.SIGSTOP)
            if (number := _between(feed)) is not None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return number
            os.killpg(process.pid, signal.SIGCONT)
        time.sleep(0.001)
    raise AssertionError("the run was over before it could be killed")


def _between(feed: Sources) -> int | None:
    """The number of a batch that the outbox has whole, and whose end the checkpoint does not know."""
    written = [int(file.parts[-3]) for file in feed.streams.glob("first/outbox/*/*/_SUCCESS")]
    ended = [
        int(file.name) for file in feed.streams.glob("first/checkpoint/commits/*") if file.name.isdigit()
    ]
    number = max(written, default=-1)
    return number if number > max(ended, default=-1) else None


@pytest.mark.each_case
@pytest.mark.parametrize(
    "how", ["put back from a copy, and grown", pytest.param("made again", marks=pytest.mark.full)]
)
@pytest.mark.full
def test_a_table_that_spark_did_not_read_stops(how: str, tmp_path: Path, spark_engine: SparkEngine) -> None:
    union = Sources.of(tmp_path, spark_engine, {"type": "union"}, policy="max")
    left, _ = union.definition["source"]
    union.define(source=[left, {"name": "right", "type": "table", "table": "bronze/right"}])
    table = tmp_path / "lake/bronze/right"

    def append(*ids: int) -> None:
        types = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
        for id_ in ids:
            write_deltalake(str(table), pa.table({"id": [id_], "ts": [_START]}, types), mode="append")

    append(1)
    shutil.copytree(table, tmp_path / "copy")
    append(2, 3)
    union.add("left", {4: 0})
    union.load()
    shutil.rmtree(table)
    if how != "made again":
        shutil.copytree(tmp_path / "copy", table)
    append(11, 12, 13)
    error = union.fail()
    assert (error.exit_code, error.code) == (4, "source_replaced")
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
    union.decide("reset", "--replace")
    union.load()
    assert union.ids == ([] if how == "made again" else [1]) + [4, 11, 12, 13]


@pytest.mark.full
def test_new_input_of_any_source_is_due_after_resets_too(tmp_path: Path, spark_engine: SparkEngine) -> None:
    page = (CHECKOUT / "docs/reference/streams-on-spark.md").read_text()
    shown = yaml.safe_load(
        next(block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "type: union" in block)
    )
    feed = Sources.of(tmp_path, spark_engine)
    feed.definition = shown | {"target": {"load": "append", "origin_columns": False}}
    feed.define(layer=None)
    table = tmp_path / "lake/bronze/phones"
    feed.landing.mkdir(exist_ok=True)

    def phone(*ids: int) -> None:
        rows = {
            "id": [str(id_) for id_ in ids],
            "device": ["p"] * len(ids),
            "ts": [_START + timedelta(seconds=id_) for id_ in ids],
        }
        types = pa.schema([("id", pa.string()), ("device", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
        write_deltalake(str(table), pa.table(rows, types), mode="append")

    def web(*ids: int) -> None:
        feed.put(
            f"web/{ids[0]}.ndjson",
            *(
                {"id": str(id_), "device": "w", "ts": (_START + timedelta(seconds=id_)).isoformat()}
                for id_ in ids
            ),
        )

    def due() -> bool:
        return bool(feed.platform.plan(feed.dataflow, NOW).slices)

    phone(1, 2)
    web(3, 4, 1)  # 1 is there already
    assert due()
    assert feed.load().rows == 4
    assert not due()
    phone(5)
    assert due()
    assert feed.load().rows == 1
    web(6)
    assert due()
    names = [
        finding["check"]
        for finding in feed.cli("doctor", "--no-spark").json["checks"]
        if finding["check"] == f"source {NAME}"
    ]
    assert len(names) == 2
    assert feed.cli("list").json[0]["waiting"]["new_input"] is True
    shutil.rmtree(feed.streams / "first/checkpoint")
    lost = feed.fail()
    assert (lost.exit_code, lost.code) == (4, "checkpoint_lost")
    feed.decide("reset", "--replace")
    assert feed.load().rows == 6
    assert [row[0] for row in feed.rows("id")] == ["1", "2", "3", "4", "5", "6"]
