"""Lists that belong to entries and intents, stored with their kind, version and columns.

A reader asks for a kind and gets rows of exactly these columns. Anything else stops it: it never guesses a
row's meaning from its length.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from partitions.errors import CorruptWatermark, NeedsDecision


@dataclass(frozen=True)
class ListKind:
    """The meaning of a list's rows.

    Attributes:
        name: stored with the list.
        version: raised with every change of ``columns`` or of the contents of ``head``.
        columns: columns of each row, in order.
    """

    name: str
    version: int
    columns: tuple[str, ...]


INGESTED_FILES = ListKind("files", 1, ("path", "size", "version", "modified", "reason"))
"""The files of an entry; the reason says why a file was skipped, or what a decision did, None if it was loaded."""

CHECKSUMS = "checksums"
"""In the head of a list of files: the computed checksum of each row's file, or None, in the order of the rows."""

KEPT_PATHS = "kept_paths"
"""In the head of a list of files that a rewind reads again: the later files whose rows stay; no such value: all."""

QUARANTINED_FILES = ListKind("quarantine", 1, ("path", "size", "version", "modified", "reason", "released"))
"""All files in quarantine."""

DELETED_ROWS = ListKind("deletes", 1, ("number", "predicate", "columns", "reason", "time"))
"""All deletes in force: the entry's number, the condition, the types of its columns by name, the reason, the time."""

FORGOTTEN_DELETES = ListKind("forgotten", 1, ("number", "predicate"))
"""The conditions of deletes that an operator has ended, each with the number of the newest such entry."""

SEEN_WORK_UNITS = ListKind("observed", 1, ("start", "unit", "rows", "digest"))
"""The observations of work units by a write."""


RULE_COUNTS = ListKind("rules", 1, ("rule", "rows"))
"""The rows of a slice that failed each rule; the head has ``rows``, ``rejected`` and ``digest`` of the rejected rows."""


@dataclass(frozen=True)
class StoredList:
    """A list as it is stored.

    Attributes:
        kind: the meaning of the rows.
        rows: one value per column.
        head: values of the list as a whole.
    """

    kind: ListKind
    rows: Sequence[Sequence[Any]]
    head: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse rows that do not have the columns of the kind."""
        width = len(self.kind.columns)
        odd = next((row for row in self.rows if len(row) != width), None)
        if odd is not None:
            raise ValueError(f"a list of {self.kind.name}: expected rows of {width} values, found {len(odd)}")

    def to_bytes(self) -> bytes:
        """Return the list as gzipped JSON."""
        kind = self.kind
        stored = {
            "list": kind.name,
            "version": kind.version,
            "columns": kind.columns,
            "head": self.head,
            "rows": self.rows,
        }
        return gzip.compress(json.dumps(stored).encode(), compresslevel=6, mtime=0)


def read_list(kind: ListKind, data: bytes | None, key: str) -> StoredList:
    """Parse a list of a kind.

    Raises:
        NeedsDecision: code ``newer_state``: its version or its columns are unknown here.
        CorruptWatermark: it is missing, does not read, or has another kind.
    """
    try:
        stored = json.loads(gzip.decompress(data)) if data is not None else None
    except (OSError, ValueError, EOFError) as error:
        raise _corrupt(key, f"expected gzipped JSON, found something else ({error})") from error
    if not isinstance(stored, dict) or stored.get("list") != kind.name:
        actual = "nothing" if data is None else _describe_list(stored)
        raise _corrupt(key, f"expected a list of {kind.name}, found {actual}")
    if (stored.get("version"), stored.get("columns")) != (kind.version, list(kind.columns)):
        raise NeedsDecision(
            f"list {key}: expected version {kind.version} of a list of {kind.name}, with the columns {', '.join(kind.columns)}; found version"
            f" {stored.get('version')} with {', '.join(map(str, stored.get('columns') or ['none']))}. Another version of Strandline wrote it:"
            " run the one that did. Nothing was read or changed",
            code="newer_state",
            choices=("pip install --upgrade strandline",),
        )
    try:
        return StoredList(kind, stored["rows"], stored["head"])
    except (KeyError, TypeError, ValueError) as error:
        raise _corrupt(key, str(error)) from error


def _corrupt(key: str, fault: str) -> CorruptWatermark:
    return corrupt_object_error(f"list {key}", unquote(key.partition("/")[0]), fault)


def corrupt_object_error(label: str, dataflow: str, fault: str) -> CorruptWatermark:
    """Return the error for a missing or unreadable object beside the entries, with the commands that help."""
    return CorruptWatermark(
        f"{label}: {fault}. Without a copy its contents are lost. Restore the object from a backup; or "
        "run `state adopt` to take the watermark from the table, or `state reset --replace` to reload "
        "the table",
        choices=(
            f"strandline state adopt {dataflow} --reason TEXT",
            f"strandline state reset {dataflow} --replace --reason TEXT",
        ),
    )


def _describe_list(stored: Any) -> str:
    name = stored.get("list") if isinstance(stored, dict) else None
    return f"a list of {name}" if name else f"a JSON {type(stored).__name__} without the name of a list"
