"""What follows for a target from rows that are change events, and what they do not go with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from partitions.change_events import order_of_rows
from partitions.dataflow import Dataflow
from partitions.loads import OrderByColumn

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
SCD2 = {"load": "scd2", "merge_keys": ["id"]}


def flow(target: dict[str, Any], **changes: Any) -> Dataflow:
    source = {"type": "files", "path": "./x", "format": "debezium", **changes.pop("source", {})}
    base = {"name": "a", "source": source, "watermark": {"type": "path"}, "target": target}
    return Dataflow.model_validate(base | changes)


def test_an_upsert_of_events_deletes_remembers_and_keeps() -> None:
    dataflow = flow(UPSERT)
    target = dataflow.target
    assert target.delete_when == "_op = 'd'"
    assert target.keep_tombstones == timedelta(days=30)
    assert target.missing_columns == "keep"
    assert order_of_rows(dataflow.source) == (OrderByColumn("_position"),)


def test_what_the_user_says_counts_beside_it() -> None:
    target = flow(
        {**UPSERT, "delete_when": "gone", "keep_tombstones": "P1D"}, sql="select * from input"
    ).target
    assert target.delete_when == "_op = 'd' OR (gone)"
    assert target.keep_tombstones == timedelta(days=1)
    assert target.missing_columns == "null"


def test_what_follows_is_the_same_a_second_time() -> None:
    first = flow({**UPSERT, "delete_when": "gone"})
    assert Dataflow.model_validate(first.model_dump(by_alias=True, exclude_unset=True)).target == first.target


def test_versions_begin_when_the_database_made_the_change() -> None:
    assert flow(SCD2).target.effective_column == "_source_time"
    assert flow({**SCD2, "effective_column": "updated_at"}).target.effective_column == "updated_at"


def test_kept_events_delete_nothing() -> None:
    assert flow({"load": "append"}).target.delete_when is None


@pytest.mark.parametrize(
    ("target", "changes", "keys"),
    [
        ({"load": "overwrite"}, {}, ["target.load", "target.load"]),
        ({**UPSERT, "insert_only": True}, {}, ["target.insert_only"]),
        (UPSERT, {"source": {"schema": "id long, _op string"}}, ["source.schema"]),
        (
            UPSERT,
            {"source": {"options": {"time_precision_mode": "adaptive"}}},
            ["source.options.time_precision_mode"],
        ),
        ({"load": "append"}, {"watermark": {"type": "column", "columns": ["id"]}}, ["watermark.type"]),
        ({**UPSERT, "schema_mode": "rescue"}, {}, ["target.schema_mode"]),
    ],
)
def test_what_events_do_not_go_with_is_refused_by_name(
    target: dict[str, Any], changes: dict[str, Any], keys: list[str]
) -> None:
    with pytest.raises(ValidationError) as refused:
        flow(target, **changes)
    cause = refused.value.errors()[0]["ctx"]["error"]
    assert [".".join(refusal.key) for refusal in cause.refusals] == keys
