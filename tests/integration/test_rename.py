"""`strandline rename`: another name, the same state and table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from partitions.errors import ConfigurationError
from platform_assets.cli import rename
from resources.connections.places import Place
from resources.outcome import Step
from resources.replay.under_way import REPLAYING
from resources.spark.engine import SparkEngine
from resources.tables import moving
from tests.integration.conftest import MakeFeed
from tests.integration.test_structured_streams import Stream
from tests.support.feed import NAME, Feed, dies_after

pytestmark = pytest.mark.without_jvm

NEW = "orders_of_shops"


def renamed(feed: Feed) -> Feed:
    """The dataflow under its new name, over the same files."""
    (feed.folder / f"landing_{NEW}").symlink_to(feed.landing)
    text = (feed.folder / "dataflows" / f"{NEW}.yaml").read_text()
    made = Feed(feed.folder, feed.engine, yaml.safe_load(text), feed.settings, feed.environment, NEW)
    (feed.folder / "dataflows" / f"{NEW}.yaml").write_text(text)
    return made


@contextmanager
def dies(call: str, moment: str) -> Iterator[None]:
    """The process dies before or after this step of a rename."""
    real = getattr(rename, call)

    def interrupted(*arguments: object) -> object:
        if moment == "after":
            real(*arguments)
        raise KeyboardInterrupt

    with patch.object(rename, call, interrupted):
        yield


@pytest.mark.needs_spark
def test_a_renamed_dataflow_goes_on_with_its_table_and_its_history(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put("2.ndjson", 2)
    feed.put_text("3.ndjson", '{"id": "no number"}\n')
    feed.load()
    feed.put("1.ndjson", 1)
    history = [(entry.id, entry.number, entry.watermark) for entry in feed.entries]
    assert feed.command("rename", NAME, NEW).json == {
        "from": NAME,
        "to": NEW,
        "number": len(history),
        "table": f"bronze/{NAME}",
        "readers": [],
    }
    after = renamed(feed)
    assert [(entry.id, entry.number, entry.watermark) for entry in after.entries] == history
    assert not feed.state.exists() or not any(path.is_file() for path in feed.state.rglob("*"))
    assert not (feed.folder / "dataflows" / f"{NAME}.yaml").exists()
    assert list(after.quarantined) == ["3.ndjson"]
    assert after.command("late", NEW).json["ingested"] == 1
    feed.put("4.ndjson", 4)
    after.load()
    assert after.ids == [1, 2, 4]
    assert after.table == feed.table


@pytest.mark.parametrize("call", ["copy_log", "with_table", "_write_atomically", "delete_log"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rename_that_dies_at_any_step_is_finished_by_the_same_command(
    feed: Feed, call: str, moment: str
) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    with dies(call, moment):
        assert feed.cli("rename", NAME, NEW).code != 0
    answer = feed.cli("rename", NAME, NEW)
    if (call, moment) == ("delete_log", "after"):
        assert answer.code in (0, 2)
    else:
        assert answer.code == 0, answer.err
    after = renamed(feed)
    feed.put("2.ndjson", 2)
    after.load()
    assert after.ids == [1, 2]


@pytest.mark.remedy("held", "run")
def test_a_slice_that_is_not_finished_a_taken_name_and_a_bad_one_are_refused(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.INTENT_PUT))
    assert "is not finished" in feed.cli("rename", NAME, NEW).error["message"]
    feed.load()
    feed.platform.log.put_object(NAME, REPLAYING, "x.json", b"{}")
    assert "expected no replay in progress" in feed.cli("rename", NAME, NEW).error["message"]
    feed.platform.log.delete(NAME, REPLAYING, ["x.json"])
    assert "small letters" in feed.cli("rename", NAME, "Bad-Name").error["message"]
    (feed.folder / "dataflows" / "taken.yaml").write_text(
        (feed.folder / "dataflows" / f"{NAME}.yaml").read_text()
    )
    assert "expected no dataflow taken yet" in feed.cli("rename", NAME, "taken").error["message"]
    assert feed.ids == [1]


@pytest.mark.needs_spark
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_a_table_moves_along_with_the_tables_beside_it(make_feed: MakeFeed, table_format: str) -> None:
    feed = make_feed(target={"format": table_format}, max_bad_records=5)
    feed.put("1.ndjson", 1)
    feed.put_text("2.ndjson", '{"id": 2}\n{"id": "no number"}\n')
    feed.load()
    feed.put("3.ndjson", 3)
    feed.load()
    reader = Feed(
        feed.folder,
        feed.engine,
        {
            "source": {"type": "table", "table": f"bronze/{NAME}"},
            "watermark": {"type": "column", "columns": ["id"]},
            "target": {"load": "merge_upsert", "merge_keys": ["id"]},
        },
        name="reader",
    )
    reader.load()
    answer = feed.command("rename", NAME, NEW, "--move-table").json
    assert (answer["table"], answer["readers"]) == (f"bronze/{NEW}", ["reader"])
    after = renamed(feed)
    assert not feed.table.exists()
    assert [
        path.name for path in sorted((feed.folder / "lake" / "bronze").iterdir()) if path.name[0] != "_"
    ] == [
        NEW,
        f"{NEW}_bad_records",
        "reader",
    ]
    feed.put("4.ndjson", 4)
    after.load()
    assert after.ids == [1, 2, 3, 4]
    assert after.load().status == "nothing"
    assert [entry.why for entry in after.entries][-2:] == ["accept", "run"]
    reader.define(source={"table": f"bronze/{NEW}"})
    assert reader.fail().choices[0] == "strandline state accept reader --reason TEXT"
    reader.decide("accept")
    reader.load()
    assert [row[0] for row in reader.rows("id")] == [1, 2, 3, 4]


@pytest.mark.parametrize("call", ["copy_log", "move_tables", "_write_atomically", "_note_move", "delete_log"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_move_of_a_table_that_dies_at_any_step_is_finished_by_the_same_command(
    feed: Feed, call: str, moment: str
) -> None:
    feed.define(target={"table": "silver/orders"})
    feed.put("1.ndjson", 1)
    feed.load()
    with dies(call, moment):
        assert feed.cli("rename", NAME, NEW, "--move-table").code != 0
    answer = feed.cli("rename", NAME, NEW, "--move-table")
    if (call, moment) != ("delete_log", "after"):
        assert answer.code == 0, answer.err
    after = renamed(feed)
    assert after.dataflow.table == f"silver/{NEW}"
    feed.put("2.ndjson", 2)
    after.load()
    assert after.ids == [1, 2]


@pytest.mark.full
def test_a_folder_of_a_bucket_moves_object_by_object_and_a_stopped_move_goes_on(bucket: Place) -> None:
    def keys() -> set[str]:
        return {meta["path"] for page in bucket.store.list() for meta in page}

    files = {f"bronze/old/day={n}%20x/{n}.parquet": f"bronze/new/day={n}%20x/{n}.parquet" for n in range(3)}
    for key in files:
        bucket.store.put(key, key.encode())
    first, moved_first = next(iter(files.items()))
    bucket.store.copy(first, moved_first)  # as far as a stopped move had come
    moving._check_free(bucket.child("bronze/old"), bucket.child("bronze/new"))
    for _ in range(2):
        moving.move_folder(bucket, "bronze/old", "bronze/new")
        assert keys() == set(files.values())
    assert bytes(bucket.store.get(moved_first).bytes()).decode() == first
    bucket.store.put("bronze/old/1.parquet", b"another table")
    with pytest.raises(ConfigurationError, match="expected no table"):
        moving._check_free(bucket.child("bronze/old"), bucket.child("bronze/new"))


@pytest.mark.full
@pytest.mark.needs_spark
@pytest.mark.parametrize("moves", [False, True], ids=["the table stays", "the table moves"])
def test_a_stream_on_sparks_engine_goes_on_from_its_checkpoint(
    tmp_path: Path, spark_engine: SparkEngine, moves: bool
) -> None:
    stream = Stream.of(tmp_path, spark_engine)
    stream.add("1.ndjson", 10, 11, 12, 13, 14, 15, 10, 25)
    stream.load()
    assert stream.counts() == [(10, 5)]
    stream.command("rename", NAME, NEW, *(["--move-table"] if moves else []))
    after = renamed(stream)
    stream.add("2.ndjson", 10, 15, 26, 27, 40)
    after.load()
    rows = [(start.second, count) for start, count in after.rows("window_start", "n")]
    assert rows == [(10, 5), (15, 1), (25, 3)]


def test_a_table_does_not_move_over_another_or_under_a_changed_definition(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    other = feed.folder / "lake" / "bronze" / NEW
    other.mkdir()
    (other / "x").write_text("")
    assert "expected no table" in feed.cli("rename", NAME, NEW, "--move-table").error["message"]
    (other / "x").unlink()
    other.rmdir()
    feed.define(source={"extensions": [".json"]})
    error = feed.cli("rename", NAME, NEW, "--move-table").error
    assert error["choices"] == [f"strandline state accept {NAME} --reason TEXT"]
    feed.define(source={"extensions": None})
    assert feed.ids == [1]
    feed.command("rename", NAME, NEW, "--move-table")
    assert renamed(feed).ids == [1]
