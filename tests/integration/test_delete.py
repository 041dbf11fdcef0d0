"""``strandline delete``: rows go in one commit, exactly once, and nothing brings them back (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

import shlex
import shutil
from datetime import timedelta
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from partitions.errors import ConfigurationError
from partitions.sql_condition import changing_part
from resources.decisions.delete import delete_rows
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks.compaction import RetentionPolicy
from resources.watermarks.deleted_rows import DeleteInForce, put_deletes
from resources.watermarks.entry import next_entry
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.decision_crash import crash_deciding
from tests.support.delete_crash import crash_deleting
from tests.support.feed import NOW, Answer, Feed

SCHEMA = "id long, who string"
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {"load": "append"},
    "partitioned": {"load": "append", "partition_by": ["who"]},
    "upsert": {"load": "merge_upsert", "merge_keys": ["id"]},
    "scd2": {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"},
}
ROWS = ({"id": 1, "who": "ann"}, {"id": 2, "who": "bob"}, {"id": 3, "who": None})
ANN, BOB = "who = 'ann'", "who = 'bob'"
CELLS = [
    pytest.param(
        table_format,
        layout,
        marks=() if (table_format, layout) in QUICK else pytest.mark.full,
        id=f"{table_format}, {layout}",
    )
    for QUICK in [{("delta", "plain"), ("iceberg", "partitioned"), ("parquet", "plain")}]
    for table_format in ("delta", "iceberg", "parquet")
    for layout in LAYOUTS
    if table_format != "parquet" or layout in ("plain", "partitioned")
]


def made(make_feed: MakeFeed, table_format: str = "delta", layout: str = "plain", **keys: Any) -> Feed:
    """Three rows in two files, of which the first is loaded, then the second."""
    schema = f"{SCHEMA}, at timestamp" if layout == "scd2" else SCHEMA
    feed = make_feed(source={"schema": schema}, target={**LAYOUTS[layout], "format": table_format}, **keys)
    feed.put("1.ndjson", *(_with_time(row, layout) for row in ROWS[:2]))
    feed.load()
    feed.put("2.ndjson", _with_time(ROWS[2], layout))
    feed.load()
    return feed


def _with_time(row: dict[str, Any], layout: str) -> dict[str, Any]:
    return {**row, "at": "2026-05-01T00:00:00Z"} if layout == "scd2" else row


def delete(feed: Feed, where: str, *more: str) -> Answer:
    return feed.command("delete", feed.name, "--where", where, "--reason", "asked for", "--yes", *more)


def rows(feed: Feed) -> list[tuple[Any, ...]]:
    is_parquet = feed.definition["target"]["format"] == "parquet"
    return feed.rows_by_spark("id", "who") if is_parquet else feed.rows("id", "who")


@pytest.mark.parametrize(("table_format", "layout"), CELLS)
def test_rows_go_in_one_commit_and_stay_away(make_feed: MakeFeed, table_format: str, layout: str) -> None:
    feed = made(make_feed, table_format, layout)
    answer = delete(feed, BOB)
    assert rows(feed) == [(1, "ann"), (3, None)]
    entry = feed.entries[-1]
    assert (entry.number, entry.why, entry.deleted, entry.total_rows) == (3, "delete", 1, 2)
    assert answer.json["matching"]["rows"] == 1
    assert feed.load().status == "nothing"
    feed.put(
        "3.ndjson",
        *(_with_time({"id": number, "who": who}, layout) for number, who in [(4, "bob"), (5, "eve")]),
    )
    feed.put("0.ndjson", _with_time({"id": 6, "who": "bob"}, layout))
    outcome = feed.load()
    assert rows(feed) == [(1, "ann"), (3, None), (5, "eve")]
    assert [found.withheld for found in feed.entries[3:]] == [{3: 1}]
    assert outcome.rows == 1
    assert "1 row withheld by the delete of entry 3" in outcome.warnings


@pytest.mark.full
def test_null_does_not_match(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, "who <> 'ann'")
    assert rows(feed) == [(1, "ann"), (3, None)]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("rand() < 0.5", "rand()"),
        ("id = 1 OR who = current_user()", "current_user()"),
        ("date(who) < current_date", "current_date"),
        ("id IN (SELECT 1)", "a subquery"),
        ("id = 1 -- or so", "a comment"),
        ("1 = 1", "'1 = 1'"),
        ("_run_id IS NULL", "_run_id"),
        ("id = = 1", "PARSE_SYNTAX_ERROR"),
        ("nobody = 1", "'nobody = 1'"),
        ("id = 1 AND nobody = 1", "nobody"),
        ("id + 1", "BIGINT"),
        ("max(id) = 1", "max"),
        ("id = 1 OR _metadata.file_name = 'x'", "_metadata"),
        ("CAST(who AS int) = 7", "try_cast(… AS …)"),
        ("1 / (id - 2) = 7", "DIVIDE_BY_ZERO"),
    ],
)
def test_a_condition_that_may_change_or_does_not_fit_is_refused(loaded: Feed, where: str, found: str) -> None:
    answer = loaded.cli("delete", loaded.name, "--where", where, "--reason", "x", "--yes")
    assert (answer.code, answer.error["code"]) == (2, "predicate")
    assert found in answer.error["message"]
    assert "\n" not in answer.error["message"]
    assert loaded.entries[-1].number == 2


def test_a_delete_that_fails_on_a_row_while_it_writes_is_given_up(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    with pytest.raises(
        ConfigurationError, match=r"CAST_INVALID_INPUT.*Nothing was deleted.*try_cast"
    ) as raised:
        delete_rows(feed.platform, feed.dataflow, "CAST(who AS int) = 7", "asked for", NOW)
    assert raised.value.code == "predicate"
    assert (feed.entries[-1].why, feed.entries[-1].deletes, feed.open_intent) == ("abandon", None, None)
    delete(feed, "try_cast(who AS int) = 7 OR who = 'bob'")
    assert rows(feed) == [(1, "ann"), (3, None)]


def test_adopt_counts_deleted_rows_that_a_restore_brought_back(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    delete(feed, "who = 'eve'")
    DeltaTable(str(feed.table)).restore(1)
    answer = feed.command("state", "adopt", feed.name, "--reason", "restored", "--yes")
    assert "2 deletes stay in force: no load writes such a row" in answer.err
    remedy = "strandline delete flow --where 'who = '\"'\"'bob'\"'\"'' --reason TEXT"
    assert (
        f"1 row of the table matches the delete of entry 3, and stays. To delete it again: {remedy}"
        in answer.err
    )
    assert "entry 4" not in answer.err
    assert rows(feed) == [(1, "ann"), (2, "bob"), (3, None)]
    delete(feed, shlex.split(remedy)[4])
    assert rows(feed) == [(1, "ann"), (3, None)]
    feed.command("delete", feed.name, "--forget", "3", "--reason", "a mistake", "--yes")
    feed.put("3.ndjson", {"id": 4, "who": "bob"}, {"id": 5, "who": "eve"})
    feed.load()
    assert rows(feed) == [(1, "ann"), (3, None), (4, "bob")]


def test_adopt_speaks_of_no_deleted_row_if_the_table_holds_none(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    shutil.rmtree(feed.state)
    answer = feed.command("state", "adopt", feed.name, "--reason", "lost", "--yes")
    assert "1 delete stays in force: no load writes such a row" in answer.err
    assert "of the table match" not in answer.err
    assert "unknown" not in answer.err


def test_a_rewind_blames_nobody_else_for_rows_that_a_delete_took(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, "_source_file = '1.ndjson'")
    rewind = ("state", "rewind", feed.name, "--to", "0", "--replace", "--reason", "again", "--yes")
    answer = feed.command(*rewind)
    assert (
        "of these files the table holds no row; what a delete in force or the retention names stays away: 1.ndjson"
        in answer.err
    )
    assert "others deleted" not in answer.err
    feed.load()
    assert rows(feed) == [(3, None)]


def test_texts_end_where_spark_ends_them(engine: SparkEngine) -> None:
    texts = {
        r"'a\', b'": "a', b",
        r"r'\'": "\\",
        r'R"\"': "\\",
        "'it''s'": "it's",
        r"r'a''b'": "ab",
        r'"say ""no"""': 'say "no"',
        r"'\\'": "\\",
    }
    (row,) = engine.session().sql(f"SELECT {', '.join(texts)}").collect()
    assert list(row) == list(texts.values())
    for text in texts:
        assert changing_part(f"who = {text} OR rand() < 1", ["who"]) == "rand()"
        assert changing_part(f"who = {text} OR id = 1", ["who"]) is None


def test_a_dry_run_counts_and_changes_nothing(loaded: Feed) -> None:
    answer = delete(loaded, BOB, "--dry-run")
    assert answer.json["number"] is None
    assert answer.json["matching"] == {
        "rows": 1,
        "total_rows": 3,
        "files": 1,
        "source_files": 1,
        "partitions": None,
        "examples": [{"who": "bob", "_source_file": "1.ndjson"}],
    }
    assert loaded.entries[-1].number == 2


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Three rows in two files, which no test changes."""
    folder = tmp_path_factory.mktemp("loaded") / "project"
    return made(lambda **definition: Feed(folder, engine, definition))


def _rewind(feed: Feed) -> None:
    feed.decide("rewind", "--to", "0", "--replace")


def _reset(feed: Feed) -> None:
    feed.decide("reset", "--replace")


def _lose_table(feed: Feed) -> None:
    shutil.rmtree(feed.table)
    feed.decide("reset", "--replace")


def _import(feed: Feed) -> None:
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", feed.name).out)
    shutil.rmtree(feed.state)
    feed.decide("import", str(export))
    feed.decide("rewind", "--to", "0", "--replace")


def _adopt(feed: Feed) -> None:
    shutil.rmtree(feed.state)
    feed.decide("adopt")
    feed.decide("rewind", "--to", "0", "--replace")


def _late(feed: Feed) -> None:
    feed.put("0.ndjson", ROWS[1])


@pytest.mark.parametrize(
    "act",
    [
        _adopt,
        *(
            pytest.param(act, marks=pytest.mark.full)
            for act in (_rewind, _reset, _lose_table, _import, _late)
        ),
    ],
)
def test_no_decision_and_no_late_file_brings_a_row_back(make_feed: MakeFeed, act: Any) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    act(feed)
    feed.load()
    feed.load()
    assert rows(feed) == [(1, "ann"), (3, None)]


@pytest.mark.parametrize(
    "step",
    [
        Step.INTENT_PUT,
        Step.WRITTEN,
        *(
            pytest.param(step, marks=pytest.mark.full)
            for step in (Step.LIST_KEPT, Step.VERIFIED, Step.APPENDED)
        ),
    ],
)
def test_a_delete_killed_at_any_step_is_done_once_or_not_at_all(make_feed: MakeFeed, step: Step) -> None:
    feed = made(make_feed)
    crash_deleting(feed, step, BOB)
    feed.put("3.ndjson", {"id": 4, "who": "bob"})
    assert feed.load().error is None
    was_begun = step != Step.LIST_KEPT
    assert rows(feed) == (
        [(1, "ann"), (3, None)] if was_begun else [(1, "ann"), (2, "bob"), (3, None), (4, "bob")]
    )
    assert [entry.why for entry in feed.entries] == ["run", "run", *(["delete"] if was_begun else []), "run"]
    assert feed.open_intent is None
    assert feed.entries[-1].total_rows == len(rows(feed))


@pytest.mark.full
def test_the_next_decision_finishes_a_delete_that_died(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    crash_deleting(feed, Step.INTENT_PUT, BOB)
    answer = feed.decide("rewind", "--to", "1")
    assert "delete 3, which is unfinished, is finished" in answer.err
    assert [entry.why for entry in feed.entries] == ["run", "run", "delete", "rewind"]
    assert rows(feed) == [(1, "ann"), (3, None)]


@pytest.mark.full
def test_the_same_delete_again_does_nothing(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    assert delete(feed, BOB).json["in_force"] == 3
    assert len(feed.entries) == 3


def test_a_forgotten_delete_withholds_nothing_and_names_the_replay(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    answer = feed.command("delete", feed.name, "--forget", "3", "--reason", "a mistake", "--yes")
    assert "strandline state rewind flow --to 0 --replace" in answer.err
    assert (answer.json["entry"]["why"], answer.json["entry"]["predicate"]) == ("forget", BOB)
    feed.put("3.ndjson", {"id": 4, "who": "bob"})
    feed.load()
    assert rows(feed) == [(1, "ann"), (3, None), (4, "bob")]
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    assert rows(feed) == [(1, "ann"), (2, "bob"), (3, None), (4, "bob")]


@pytest.mark.parametrize("act", ["reset", pytest.param("run", marks=pytest.mark.full)])
def test_a_forget_that_died_after_its_entry_stays_in_force(make_feed: MakeFeed, act: str) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    crash_deciding(feed, "entries", "delete", feed.name, "--forget", "3", "--reason", "a mistake", "--yes")
    if act == "run":
        assert feed.load().status == "nothing"
        _adopt(feed)
    else:
        feed.decide("reset", "--replace")
    feed.load()
    assert rows(feed) == [(1, "ann"), (2, "bob"), (3, None)]


@pytest.mark.full
def test_withheld_rows_are_counted_also_if_the_writer_died(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    feed.put("3.ndjson", {"id": 4, "who": "bob"}, {"id": 5, "who": "eve"})
    crash(feed, Step.WRITTEN)
    assert feed.load().status == "recovered"
    assert feed.entries[-1].withheld == {3: 1}


@pytest.mark.full
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_files_without_a_matching_row_stay_as_they_are(make_feed: MakeFeed, table_format: str) -> None:
    feed = made(make_feed, table_format)
    before = data_files(feed)
    delete(feed, "id = 3")
    after = data_files(feed)
    assert (len(before), len(before & after)) == (2, 1)
    delete(feed, "id = 77")
    assert (data_files(feed), rows(feed)) == (after, [(1, "ann"), (2, "bob")])
    assert feed.load().status == "nothing"


def data_files(feed: Feed) -> set[str]:
    """Return the names of the data files that hold the table's rows now."""
    from pyspark.sql import functions as F

    table = feed.platform.table(feed.dataflow)
    session = feed.platform.engine(feed.dataflow).session()
    frame = table.contents.read(session, table.contents.newest_version())
    return {row[0] for row in frame.select(F.input_file_name()).distinct().collect()}


@pytest.mark.full
def test_a_delete_survives_compaction_a_copy_of_the_state_and_a_new_name(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    delete(feed, BOB)
    for number in range(3, 6):
        feed.put(f"{number}.ndjson", {"id": number * 10, "who": "eve"})
        feed.run(retention=RetentionPolicy(1, timedelta(days=-400), merge_every=1))
    assert feed.platform.log.floor(feed.name) > 3
    feed.command("state", "copy", "--to", "./copied")
    (feed.folder / "platform.yaml").write_text("state: ./copied\nlake: ./lake\n")
    feed.command("rename", feed.name, "renamed")
    (feed.folder / "landing_renamed").symlink_to(feed.landing)
    text = (feed.folder / "dataflows/renamed.yaml").read_text()
    renamed = Feed(feed.folder, feed.engine, yaml.safe_load(text), {"state": "./copied"}, name="renamed")
    (feed.folder / "dataflows/renamed.yaml").write_text(text)
    in_force = renamed.command("state", "show", "renamed").json["deletes"]
    assert [one["predicate"] for one in in_force] == [BOB]
    feed.put("9.ndjson", {"id": 90, "who": "bob"}, {"id": 91, "who": "eve"})
    assert renamed.load().withheld == 1


@pytest.mark.full
def test_rows_that_a_condition_no_longer_fits_stop_the_run_until_it_is_forgotten(
    make_feed: MakeFeed,
) -> None:
    feed = made(make_feed)
    delete(feed, "who LIKE 'b%'")
    feed.define(sql="SELECT id, array(who) AS who FROM input")
    feed.decide("reset", "--replace")
    error = feed.fail()
    assert error.code == "delete_unfit"
    assert error.choices == ("strandline delete flow --forget 3 --reason TEXT",)
    assert feed.open_intent is None
    feed.command("delete", feed.name, "--forget", "3", "--reason", "the column is another now", "--yes")
    feed.load()
    assert feed.rows("id") == [(1,), (2,), (3,)]


@pytest.mark.full
def test_a_delete_beside_a_living_run_ends_with_exit_code_3(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    feed.put("3.ndjson", {"id": 4, "who": "eve"})
    answers = []

    def deletes_meanwhile(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            answers.append(feed.cli("delete", "flow", "--where", BOB, "--reason", "x", "--yes"))

    feed.run(deletes_meanwhile)
    assert [(answer.code, answer.error["code"]) for answer in answers] == [(3, "held")]
    assert len(rows(feed)) == 4


@pytest.mark.full
def test_many_deletes_withhold_in_one_pass(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    log, newest = feed.platform.log, feed.entries[-1]
    columns = {"id": "bigint", "who": "string"}
    many = [
        DeleteInForce(number, f"id = {number} AND who = 'x'", columns, "asked for", newest.time)
        for number in range(1000, 1300)
    ]
    key = put_deletes(log, feed.name, f"{newest.number:010d}-{newest.id}", many)
    entry = next_entry(newest, why="set", fingerprint=newest.fingerprint, deletes=key)
    log.append(feed.name, entry, expected=newest.number)
    feed.put("3.ndjson", {"id": 1007, "who": "x"}, {"id": 1299, "who": "x"}, {"id": 1300, "who": "x"})
    assert feed.load().withheld == 2
    assert feed.entries[-1].withheld == {1007: 1, 1299: 1}


@pytest.mark.parametrize(
    "where", ["c < 5", pytest.param("s NOT LIKE 'z%'", marks=pytest.mark.full), "c < 5 OR s = 'y'"]
)
def test_iceberg_files_without_a_partition_value_keep_their_rows(make_feed: MakeFeed, where: str) -> None:
    target = {"format": "iceberg", "partition_by": ["c", "s"]}
    feed = make_feed(source={"schema": "id long, c long, s string"}, target=target)
    rows: list[dict[str, Any]] = [
        {"id": 1, "c": 1, "s": "a"},
        {"id": 2, "c": 7, "s": "z"},
        {"id": 3, "s": "z"},
        {"id": 4, "c": 7},
    ]
    feed.put("1.ndjson", *rows, {"id": 5, "s": "y" if "y" in where else None})
    feed.load()
    delete(feed, where)
    assert feed.rows("id") == ([(2,), (3,), (4,)] if "y" in where else [(2,), (3,), (4,), (5,)])


def test_late_counts_the_rows_that_a_delete_withholds_and_names_their_files(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    feed.command("delete", feed.name, "--where", ANN, "--reason", "request", "--yes")
    feed.put("0.ndjson", {"id": 4, "who": "ann"}, {"id": 5, "who": "eve"})
    feed.put("00.ndjson", {"id": 6, "who": "ann"})
    answer = feed.command("late", feed.name).json
    assert (answer["ingested"], answer["withheld"]) == (
        2,
        [{"entry": 3, "rows": 2, "files": ["0.ndjson", "00.ndjson"]}],
    )
    assert answer["copies"] == {"count": 0, "paths": []}
    feed.put("000.ndjson", {"id": 7, "who": "ann"})
    text = feed.text("late", feed.name)
    assert "  1 row withheld by the delete of entry 3; late: 000.ndjson\n" in text
    assert text.count("withheld") == 1, text


@pytest.mark.remedy("deleted_rows", "delete")
def test_a_delete_keeps_rows_away_that_others_deleted_and_a_rewind_reads_again(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    DeltaTable(str(feed.table)).delete("id IN (1, 2)")
    rewind = ("state", "rewind", feed.name, "--to", "0", "--replace", "--reason", "x", "--yes")
    error = feed.cli(*rewind).error
    assert error["code"] == "deleted_rows"
    assert "name them first: strandline delete flow --where SQL --reason TEXT" in error["message"]
    delete(feed, BOB)
    feed.command(*rewind, "--deleted", "load")
    feed.load()
    assert rows(feed) == [(1, "ann"), (3, None)]
