from __future__ import annotations

from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.fingerprint import identity
from partitions.fingerprint_changes import MEANINGS, DefinitionChange, changes


def _flow(**parts: Any) -> Dataflow:
    source = {"type": "files", "path": "./landing", "format": "json", **parts.pop("source", {})}
    watermark = {"type": "path", **parts.pop("watermark", {})}
    return Dataflow.model_validate({"name": "f", "source": source, "watermark": watermark, **parts})


def test_an_identity_that_is_the_same_has_no_changes() -> None:
    assert changes(identity(_flow()), identity(_flow())) == []


@pytest.mark.parametrize(
    ("parts", "change", "part"),
    [
        ({"source": {"path": "./other"}}, DefinitionChange("source.path", "./landing", "./other"), "source"),
        ({"source": {"extensions": [".j"]}}, DefinitionChange("source.extensions", [".json", ".json.bz2", ".json.gz", ".json.zst"], [".j"]), "extensions"),
        ({"watermark": {"partition_filter": {"prefix_template": "%Y", "lookback": 1}}}, DefinitionChange("source.prefix_template", None, "%Y"), "prefix_template"),
        ({"watermark": {"scope": "partition"}}, DefinitionChange("scope", "global", "partition"), "scope"),
        ({"target": {"table": "a/b"}}, DefinitionChange("target.table", "bronze/f", "a/b"), "target"),
    ],
)  # fmt: skip
def test_each_part_says_what_its_change_means(
    parts: dict[str, Any], change: DefinitionChange, part: str
) -> None:
    assert changes(identity(_flow()), identity(_flow(**parts))) == [
        change._replace(by_path=True, of_files=True)
    ]
    assert (change.part, change.changes_form) == (part, part == "scope")
    assert str(change).endswith(f"({MEANINGS[part]})")


def test_a_change_is_a_line_for_people() -> None:
    assert str(DefinitionChange("target.table", None, "a/b")) == (
        "target.table was nothing, is a/b (the rows loaded so far are in the old table: the new one gets only rows above"
        " the watermark)"
    )


def test_another_format_needs_another_table() -> None:
    change = DefinitionChange("target.format", "parquet", "delta")
    assert str(change).endswith("(a table keeps its format: another format needs another table)")


SCD2 = {"target": {"load": "scd2", "merge_keys": ["id"], "effective_column": "t"}}


@pytest.mark.parametrize(
    ("before", "now", "said"), [(SCD2, {}, "was scd2, is append"), ({}, SCD2, "was append, is scd2")]
)
def test_a_versions_table_takes_no_other_load(before: dict[str, Any], now: dict[str, Any], said: str) -> None:
    old, new = _flow(**before), _flow(**now)
    (change,) = changes({**identity(old), "load": old.target.load}, identity(new), new.target.load)
    assert (change.name, change.changes_form, said in str(change)) == ("target.load", True, True)
    elsewhere = {"target": {**now.get("target", {}), "table": "a/b"}}
    assert [each.name for each in changes(identity(_flow(**before)), identity(_flow(**elsewhere)))] == [
        "target.table"
    ]


def test_without_a_watermark_nothing_is_said_of_what_lies_above_it() -> None:
    change = DefinitionChange("target.table", "a/b", "a/c", is_empty=True)
    assert str(change).endswith("(nothing counts as loaded, so the new table gets all rows)")


def test_operators_are_a_line_for_people() -> None:
    was = [
        {"type": "deduplicate", "keys": ["id"]},
        {"type": "window", "size": "PT1M", "aggregates": {"n": "count(*)"}},
    ]
    assert str(DefinitionChange("operators", was, [])).startswith(
        "operators was deduplicate (keys: id); window (size: PT1M, aggregates: n: count(*)), is nothing (the stored state belongs to other operators"
    )


def test_of_a_stream_on_spark_s_engine_the_source_belongs_to_the_checkpoint() -> None:
    then, now = ({"engine": "structured_streaming", "source": {"path": path}} for path in ("./a", "./b"))
    assert [str(change) for change in changes(then, now)] == [
        "source.path was ./a, is ./b (Spark's checkpoint belongs to the source that it started with)"
    ]


def test_what_was_stored_beside_the_identity_is_no_change() -> None:
    assert changes({**identity(_flow()), "load": "append"}, identity(_flow())) == []


def test_a_part_that_is_gone_is_a_change() -> None:
    filtered = _flow(watermark={"partition_filter": {"prefix_template": "%Y", "lookback": 1}})
    assert changes(identity(filtered), identity(_flow())) == [
        DefinitionChange("source.prefix_template", "%Y", None, by_path=True, of_files=True)
    ]


_OVER = {"type": "over", "columns": {"n": {"fn": "row_number"}}}
_SPARK = {"engine": "structured_streaming", "split": None}


def _stream(operators: Any = (), source: Any = None, **watermark: Any) -> Dataflow:
    declared = {"type": "stream", "event_time": "ts", "split": "d", "timeout": "PT5M", **watermark}
    read = source or {"type": "files", "path": "./l", "format": "ndjson", "schema": "ts timestamp"}
    given = {key: value for key, value in declared.items() if value is not None}
    return Dataflow.model_validate(
        {
            "name": "f",
            "source": read,
            "watermark": given,
            "operators": list(operators),
            "target": {"load": "append"},
        }
    )


@pytest.mark.parametrize(
    ("before", "now", "parts"),
    [
        (_stream(), _stream([_OVER]), ["operators"]),
        (_stream([_OVER]), _stream(), ["operators"]),
        (_stream(), _stream(event_time="at"), ["event_time"]),
        (_stream(), _stream(split="e"), ["split"]),
        (_stream(), _stream(**_SPARK), ["engine", "policy", "output_mode", "split"]),
        (_stream(**_SPARK), _stream(), ["engine", "split", "policy", "output_mode"]),
    ],
    ids=["operator", "no operator", "event time", "split", "engine", "engine back"],
)
def test_a_streams_other_rows_drop_its_state(before: Dataflow, now: Dataflow, parts: list[str]) -> None:
    found = changes(identity(before), identity(now))
    assert [change.name for change in found] == parts
    assert all(change.changes_form for change in found)
    assert all(MEANINGS[change.part] in str(change) for change in found)


@pytest.mark.parametrize(
    "watermark",
    [
        {"type": "path"},
        {"type": "column", "columns": ["id"]},
        {"type": "window", "window": "daily", "definition": [{"name": "day", "type": "datetime", "range": {"from": "2024-01-01", "to": "-"}}]},
        {"type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M"},
        {"type": "stream", "engine": "structured_streaming", "event_time": "ts", "timeout": "PT5M"},
    ],
)  # fmt: skip
def test_each_part_of_each_kind_s_identity_says_what_its_change_means(watermark: dict[str, Any]) -> None:
    source = {
        "type": "files",
        "path": "./landing/{start}" if watermark["type"] == "window" else "./landing",
        "format": "ndjson",
        "schema": "id long",
    }
    operators = [
        {"type": "aggregate", "window": {"type": "tumble", "size": "PT1M"}, "aggregates": {"n": "count(*)"}}
    ]
    target = (
        {"load": "merge_overwrite", "replace_by_watermark": True} if watermark["type"] == "window" else {}
    )
    streams = {"operators": operators} if watermark["type"] == "stream" else {}
    flow = Dataflow.model_validate(
        {"name": "f", "source": source, "watermark": watermark, "target": target, **streams}
    )
    for change in changes({}, identity(flow)):
        assert str(change).endswith(f"({change.meaning})")


def test_a_folder_inside_the_old_one_cannot_use_the_state() -> None:
    (change,) = changes(identity(_flow()), identity(_flow(source={"path": "./landing/x"})))
    assert change.changes_form
    assert "the same file has another path" in str(change)
