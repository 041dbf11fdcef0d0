"""The data files of Iceberg snapshots, each with the delete files that apply to it.

The entries of manifests do not tell by which snapshot a file came: some writers stamp that wrongly. So two
snapshots are compared as sets. A file to which other deletes apply is another file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from partitions.errors import NeedsDecision, SourceError, shorten_to_line
from resources.tables.iceberg.avro_containers import AvroContainer
from resources.tables.iceberg.metadata import Metadata

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

Record = Mapping[str, Any]

_DELETED = 2
"""Status of a manifest entry whose file is no longer part of the table."""
EQUALITY = 2
"""Content of a file of equality deletes."""
_PATH_FIELD = 2147483546
"""Id of the column of a position delete file with the path of the data file."""
_MAX_READERS = 16


@dataclass(frozen=True)
class ParsedManifest:
    """A manifest with its entries.

    Attributes:
        record: its record in the manifest list.
        container: the file.
    """

    record: Record
    container: AvroContainer


@dataclass(frozen=True)
class LiveFile:
    """A data file or delete file of a snapshot.

    Attributes:
        manifest: manifest that names it.
        entry: its entry there, with the inherited sequence numbers.
        deletes: delete files that apply to it.
    """

    manifest: ParsedManifest
    entry: Record
    deletes: tuple[LiveFile, ...] = ()

    @property
    def file(self) -> Record:
        """Description of the file."""
        described: Record = self.entry["data_file"]
        return described

    @property
    def path(self) -> str:
        """Address of the file."""
        return str(self.file["file_path"])

    @property
    def sequence(self) -> int:
        """Sequence number of its data."""
        return int(self.entry.get("sequence_number") or 0)

    @property
    def key(self) -> tuple[Any, ...]:
        """Identity: several deletion vectors may lie in one file."""
        return (self.path, self.file.get("content_offset"))

    @property
    def state(self) -> tuple[str, frozenset[tuple[Any, ...]]]:
        """Identity of its rows: the file and the deletes that apply to it."""
        return self.path, frozenset(delete.key for delete in self.deletes)

    @property
    def partition(self) -> tuple[int, str]:
        """Partition spec and values, as they compare."""
        return int(self.manifest.record["partition_spec_id"]), repr(self.file.get("partition"))


@dataclass
class FileSets:
    """Reads the files of snapshots; each manifest once.

    Attributes:
        metadata: metadata of the table.
    """

    metadata: Metadata
    _manifests: dict[str, ParsedManifest] = field(default_factory=dict)
    _lists: dict[int, list[Record]] = field(default_factory=dict)
    _headers: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def files(self, snapshot: int) -> list[LiveFile]:
        """Return all data files of a snapshot with their deletes.

        Raises:
            NeedsDecision: code ``versions_gone``: the snapshot was expired.
            SourceError: a manifest cannot be read.
        """
        return self._with_deletes(self._list(snapshot))

    def difference(self, before: int | None, after: int) -> tuple[list[LiveFile], list[LiveFile]]:
        """Return the files that only the snapshot before has, and those that only the one after has.

        Manifests that both snapshots have are read only if their delete files differ.
        """
        lists = [self._list(before) if before is not None else [], self._list(after)]
        deletes = [
            {record["manifest_path"] for record in records if record.get("content")} for records in lists
        ]
        if deletes[0] == deletes[1]:
            common = {record["manifest_path"] for record in lists[0]} & {
                record["manifest_path"] for record in lists[1]
            }
            lists = [
                [
                    record
                    for record in records
                    if record.get("content") or record["manifest_path"] not in common
                ]
                for records in lists
            ]
        files = [self._with_deletes(records) for records in lists]
        states = [{file.state for file in side} for side in files]
        return (
            [file for file in files[0] if file.state not in states[1]],
            [file for file in files[1] if file.state not in states[0]],
        )

    def list_header(self, snapshot: int) -> Mapping[str, Any]:
        """Return the header of a snapshot's manifest list."""
        self._list(snapshot)
        return self._headers[snapshot]

    def _with_deletes(self, records: Sequence[Record]) -> list[LiveFile]:
        manifests = self._read([record for record in records if record.get("content")])
        deletes = _Deletes([file for manifest in manifests for file in _live_files(manifest)])
        return [
            LiveFile(file.manifest, file.entry, deletes.applying_to(file))
            for manifest in self._read([record for record in records if not record.get("content")])
            for file in _live_files(manifest)
        ]

    def _list(self, snapshot: int) -> list[Record]:
        if snapshot not in self._lists:
            raw = next(
                (raw for raw in self.metadata.raw.get("snapshots") or () if raw["snapshot-id"] == snapshot),
                None,
            )
            if raw is None:
                raise NeedsDecision(
                    f"table {self.metadata.table_location}: expected snapshot {snapshot}, from which later snapshots "
                    "differ; found that it was expired before they were read",
                    code="versions_gone",
                )
            container = _parse(self._io, self.metadata, str(raw["manifest-list"]))
            self._lists[snapshot], self._headers[snapshot] = list(container.records), container.header
        return self._lists[snapshot]

    def _read(self, records: Sequence[Record]) -> list[ParsedManifest]:
        missing = [record for record in records if record["manifest_path"] not in self._manifests]
        for record, container in zip(missing, self._parse_all(missing), strict=True):
            self._manifests[record["manifest_path"]] = ParsedManifest(record, container)
        return [self._manifests[record["manifest_path"]] for record in records]

    def _parse_all(self, records: Sequence[Record]) -> list[AvroContainer]:
        io, metadata = self._io, self.metadata
        if "://" not in metadata.location or len(records) < 2:
            return [_parse(io, metadata, record["manifest_path"]) for record in records]
        with ThreadPoolExecutor(_MAX_READERS) as pool:
            return list(pool.map(lambda record: _parse(io, metadata, record["manifest_path"]), records))

    @property
    def _io(self) -> FileIO:
        from pyiceberg.io import load_file_io

        return load_file_io(dict(self.metadata.storage), self.metadata.location)


class _Deletes:
    """The delete files of a snapshot, by what they apply to."""

    def __init__(self, files: Sequence[LiveFile]) -> None:
        self._by_path: dict[str, list[LiveFile]] = {}
        self._by_partition: dict[tuple[int, str], list[LiveFile]] = {}
        self._global: list[LiveFile] = []
        for file in files:
            if path := file.file.get("referenced_data_file"):
                self._by_path.setdefault(path, []).append(file)
            elif not any(value is not None for value in (file.file.get("partition") or {}).values()):
                self._global.append(file)
            else:
                self._by_partition.setdefault(file.partition, []).append(file)

    def applying_to(self, file: LiveFile) -> tuple[LiveFile, ...]:
        """Return the delete files that apply to a data file; of position deletes some that may."""
        candidates = (
            *self._by_path.get(file.path, ()),
            *self._by_partition.get(file.partition, ()),
            *self._global,
        )
        return tuple(delete for delete in candidates if _may_apply(delete, file))


def _may_apply(delete: LiveFile, file: LiveFile) -> bool:
    if delete.file["content"] == EQUALITY:
        return delete.sequence > file.sequence
    lower, upper = (_bound(delete, name) for name in ("lower_bounds", "upper_bounds"))
    path = file.path.encode()
    is_within = (lower is None or lower <= path) and (upper is None or path[: len(upper)] <= upper)
    return delete.sequence >= file.sequence and is_within


def _bound(delete: LiveFile, name: str) -> bytes | None:
    pairs = delete.file.get(name) or ()
    return next((bytes(pair["value"]) for pair in pairs if pair["key"] == _PATH_FIELD), None)


def _live_files(manifest: ParsedManifest) -> Iterator[LiveFile]:
    record = manifest.record
    for entry in manifest.container.records:
        if entry["status"] == _DELETED:
            continue
        inherited: dict[str, Any] = {
            name: entry[name] if entry.get(name) is not None else record.get("sequence_number") or 0
            for name in ("sequence_number", "file_sequence_number")
            if name in entry
        }
        snapshot = entry.get("snapshot_id")
        inherited["snapshot_id"] = record["added_snapshot_id"] if snapshot is None else snapshot
        file = entry["data_file"]
        yield LiveFile(
            manifest, {**entry, **inherited, "data_file": {**file, "content": file.get("content") or 0}}
        )


def _parse(io: FileIO, metadata: Metadata, path: str) -> AvroContainer:
    try:
        with io.new_input(path).open() as stream:
            return AvroContainer.parse(stream.read())
    except FileNotFoundError as error:
        raise NeedsDecision(
            f"table {metadata.table_location}: expected the manifest {path.rpartition('/')[2]}, found none: its "
            "snapshot was expired before it was read",
            code="versions_gone",
        ) from error
    except (OSError, ValueError) as error:
        raise SourceError(
            f"table {metadata.table_location}: its manifest {path.rpartition('/')[2]} cannot be read: "
            f"{shorten_to_line(str(error))}"
        ) from error
