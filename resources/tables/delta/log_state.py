"""Read the state of a Delta version from its log: columns, protocol, files with deletion vectors.

deltalake does not list the descriptors of deletion vectors, which a reader of single files needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from partitions.errors import NeedsDecision
from resources.tables.delta.log import DeltaLog, LogCheckpoint, commit_name, version_of

if TYPE_CHECKING:
    import pyarrow as pa

Action = Mapping[str, Any]

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:(\d{10})\.(\d{10})\.|[0-9a-f-]{36}\.)?(parquet|json)")
_FILE_FIELDS = ("path", "partitionValues", "size", "modificationTime", "stats", "deletionVector")
_MAPS = ("partitionValues", "configuration", "options")
"""Fields that Parquet holds as maps, which Arrow returns as lists of pairs."""
_TABLE_ACTIONS = (b'{"metaData"', b'{"protocol"')
_FILE_ACTIONS = (b'{"add"', b'{"remove"')
_MAX_READERS = 16


@dataclass(frozen=True)
class LogState:
    """The state of one version.

    Attributes:
        metadata: the action that sets columns and properties.
        protocol: the action that sets the needed features.
        files: actions that add the version's data files; empty if they were not asked for.
    """

    metadata: Action
    protocol: Action
    files: tuple[Action, ...] = ()

    @property
    def table_id(self) -> str:
        """Id of the table."""
        return str(self.metadata["id"])


class StateReader:
    """Reads the states of versions; of a later one only the commits since the one before."""

    def __init__(self, log: DeltaLog) -> None:
        """Use a log; nothing is read yet."""
        self._log = log
        self._version: int | None = None
        self._state: LogState | None = None

    def at(self, version: int) -> LogState:
        """Return the columns and the protocol of a version; see :func:`read_state`."""
        if self._state is None or self._version is None or version < self._version:
            self._state = read_state(self._log, version)
        else:
            for later in range(self._version + 1, version + 1):
                for action in self._log.actions(later, *_TABLE_ACTIONS):
                    self._state = replace(
                        self._state,
                        metadata=action.get("metaData", self._state.metadata),
                        protocol=action.get("protocol", self._state.protocol),
                    )
        self._version = version
        return self._state


def file_key(action: Action) -> tuple[str, str]:
    """Return what identifies a data file within a version: its path and its deletion vector."""
    vector = action.get("deletionVector") or {}
    text = "".join(str(vector.get(name) or "") for name in ("storageType", "pathOrInlineDv", "offset"))
    return unquote(action["path"]), text


def read_state(log: DeltaLog, version: int, *, with_files: bool = False) -> LogState:
    """Return the state of a version, from the newest checkpoint before it and the commits since.

    Raises:
        NeedsDecision: code ``versions_gone``: the log no longer has it.
        TargetError: the log cannot be read.
    """
    checkpoint = _checkpoint_before(log, version)
    versions = range(checkpoint.version + 1, version + 1)
    prefixes = _TABLE_ACTIONS + (_FILE_ACTIONS if with_files else ())
    table: dict[str, Action] = {}
    files: dict[tuple[str, str], Action] = {}
    for actions in (
        *_checkpoint_actions(log, checkpoint.names, with_files=with_files),
        *_commits(log, versions, prefixes),
    ):
        for action in actions:
            ((name, content),) = action.items()
            if name == "add":
                files[file_key(content)] = content
            elif name == "remove":
                files.pop(file_key(content), None)
            else:
                table[name] = content
    return LogState(table["metaData"], table["protocol"], tuple(files.values()))


def _commits(
    log: DeltaLog, versions: Sequence[int], prefixes: Sequence[bytes]
) -> Iterator[Sequence[Mapping[str, Action]]]:
    """Yield the actions of commits in order; those that remove files come first in each."""

    def read(version: int) -> list[dict[str, Any]]:
        return sorted(log.actions(version, *prefixes), key=lambda action: "remove" not in action)

    if log.place.local is not None:
        yield from map(read, versions)
        return
    with ThreadPoolExecutor(_MAX_READERS) as pool:
        yield from pool.map(read, versions)


def _has_locally(log: DeltaLog, names: Sequence[str]) -> bool:
    """Return whether the log of a local table has all of these files, without a listing."""
    folder = log.place.local
    return folder is not None and all((folder / "_delta_log" / name).exists() for name in names)


def _checkpoint_before(log: DeltaLog, version: int) -> LogCheckpoint:
    """Return a checkpoint up to a version such that the log has all commits between the two.

    In a local folder the files that the log's note implies are looked up by name: the folder may have
    thousands of others, and cannot be listed from a name on.

    Raises:
        NeedsDecision: code ``versions_gone``: there is none.
    """
    noted = log.last_checkpoint()
    if noted is not None and noted.version > version:
        noted = None
    if noted is not None:
        commits = map(commit_name, range(noted.version + 1, version + 1))
        if _has_locally(log, [*noted.names, *commits]):
            return noted
    for since in (None,) if noted is None else (noted.version - 1, None):  # the note may be wrong
        names = log.names(since)
        checkpoint = _newest_checkpoint(names, version)
        numbers = {version_of(name) for name in names}
        if numbers.issuperset(range(checkpoint.version + 1, version + 1)):
            return checkpoint
    raise NeedsDecision(
        f"table {log.place}: expected version {version} in its log, found that commits before it, without a "
        "checkpoint of them, were cleaned",
        code="versions_gone",
    )


def _newest_checkpoint(names: Iterable[str], version: int) -> LogCheckpoint:
    """Return the newest complete checkpoint up to a version; one of version -1 if there is none."""
    parts: dict[tuple[int, str], list[str]] = {}
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match is not None and int(match[1]) <= version:
            # the parts of one checkpoint belong together, any other file is a checkpoint of its own
            parts.setdefault((int(match[1]), match[3] or f"1 {name}"), []).append(name)
    complete = [
        LogCheckpoint(number, tuple(sorted(files)))
        for (number, count), files in parts.items()
        if len(files) == int(count.partition(" ")[0])
    ]
    return max(complete, default=LogCheckpoint(-1, ()))


def _checkpoint_actions(
    log: DeltaLog, paths: Sequence[str], *, with_files: bool
) -> Iterator[Sequence[Mapping[str, Action]]]:
    for path in paths:
        sidecars: list[str] = []
        if path.endswith(".json"):
            lines = log.read_parquet(path).read().splitlines()
            actions = [json.loads(line) for line in lines]
            sidecars = [action["sidecar"]["path"] for action in actions if "sidecar" in action]
            names = ("metaData", "protocol", *(["add"] if with_files else []))
            yield [action for action in actions if next(iter(action)) in names]
        else:
            yield _read_actions(log, path, with_files=with_files)
            if with_files:
                sidecars = _sidecars_of(log, path)
        for sidecar in sidecars if with_files else ():
            yield _read_actions(log, f"_sidecars/{sidecar}", with_files=True, with_table=False)


def _read_actions(
    log: DeltaLog, path: str, *, with_files: bool, with_table: bool = True
) -> list[Mapping[str, Action]]:
    """Return actions of a checkpoint's Parquet file."""
    import pyarrow.parquet as pq

    names = [*(["metaData", "protocol"] if with_table else []), *(["add"] if with_files else [])]
    with log.read_parquet(path) as file:
        parquet = pq.ParquetFile(file)
        fields = {field.name: field.type for field in parquet.schema_arrow}
        actions: list[Mapping[str, Action]] = []
        for name in names:
            if name not in fields:
                continue
            inner = [field.name for field in fields[name]]
            columns = [f"{name}.{field}" for field in inner if name != "add" or field in _FILE_FIELDS]
            column = parquet.read(columns=columns).column(name).drop_null()
            actions += [{name: _plain(value)} for value in _struct_values(column)]
    return actions


def _struct_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column of structs, without those of which every field is NULL."""
    values: list[Any] = column.to_pylist()
    return [value for value in values if any(item is not None for item in value.values())]


def _sidecars_of(log: DeltaLog, path: str) -> list[str]:
    import pyarrow.parquet as pq

    with log.read_parquet(path) as file:
        parquet = pq.ParquetFile(file)
        if "sidecar" not in parquet.schema_arrow.names:
            return []
        column = parquet.read(columns=["sidecar.path"]).column("sidecar").drop_null()
    return [value["path"] for value in column.to_pylist() if value["path"] is not None]


def _plain(value: Any) -> Any:
    """Return a value of a checkpoint as commits have it: maps as objects, fields without NULL."""
    if isinstance(value, dict):
        return {
            name: dict(item) if name in _MAPS else _plain(item)
            for name, item in value.items()
            if item is not None
        }
    return value
