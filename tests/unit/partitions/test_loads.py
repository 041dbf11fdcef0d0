"""Which loads go with what, and which load a slice has."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.history import end_value
from partitions.loads import (
    Append,
    OrderByColumn,
    Replace,
    ReplaceKeys,
    Scd2,
    Upsert,
    helper_columns,
    load_for_target,
)
from partitions.predicate import NOTHING, Among
from partitions.target import DELETES_COLUMN, Target

FILES = {"source": {"type": "files", "path": "x", "format": "csv"}, "watermark": {"type": "path"}}
ROWS = {"source": {"type": "table", "table": "a/b"}, "watermark": {"type": "column", "columns": ["at"]}}
DAYS = [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}]
WINDOWS = {
    "source": {"type": "table", "table": "a/b", "window_column": "at"},
    "watermark": {"type": "window", "definition": DAYS, "window": "daily"},
}
COMMITS = {"source": {"type": "table", "table": "a/b"}, "watermark": {"type": "offset"}}
EXPORTS = {
    "source": {"type": "files", "path": "x/{start:%Y-%m-%d}", "format": "csv", "complete": True},
    "watermark": {"type": "window", "definition": DAYS, "window": "daily", "partial": False},
}
WHOLE = {"source": {"type": "table", "table": "a/b"}, "watermark": {"type": "window", "definition": []}}

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
BY_KEYS = {"load": "merge_overwrite", "merge_keys": ["id"]}
SCD2 = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
COMPLETE: dict[str, Any] = {"source": {"type": "table", "table": "a/b", "complete": True}}
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
        (ROWS, UPSERT | {"delete_when": "deleted_at IS NOT NULL"}, {}),
        (ROWS, BY_KEYS | {"delete_when": "op = 'd'"}, {}),
        (FILES, UPSERT | {"delete_when": "gone", "keep_tombstones": "P30D"}, {}),
        (FILES, SCD2 | {"delete_when": "gone"}, {}),
        (FILES, SCD2 | {"track": ["price"], "names": {"valid_from": "since"}, "open_end": "9999-12-31"}, {}),
        (ROWS, SCD2 | {"ignore": ["checked_at"]}, {}),
        (ROWS, UPSERT | {"insert_only": True}, {}),
        (WHOLE, UPSERT | {"on_missing": "delete", "max_deleted": "5.5%", "delete_when": "gone"}, COMPLETE),
        (WHOLE, SCD2 | {"on_missing": "retire"}, COMPLETE),
        (WHOLE, SCD2 | {"on_missing": "keep"}, COMPLETE),
        (EXPORTS, UPSERT | {"on_missing": "delete", "immutable": ["made"], "missing_columns": "keep"}, {}),
        (EXPORTS, SCD2 | {"on_missing": "retire"}, {"watermark": {"partial": True, "reread": "whole"}}),
        (ROWS, SCD2 | {"missing_columns": "null", "insert_only": False}, {}),
        (FILES, UPSERT | {"missing_columns": "keep", "immutable": ["made"], "delete_when": "gone"}, {}),
        (FILES, UPSERT | {"immutable": ["created_at", "_ingested_at"], "delete_when": "gone"}, {}),
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
        (FILES, {"delete_when": "gone"}, {}, {"target.delete_when": "gone beside load: append"}),
        (ROWS, REPLACED | {"delete_when": "gone"}, {"watermark": {"backward": {"days": 1}}}, {"target.delete_when": "gone beside load: merge_overwrite with replace_by_watermark: true"}),
        (WHOLE, {"load": "overwrite", "delete_when": "gone"}, {}, {"target.delete_when": "gone beside load: overwrite"}),
        (ROWS, UPSERT | {"keep_tombstones": "P30D"}, {}, {"target.keep_tombstones": "no delete_when beside it"}),
        (ROWS, BY_KEYS | {"delete_when": "gone", "keep_tombstones": "P30D"}, {}, {"target.keep_tombstones": "load: merge_overwrite"}),
        (ROWS, SCD2 | {"delete_when": "gone", "keep_tombstones": "P30D"}, {}, {"target.keep_tombstones": "load: scd2"}),
        (ROWS, UPSERT | {"delete_when": "gone", "keep_tombstones": "P30D", "shared": True}, {}, {"target.keep_tombstones": "shared: true"}),
        (ROWS, UPSERT | {"delete_when": "gone_at < now()"}, {}, {"target.delete_when": "now() in 'gone_at < now()'"}),
        (ROWS, SCD2 | {"delete_when": "id IN (SELECT id FROM b)"}, {}, {"target.delete_when": "a subquery in 'id IN (SELECT id FROM b)'"}),
        (ROWS, UPSERT | {"track": ["a"]}, {}, {"target.track": "track beside load: merge_upsert"}),
        (ROWS, {"ignore": ["a"], "names": {"valid_to": "b"}, "open_end": "9"}, {}, {"target.ignore": "ignore beside load: append", "target.names": "names beside load: append", "target.open_end": "open_end beside load: append"}),
        (ROWS, BY_KEYS | {"insert_only": True, "immutable": ["a"]}, {}, {"target.insert_only": "insert_only beside load: merge_overwrite", "target.immutable": "immutable beside load: merge_overwrite"}),
        (ROWS, UPSERT | {"insert_only": True, "delete_when": "gone"}, {}, {"target.insert_only": "true beside delete_when: gone"}),
        (COMMITS, UPSERT | {"insert_only": True}, {}, {"target.insert_only": "true beside a source whose updates and deletes are applied"}),
        (ROWS, SCD2 | {"missing_columns": "keep"}, {}, {"target.missing_columns": "missing_columns beside load: scd2"}),
        (ROWS, UPSERT | {"missing_columns": "keep", "insert_only": True}, {}, {"target.missing_columns": "keep beside insert_only: true"}),
        (FILES, UPSERT | {"missing_columns": "keep"}, {"sql": "select * from input"}, {"target.missing_columns": "keep beside sql"}),
        (FILES, UPSERT | {"missing_columns": "keep"}, {"source": {"type": "files", "path": "x", "format": "ndjson", "options": {"allowComments": True}}}, {"source.options.allowComments": "true beside missing_columns: keep"}),
        (ROWS, UPSERT | {"on_missing": "delete", "max_deleted": "5%"}, {}, {"target.on_missing": "delete without source.complete", "target.max_deleted": "5% without source.complete"}),
        (ROWS, UPSERT | {"on_missing": "delete"}, COMPLETE, {"source.complete": "true beside a column watermark"}),
        (WHOLE, {"load": "overwrite"}, COMPLETE, {"source.complete": "true beside load: overwrite"}),
        (WHOLE, UPSERT, COMPLETE, {"target.on_missing": "nothing"}),
        (WHOLE, UPSERT | {"on_missing": "retire"}, COMPLETE, {"target.on_missing": "retire"}),
        (WHOLE, SCD2 | {"on_missing": "delete"}, COMPLETE, {"target.on_missing": "delete"}),
        (WHOLE, UPSERT | {"on_missing": "keep", "max_deleted": "5%"}, COMPLETE, {"target.max_deleted": "5% beside on_missing: keep"}),
        (WHOLE, UPSERT | {"on_missing": "delete", "insert_only": True}, COMPLETE, {"target.insert_only": "insert_only beside on_missing: delete"}),
        (EXPORTS, UPSERT | {"on_missing": "delete"}, {"watermark": {"partial": True}}, {"watermark.partial": "true beside source.complete"}),
        (EXPORTS, UPSERT | {"on_missing": "delete"}, {"watermark": {"reread": "whole", "grace": "P1D"}}, {"watermark.grace": "a grace beside source.complete"}),
        (ROWS, UPSERT | {"insert_only": True, "immutable": ["a"]}, {}, {"target.immutable": "a beside insert_only: true"}),
        (ROWS, UPSERT | {"immutable": ["a", "Id"]}, {}, {"target.immutable": "Id, which is also in merge_keys"}),
        (ROWS, UPSERT | {"immutable": ["AT"]}, {}, {"target.immutable": "AT, by which rows are ordered"}),
        (FILES, UPSERT | {"immutable": ["_source_file"]}, {}, {"target.immutable": "_source_file, by which rows are ordered"}),
        (WINDOWS, UPSERT | {"immutable": ["at"]}, {}, {"target.immutable": "at, by which rows are ordered"}),
        (ROWS, SCD2 | {"track": ["a"], "ignore": ["b"]}, {}, {"target.ignore": "b beside track: a"}),
        (ROWS, SCD2 | {"track": ["a", "ID"]}, {}, {"target.track": "ID, which is also in merge_keys"}),
        (ROWS, SCD2 | {"ignore": ["At"]}, {}, {"target.ignore": "At, which is also in effective_column"}),
        (ROWS, SCD2 | {"track": ["_run_id"]}, {}, {"target.track": "_run_id"}),
        (ROWS, SCD2 | {"names": {"valid_from": "AT"}}, {}, {"target.names.valid_from": "AT, which is the effective_column"}),
        (ROWS, SCD2 | {"names": {"valid_to": "_Run_Id"}}, {}, {"target.names.valid_to": "_Run_Id, which is a column that each load adds"}),
        (ROWS, SCD2 | {"names": {"valid_to": "x", "is_current": "X"}}, {}, {"target.names.is_current": "X, which is names.valid_to, too"}),
        (ROWS, SCD2 | {"format": "iceberg", "names": {"is_deleted": "_commit"}}, {}, {"target.names.is_deleted": "_commit, which is a column of format: iceberg"}),
        (ROWS, SCD2 | {"names": {"is_current": "_strandline_x"}}, {}, {"target.names.is_current": "_strandline_x, which is a name that Strandline's own queries use"}),
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


@pytest.mark.parametrize("target", [UPSERT, BY_KEYS, SCD2])
def test_a_load_by_keys_names_the_column_of_the_rows_that_delete(target: dict[str, Any]) -> None:
    plain = load_for_target(Target.model_validate(target), NOTHING, ())
    deleting = load_for_target(Target.model_validate(target | {"delete_when": "gone"}), NOTHING, ())
    assert (helper_columns(plain), helper_columns(deleting)) == ((), (DELETES_COLUMN,))
    assert isinstance(plain, Upsert | ReplaceKeys | Scd2)
    assert replace(plain, deletes=DELETES_COLUMN) == deleting


def test_versions_are_not_told_apart_by_the_watermark_or_by_where_a_row_came_from() -> None:
    load = load_for_target(Target.model_validate(SCD2), NOTHING, (OrderByColumn("seen"),))
    ignored = ("seen", "_source_file", "_ingested_at", "_run_id")
    assert load == Scd2(("id",), "at", (OrderByColumn("seen"),), ignored)


def test_versions_are_told_apart_by_what_a_target_tracks_or_does_not_ignore() -> None:
    ignores = load_for_target(Target.model_validate(SCD2 | {"ignore": ["note"]}), NOTHING, ())
    assert isinstance(ignores, Scd2)
    assert (ignores.ignored[-1], ignores.tracked) == ("note", None)
    tracks = load_for_target(Target.model_validate(SCD2 | {"track": ["price"]}), NOTHING, ())
    assert isinstance(tracks, Scd2)
    assert tracks.tracked == ("price",)


@pytest.mark.parametrize(
    ("text", "data_type", "expected"),
    [
        (dt.date(9999, 12, 31), "date", "9999-12-31"),
        ("9999-12-31", "timestamp", "9999-12-31T00:00:00+00:00"),
        ("9999-12-31T01:00:00+01:00", "timestamp", "9999-12-31T00:00:00+00:00"),
        ("9999-12-31", "timestamp_ntz", "9999-12-31T00:00:00"),
        (99, "bigint", "99"),
        ("9.50", "decimal(10,2)", "9.50"),
        ("never", "string", "never"),
        ("9999-12-31T00:00:00", "date", None),
        ("9999-12-31T00:00:00Z", "timestamp_ntz", None),
        ("never", "timestamp", None),
        ("9.5", "int", None),
        ("NaN", "double", None),
        ("x", "decimal(10,2)", None),
        ("1", "binary", None),
    ],
)
def test_an_open_end_is_a_value_of_the_effective_column(
    text: Any, data_type: str, expected: str | None
) -> None:
    target = Target.model_validate(SCD2 | {"open_end": text})
    assert target.open_end is not None
    assert end_value(target.open_end, data_type) == expected


@pytest.mark.parametrize("share", ["101%", "20", "-1%", 20])
def test_a_share_is_a_percentage(share: Any) -> None:
    with pytest.raises(ValueError, match="a percentage from 0% to 100%"):
        Target.model_validate(UPSERT | {"on_missing": "delete", "max_deleted": share})
