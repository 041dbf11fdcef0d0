"""Spark inside the process, as it is without a Connect server: what makes a write fail there is told as on a server (docs/source-files.md).

The other tests share a server. A session of the other kind has other classes, and raises where those of a server tell nothing.
"""

from __future__ import annotations

from pathlib import Path

from resources.spark import SparkEngine
from tests.support.feed import Feed, answer_of

EMBEDDED = SparkEngine(master="local[2]")
SETTINGS = {"spark": {"master": "local[2]"}}


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

    answer = answer_of(passes.start("run", "--all"), 300)

    ended = {run["dataflow"]: run for run in answer.json}
    assert (ended["passes"]["status"], passes.path) == ("committed", "c.parquet")
    assert passes.ids == list(range(1001))
    error = ended["names"]["error"]
    assert (ended["names"]["status"], error["code"], names.ids) == ("failed", "bad_record", [1])
    assert "b.ndjson" in error["message"]
