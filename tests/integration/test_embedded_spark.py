"""Spark inside the process, as it is without a Connect server: what makes a write fail there is told as on a server (docs/reference/file-formats.md).

The other tests share a server. A session of the other kind has other classes, and raises where those of a server tell nothing.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment
from tests.support.feed import Feed, answer_of

EMBEDDED = SparkEngine(master="local[2]")
SETTINGS = {"spark": {"master": "local[2]"}}


@pytest.mark.full
def test_a_bad_file_is_named_or_passed_over_and_what_comes_before_it_is_loaded(tmp_path: Path) -> None:
    parquet = {"source": {"format": "parquet", "schema": None}, "on_bad_file": "quarantine"}
    passes = Feed(tmp_path, EMBEDDED, parquet, SETTINGS, name="passes")
    passes.put_parquet("a.parquet", *range(1000))
    whole = (passes.landing / "a.parquet").read_bytes()
    passes.put_bytes("b.parquet", whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    passes.put_parquet("c.parquet", 1000)
    names = Feed(tmp_path, EMBEDDED, {}, SETTINGS, name="names")
    names.put("a.ndjson", 1)
    names.put_text("b.ndjson", '{"id": "no number"}\n')
    names.put("c.ndjson", 3)
    german = {
        "source": {"format": "csv", "schema": "id long, day date", "options": {"dateFormat": "dd.MM.yyyy"}}
    }
    dates = Feed(tmp_path, EMBEDDED, german, SETTINGS, name="dates")
    dates.put_text("a.csv", "id,day\n1,28.11.2026\n")

    answer = answer_of(passes.start("run", "--all"), 300)

    assert dates.rows("id", "day") == [(1, date(2026, 11, 28))]
    ended = {run["dataflow"]: run for run in answer.json}
    assert (ended["passes"]["status"], passes.path) == ("committed", "c.parquet")
    assert passes.ids == list(range(1001))
    error = ended["names"]["error"]
    assert (ended["names"]["status"], error["code"], names.ids) == ("failed", "bad_record", [1])
    assert "b.ndjson" in error["message"]


@pytest.mark.full
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_rows_are_changed_by_their_keys(tmp_path: Path, table_format: str) -> None:
    source = {"schema": "id long, since long, value string"}
    upsert = {"format": table_format, "load": "merge_upsert", "merge_keys": ["id"]}
    scd2 = {"format": table_format, "load": "scd2", "merge_keys": ["id"], "effective_column": "since"}
    keys = Feed(tmp_path, EMBEDDED, {"source": source, "target": upsert}, SETTINGS, name="keys")
    history = Feed(tmp_path, EMBEDDED, {"source": source, "target": scd2}, SETTINGS, name="history")
    for since, value in enumerate("abc"):
        for feed in (keys, history):
            feed.put(f"{value}.ndjson", {"id": 1, "since": since, "value": value}, {"id": since + 2, "since": since, "value": value})  # fmt: skip
        answer = answer_of(keys.start("run", "--all"), 300)
        assert answer.code == 0, answer.err
    assert keys.rows("id", "value") == [(1, "c"), (2, "a"), (3, "b"), (4, "c")]
    assert history.rows("id", "value", "_valid_to", "_is_current") == [
        (1, "a", 1, False),
        (1, "b", 2, False),
        (1, "c", None, True),
        (2, "a", None, True),
        (3, "b", None, True),
        (4, "c", None, True),
    ]


_ASKS = """\
import psutil
from resources.spark.engine import SparkEngine
key = "spark.hadoop.strandline.test.phrase"
engine = SparkEngine(master="local[1]", conf={key: "zq-7 x", "spark.x": "y"}, secret_keys=frozenset({key}))
session = engine.session()
own = {child.pid for child in psutil.Process().children(recursive=True)}
lines = [" ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"]) if p.pid in own]
print(session.conf.get(key), any("spark.x=y" in line for line in lines), any("zq-7" in line for line in lines))
"""


@pytest.mark.full
def test_a_secret_of_spark_is_in_its_settings_and_in_no_command_line() -> None:
    asked = subprocess.run(
        [sys.executable, "-c", _ASKS], capture_output=True, text=True, check=True, env=clean_environment()
    )
    assert asked.stdout == "zq-7 x True False\n"
