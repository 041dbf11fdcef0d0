"""Commits of an Iceberg table as its metadata tells them, without Spark."""

from __future__ import annotations

import json
from typing import Any

from partitions.loads import Append, Load, ReplaceAll, Upsert
from resources.tables.contract.commits import Tag
from resources.tables.iceberg.commit import IcebergCommit, group_commits, summary_of
from resources.tables.iceberg.metadata import Metadata, sequence_of, spark_schema
from resources.tables.iceberg.refs import RefChange


def _snapshot(number: int, parent: int | None, rows: int, added: int = 0, **summary: Any) -> dict[str, Any]:
    given = {key: str(value) for key, value in summary.items()}
    counts = {"total-records": str(rows), "added-records": str(added), "added-data-files": str(min(added, 1))}
    return {
        "snapshot-id": number * 100,
        "parent-snapshot-id": parent and parent * 100,
        "sequence-number": number,
        "summary": {"operation": "overwrite", **counts, **given},
    }


def _ours(number: int, load: Load | None, base: int | None = None) -> dict[str, str]:
    text = json.dumps({"strandline": {"owner": f"o{number}", "number": number}})
    return summary_of(Tag("app", number, f"o{number}"), text, load, base and base * 100)


def _metadata(*snapshots: dict[str, Any], **more: Any) -> Metadata:
    raw = {
        "snapshots": list(snapshots),
        "current-snapshot-id": snapshots[-1]["snapshot-id"],
        "last-updated-ms": 1,
    }
    return Metadata(raw | more, "v1.metadata.json", 1)


def _commits(*snapshots: dict[str, Any]) -> list[IcebergCommit]:
    return group_commits(_metadata(*snapshots).lineage())


def test_snapshots_between_a_commit_and_its_base_are_parts_of_it() -> None:
    commits = _commits(
        _snapshot(1, None, 3, 3, **_ours(1, Append())),
        _snapshot(2, 1, 1),
        _snapshot(3, 2, 2, 1, **_ours(2, Upsert(("id",), ()), base=1)),
        _snapshot(4, 3, 3, 1),
    )
    assert [commit.snapshot.sequence for commit in commits] == [1, 3, 4]
    second = commits[1].as_tagged
    assert (second.follows, second.rows, second.removed, second.uncounted) == ("1-100", 1, 2, False)
    assert [commit.app_id for commit in commits] == ["app", "app", None]


def test_a_commit_whose_base_was_expired_is_the_first_that_is_known() -> None:
    (commit,) = _commits(_snapshot(2, 1, 1), _snapshot(3, 2, 2, 1, **_ours(2, Append(), base=1)))
    assert (commit.before, commit.follows, commit.number) == (None, 100, 2)


def test_an_append_without_files_is_no_commit_of_its_number() -> None:
    commits = _commits(
        _snapshot(1, None, 1, 1, **_ours(1, Append())), _snapshot(2, 1, 1, 0, **_ours(2, Append()))
    )
    assert [commit.app_id for commit in commits] == ["app", None]


def test_a_fence_changes_no_row_and_a_replacement_of_all_rows_removes_all() -> None:
    commits = _commits(
        _snapshot(1, None, 3, 3, **_ours(1, Append())),
        _snapshot(2, 1, 3, 0, **_ours(2, None, base=1), **{"deleted-data-files": 1}),
        _snapshot(3, 2, 1, 1, **_ours(3, ReplaceAll(), base=2), **{"deleted-data-files": 1}),
    )
    assert [(each.as_tagged.rows, each.as_tagged.removed) for each in commits] == [(3, 0), (0, 0), (1, None)]


def test_rows_that_a_merge_only_moved_are_not_counted_as_written() -> None:
    merged = {
        "deleted-data-files": 1,
        "spark.merge-into.num-target-rows-inserted": 1,
        "spark.merge-into.num-target-rows-updated": 1,
    }
    commits = _commits(
        _snapshot(1, None, 10, 10, **_ours(1, Append())),
        _snapshot(2, 1, 11, 11, **_ours(2, Upsert(("id",), ()), base=1), **merged),
    )
    assert (commits[1].as_tagged.rows, commits[1].as_tagged.removed) == (2, 1)
    unknown = _snapshot(2, 1, 11, 11, **_ours(2, Upsert(("id",), ()), base=1), **{"deleted-data-files": 1})
    assert _commits(_snapshot(1, None, 10, 10), unknown)[1].as_tagged.uncounted


def test_a_tag_is_the_next_version_of_the_metadata() -> None:
    before = _metadata(_snapshot(1, None, 1))
    change = RefChange(tags={"strandline_flow": 100})
    after = change.apply(before)
    assert after["refs"] == {"strandline_flow": {"snapshot-id": 100, "type": "tag"}}
    assert after["metadata-log"] == [{"timestamp-ms": 1, "metadata-file": before.location}]
    assert after["snapshots"] == before.raw["snapshots"]
    assert not change.is_done(before)
    assert change.is_done(Metadata(after, "v2.metadata.json"))


def test_a_branch_is_made_and_dropped_in_one_version() -> None:
    metadata = _metadata(_snapshot(1, None, 1))
    (snapshot,) = metadata.snapshots
    left = Metadata(RefChange({}, {"left": snapshot}).apply(metadata), "v2.metadata.json")
    change = RefChange({}, {"new": snapshot}, ("left", "never there"))
    assert change.is_possible(left)
    assert change.apply(left)["refs"] == {"new": {"snapshot-id": snapshot, "type": "branch"}}
    assert not RefChange({}, {"new": snapshot + 1}).is_possible(left)


def test_readers_are_shown_another_snapshot_only_if_they_see_the_one_that_it_follows() -> None:
    found = _metadata(_snapshot(1, None, 1), _snapshot(2, 1, 2))
    first, second = found.snapshots
    main = {"snapshot-id": first, "type": "branch", "max-snapshot-age-ms": 7}
    refs = {"main": main, "own": {"snapshot-id": second, "type": "branch"}}
    before = Metadata({**found.raw, "refs": refs, "current-snapshot-id": first}, "v1.metadata.json")
    change = RefChange(branches={"main": second}, dropped=("own",), expected_main=first)
    assert change.is_possible(before)
    after = change.apply(before)
    assert after["refs"] == {"main": {**main, "snapshot-id": second}}
    assert (after["current-snapshot-id"], after["snapshot-log"][-1]["snapshot-id"]) == (second, second)
    shown = Metadata(after, "v2.metadata.json")
    assert change.is_done(shown)
    assert not change.is_possible(shown)


def test_versions_are_ordered_by_their_number() -> None:
    assert [sequence_of(version) for version in ("9-5", "10-1", "0-a-b")] == [9, 10, 0]


def test_columns_are_told_in_sparks_words() -> None:
    def field(name: str, kind: Any, *, required: bool = False) -> dict[str, Any]:
        return {"id": 1, "name": name, "type": kind, "required": required}

    nested = {"type": "struct", "fields": [field("x", "timestamptz")]}
    values = {"type": "list", "element-id": 2, "element": "timestamp", "element-required": False}
    pairs = {"type": "map", "key": "string", "value": nested, "value-required": True}
    schema = {
        "type": "struct",
        "fields": [
            field("a", "int", required=True),
            field("d", "decimal(9, 2)"),
            field("l", values),
            field("m", pairs),
        ],
    }
    told = {made["name"]: (made["type"], made["nullable"]) for made in spark_schema(schema)["fields"]}
    inner = [{"name": "x", "type": "timestamp", "nullable": True, "metadata": {}}]
    assert told == {
        "a": ("integer", False),
        "d": ("decimal(9,2)", True),
        "l": ({"type": "array", "elementType": "timestamp_ntz", "containsNull": True}, True),
        "m": (
            {
                "type": "map",
                "keyType": "string",
                "valueType": {"type": "struct", "fields": inner},
                "valueContainsNull": False,
            },
            True,
        ),
    }
