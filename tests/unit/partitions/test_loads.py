"""Which loads go with what, and which load a slice has."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.loads import Append, OrderByColumn, Replace, ReplaceKeys, Scd2, Upsert, load_for_target
from partitions.predicate import NOTHING, Among
from partitions.target import Target

FILES = {"source": {"type": "files", "path": "x", "format": "csv"}, "watermark": {"type": "path"}}
ROWS = {"source": {"type": "table", "table": "a/b"}, "watermark": {"type": "column", "columns": ["at"]}}
DAYS = [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}]
WINDOWS = {
    "source": {"type": "table", "table": "a/b", "window_column": "at"},
    "watermark": {"type": "window", "definition": DAYS, "window": "daily"},
}
WHOLE = {"source": {"type": "table", "table": "a/b"}, "watermark": {"type": "window", "definition": []}}

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
BY_KEYS = {"load": "merge_overwrite", "merge_keys": ["id"]}
SCD2 = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}


def refused(base: dict[str, Any], target: dict[str, Any], **changes: Any) -> dict[str, str]:
    """The keys that are refused, each with what was found."""
    watermark = base["watermark"] | changes.pop("watermark", {})
    try:
        Dataflow.model_validate({"name": "f", **base, **changes, "watermark": watermark, "target": target})
    except ValueError as error:
        given = error.errors()[0]["ctx"]["error"].refusals  # type: ignore[attr-defined]
        return {".".join(each.key): each.actual for each in given}
    return {}


@pytest.mark.parametrize(
    ("base", "target", "changes"),
    [
        (FILES, UPSERT, {}),
        (FILES, BY_KEYS, {"late_files": "alert"}),
        (ROWS, UPSERT, {}),
        (ROWS, BY_KEYS, {}),
        (ROWS, UPSERT, {"watermark": {"columns": ["a", "b"], "backward": {"days": 1}}}),
        (ROWS, UPSERT, {"watermark": {"nulls": "read", "boundary": "inclusive"}}),
        (ROWS, BY_KEYS, {"watermark": {"nulls": "read", "boundary": "inclusive"}}),
        (ROWS, REPLACED | {"merge_keys": ["id"]}, {"watermark": {"backward": {"days": 1}, "boundary": "inclusive"}}),
        (WINDOWS, UPSERT, {"watermark": {"grace": "P3D"}}),
        (WHOLE, {"load": "overwrite"}, {}),
        (WHOLE, {"load": " FULL_LOAD "}, {}),
        (WHOLE, UPSERT, {}),
        (FILES, SCD2, {}),
        (ROWS, SCD2, {"watermark": {"nulls": "read", "boundary": "inclusive", "backward": {"days": 1}}}),
        (WINDOWS, SCD2, {"watermark": {"grace": "P3D"}}),
    ],
)  # fmt: skip
def test_a_combination_that_is_right_is_taken(
    base: dict[str, Any], target: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert refused(base, target, **changes) == {}


@pytest.mark.parametrize(
    ("base", "target", "changes", "expected"),
    [
        (FILES, {"load": "overwrite"}, {}, {"target.load": "overwrite"}),
        (FILES, {"load": "merge_upsert"}, {}, {"target.merge_keys": "nothing"}),
        (FILES, UPSERT | {"origin_columns": False}, {}, {"target.origin_columns": "false beside load: merge_upsert"}),
        (FILES, SCD2 | {"origin_columns": False}, {}, {"target.origin_columns": "false beside load: scd2"}),
        (FILES, BY_KEYS, {}, {"late_files": "ingest beside load: merge_overwrite"}),
        (FILES, BY_KEYS, {"late_files": "alert", "on_bad_file": "quarantine"}, {"on_bad_file": "quarantine beside load: merge_overwrite"}),
        (FILES, REPLACED, {}, {"target.replace_by_watermark": "true"}),
        (ROWS, {"load": "full_load"}, {}, {"target.load": "overwrite"}),
        (ROWS, {"load": "merge_overwrite"}, {}, {"target.merge_keys": "nothing"}),
        (ROWS, {"merge_keys": ["id"]}, {}, {"target.merge_keys": "id"}),
        (ROWS, UPSERT | {"replace_by_watermark": True}, {"watermark": {"backward": {"days": 1}}}, {"target.load": "merge_upsert"}),
        (ROWS, REPLACED, {}, {"target.replace_by_watermark": "true without a look-back"}),
        (ROWS, {"load": "append"}, {"watermark": {"nulls": "read"}}, {"watermark.nulls": "read beside load: append"}),
        (ROWS, {"load": "append"}, {"watermark": {"boundary": "inclusive"}}, {"watermark.boundary": "inclusive without target.merge_keys"}),
        (ROWS, REPLACED | {"merge_keys": ["id"]}, {"watermark": {"backward": {"days": 1}, "nulls": "read"}}, {"watermark.nulls": "read beside load: merge_overwrite"}),
        (ROWS, {"load": "scd2", "merge_keys": ["id"]}, {}, {"target.effective_column": "nothing"}),
        (ROWS, {"load": "scd2", "effective_column": "at"}, {}, {"target.merge_keys": "nothing"}),
        (ROWS, UPSERT | {"effective_column": "at"}, {}, {"target.effective_column": "at"}),
        (ROWS, SCD2 | {"merge_keys": ["id", "AT"]}, {}, {"target.effective_column": "at, which is also in merge_keys"}),
        (WINDOWS, BY_KEYS, {}, {"target.replace_by_watermark": "nothing"}),
        (WINDOWS, {"load": "overwrite"}, {}, {"target.load": "overwrite beside windows or units"}),
        (WHOLE, {"load": "overwrite", "merge_keys": ["id"]}, {}, {"target.merge_keys": "id"}),
    ],
)  # fmt: skip
def test_a_combination_that_would_lose_or_double_rows_is_refused_at_its_key(
    base: dict[str, Any], target: dict[str, Any], changes: dict[str, Any], expected: dict[str, str]
) -> None:
    assert refused(base, target, **changes) == expected


def test_a_target_without_keys_deletes_what_makes_room_and_adds_the_rest() -> None:
    where, order = Among("id", (1,)), (OrderByColumn("at"),)
    assert load_for_target(Target(), NOTHING, order) == Append()
    assert load_for_target(Target(), where, order) == Replace(where)
    assert load_for_target(Target.model_validate(REPLACED | {"merge_keys": ["id"]}), where, order) == Replace(
        where
    )


def test_a_target_with_keys_finds_its_rows_by_them_also_where_others_make_room() -> None:
    where, order = Among("id", (1,)), (OrderByColumn("at"),)
    upsert, by_keys = Target.model_validate(UPSERT), Target.model_validate(BY_KEYS)
    assert load_for_target(upsert, where, order, guard=order) == Upsert(("id",), order, order, where)
    assert load_for_target(by_keys, NOTHING, order) == ReplaceKeys(("id",))


def test_versions_are_not_told_apart_by_the_watermark_or_by_where_a_row_came_from() -> None:
    load = load_for_target(Target.model_validate(SCD2), NOTHING, (OrderByColumn("seen"),))
    ignored = ("seen", "_source_file", "_ingested_at", "_run_id")
    assert load == Scd2(("id",), "at", (OrderByColumn("seen"),), ignored)
