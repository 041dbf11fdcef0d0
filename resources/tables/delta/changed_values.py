"""Describe the files that commits of a Delta table add and remove, as Arrow reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from resources.connections.places import Place
from resources.tables.contract.changed_file import CHANGE_TYPE, ChangedFile
from resources.tables.contract.commit_log import LoggedCommit
from resources.tables.data_files.located import locate
from resources.tables.data_files.time_bounds import time_bounds, time_of
from resources.tables.delta.changed_files import DeltaFileRead, changed_files
from resources.tables.delta.deletion_vectors import deleted_positions
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.log_state import LogState

if TYPE_CHECKING:
    import pyarrow as pa


def described_files(log: DeltaLog, commits: Sequence[LoggedCommit]) -> list[ChangedFile]:
    """Return the files that hold the rows which commits change."""
    return [_described(log.place, read) for read in changed_files(log, commits, inserts_only=False)]


def _described(table: Place, read: DeltaFileRead) -> ChangedFile:
    place, path = locate(table, str(read.file["path"]), is_escaped=True)
    types, logical = _columns(read.state)
    values = {
        logical.get(name, name): _partition_value(text, types.get(logical.get(name, name)))
        for name, text in (read.file.get("partitionValues") or {}).items()
    }
    vector = read.file.get("deletionVector")
    return ChangedFile(
        read.version,
        read.sign,
        place,
        path,
        int(read.file.get("size") or 0),
        _names(logical if read.sign else {**logical, CHANGE_TYPE: CHANGE_TYPE}),
        values,
        time_bounds(read.file.get("stats"), types, logical),
        partial(deleted_positions, table, vector) if vector else None,
    )


def _names(logical: Mapping[str, str]) -> Callable[[pa.Schema], Sequence[str | None]]:
    """Return a function that names a file's columns as the table does.

    With a feed Spark keeps columns of its own beside them, such as ``__is_cdc``.
    """
    by_name = {physical.casefold(): name for physical, name in logical.items()}
    return lambda schema: [by_name.get(name.casefold()) for name in schema.names]


def _columns(state: LogState) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the types of columns, and their names by the names that files have for them."""
    fields = json.loads(state.metadata["schemaString"])["fields"]
    names = {
        (field.get("metadata") or {}).get("delta.columnMapping.physicalName", field["name"]): field["name"]
        for field in fields
    }
    return {field["name"]: field["type"] for field in fields}, names


def _partition_value(text: str | None, data_type: Any) -> Any:
    return None if not text else (time_of(text) or text) if data_type == "date" else text
