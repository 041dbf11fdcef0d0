"""What a commit of a Delta table counts, as its log file says it."""

from __future__ import annotations

import json
from typing import Any

from resources.tables.delta.commit import DeltaCommit


def _commit(operation: str, metrics: dict[str, int], *adds: dict[str, Any]) -> DeltaCommit:
    info = {"operation": operation, "operationMetrics": {name: str(value) for name, value in metrics.items()}}
    actions: list[dict[str, Any]] = [{"commitInfo": info}, {"txn": {"appId": "app", "version": 7}}]
    actions += [{"add": add} for add in adds]
    return DeltaCommit.parse(
        3, "\n".join(json.dumps(each, separators=(",", ":")) for each in actions).encode()
    )


def test_a_merge_has_written_a_row_that_it_updated_and_removed_it_before() -> None:
    metrics = {
        "numTargetRowsInserted": 5,
        "numTargetRowsUpdated": 3,
        "numTargetRowsDeleted": 2,
        "numTargetRowsCopied": 100,
        "numOutputRows": 108,
        "numTargetFilesRemoved": 1,
        "numTargetBytesAdded": 999,
    }
    tagged = _commit("MERGE", metrics).as_tagged("app")
    assert (tagged.rows, tagged.removed, tagged.bytes, tagged.uncounted) == (8, 5, 999, False)


def test_a_file_that_only_lost_rows_is_none_that_the_commit_added() -> None:
    lost = {"path": "d/old.parquet", "partitionValues": {}, "deletionVector": {"storageType": "u"}}
    new = {"path": "d/new.parquet", "partitionValues": {}}
    assert _commit("MERGE", {}, lost, new).file == "new.parquet"
    assert _commit("MERGE", {}, lost).file is None
