"""Write the new addresses of a moved Iceberg table: metadata, manifest lists and manifests.

Iceberg names each file by its whole address. Its own ``rewrite_table_path`` reads the table at the old
address, so that it only helps before a move.

No existing file is changed. Rewritten files get names that depend on the new address alone, so that a
relocation that was stopped writes the same ones again. One new version of the metadata makes them the
table, after all rows were read through them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from partitions.errors import TargetError, shorten_to_line
from partitions.plan import pluralize
from resources.connections.places import Place
from resources.tables.contract.relocation import Relocation
from resources.tables.iceberg.avro_containers import AvroContainer
from resources.tables.iceberg.catalog import strip_file_scheme
from resources.tables.iceberg.metadata import Metadata, next_timestamp

_DATA, _POSITION_DELETES = 0, 1
"""Contents of a file in a manifest; 2 are deletes by values, which name no file."""
_DELETED = 2
"""Status of a manifest's entry whose file is no longer part of the table."""
_RELOCATED = re.compile(r"-at-[0-9a-f]{8}$")
_S3 = re.compile(r"^s3[an]?://")


@dataclass(frozen=True)
class Move:
    """The old and the new address of a table.

    Attributes:
        before: old address, as :func:`plain_address` spells it.
        after: new address, as Spark spells it.
    """

    before: str
    after: str

    def key(self, address: str) -> str | None:
        """Return a file's path below the table; None if it lay elsewhere."""
        plain = plain_address(address)
        return plain.removeprefix(f"{self.before}/") if plain.startswith(f"{self.before}/") else None

    def moved(self, address: str) -> str:
        """Return a file's new address; the same if it lay outside of the table."""
        key = self.key(address)
        if key is None:
            return self.after if plain_address(address) == self.before else address
        return f"{self.after}/{key}"

    def renamed(self, address: str) -> str:
        """Return the new address of a rewritten Avro file, whose name tells where it belongs."""
        folder, _, name = self.moved(address).rpartition("/")
        stem = _RELOCATED.sub("", name.removesuffix(".avro"))
        return f"{folder}/{stem}-at-{sha256(self.after.encode()).hexdigest()[:8]}.avro"


def plain_address(address: str) -> str:
    """Return an address in one spelling, whichever scheme a client of the catalog gave it."""
    return _S3.sub("s3a://", strip_file_scheme(address)).rstrip("/")


@dataclass
class MovedTable:
    """A table whose metadata names another address. Reading it writes nothing.

    Attributes:
        place: place of the table.
        metadata: its newest metadata, with old addresses.
        remarks: more for people to know.
    """

    place: Place
    metadata: Metadata
    remarks: tuple[str, ...] = ()
    rewritten: dict[str, bytes] = field(default_factory=dict)
    """Rewritten Avro files by their path below the table."""
    files: dict[str, int] = field(default_factory=dict)
    """Sizes of the data files of all versions, by their path below the table."""
    rows: int = 0
    _manifests: dict[str, tuple[str, int, int]] = field(default_factory=dict)

    @cached_property
    def move(self) -> Move:
        """Old and new address of the table."""
        return Move(plain_address(self.metadata.table_location), self.place.spark_url)

    def plan(self) -> Relocation:
        """Rewrite manifests and their lists in memory, check each data file, and return the relocation.

        Raises:
            TargetError: a file is missing, or has addresses that cannot be rewritten.
        """
        for snapshot in self.metadata.raw.get("snapshots") or ():
            rows = self._rewrite_list(snapshot)
            if snapshot["snapshot-id"] == self.metadata.raw.get("current-snapshot-id"):
                self.rows = rows
        self._check_files()
        return Relocation(
            self.move.before,
            self.move.after,
            len(self.metadata.raw.get("snapshots") or ()),
            len(self.files),
            sum(self.files.values()),
            self.rows,
            self.remarks,
        )

    def new_metadata(self) -> dict[str, Any]:
        """Return the JSON of the version with new addresses."""
        raw, moved = self.metadata.raw, self.move.moved
        properties = {key: moved(value) for key, value in self.metadata.properties.items()}
        statistics = {
            name: [{**item, "statistics-path": moved(item["statistics-path"])} for item in raw[name]]
            for name in ("statistics", "partition-statistics")
            if raw.get(name)
        }
        snapshots = [
            {**snapshot, "manifest-list": self.move.renamed(snapshot["manifest-list"])}
            for snapshot in raw.get("snapshots") or ()
        ]
        log = [
            {**version, "metadata-file": moved(version["metadata-file"])}
            for version in raw.get("metadata-log") or ()
        ]
        return {
            **raw,
            **statistics,
            "location": self.move.after,
            "properties": properties,
            "snapshots": snapshots,
            "metadata-log": log,
            "last-updated-ms": next_timestamp(self.metadata),
        }

    def write(self, raw: Mapping[str, Any]) -> None:
        """Write the rewritten files, and read all rows back through them before the catalog names them.

        Raises:
            TargetError: they cannot be written, or rows are missing.
        """
        from obstore.exceptions import BaseError

        draft = f"metadata/relocated-{sha256(self.move.after.encode()).hexdigest()[:8]}.metadata.json"
        try:
            for key, data in self.rewritten.items():
                self.place.store.put(key, data)
            self.place.store.put(draft, json.dumps(raw).encode())
        except (BaseError, OSError) as error:
            raise self._error(
                f"the new addresses cannot be written: {shorten_to_line(str(error))}"
            ) from error
        try:
            rows = _read_rows(f"{self.move.after}/{draft}", self.metadata.storage)
        except Exception as error:  # pyiceberg and pyarrow raise many kinds
            raise self._error(
                f"the rows cannot be read back: {shorten_to_line(str(error))}. Copy the table again"
            ) from error
        finally:
            with suppress(BaseError, OSError):
                self.place.store.delete(draft)
        if rows != self.rows:
            raise self._error(
                f"expected {pluralize(self.rows, 'row')} in the data files, found {rows:,}: a file was "
                "changed. Copy the table again"
            )

    def _rewrite_list(self, snapshot: Mapping[str, Any]) -> int:
        """Rewrite a snapshot's manifest list with its manifests; return the rows in its data files."""
        if "manifest-list" not in snapshot:
            raise self._error("the format of its metadata is too old (no manifest list)")
        address, rows = snapshot["manifest-list"], 0
        container = self._read(address)
        for record in container.records:
            new_address, length, manifest_rows = self._rewrite_manifest(record["manifest_path"])
            record["manifest_path"], record["manifest_length"] = new_address, length
            rows += manifest_rows
        self._keep(self.move.renamed(address), container)
        return rows

    def _rewrite_manifest(self, address: str) -> tuple[str, int, int]:
        """Rewrite a manifest once; return its new address, its length, and the rows in its data files."""
        if address not in self._manifests:
            container, rows = self._read(address), 0
            for entry in container.records:
                file = entry["data_file"]
                key = self.move.key(file["file_path"])
                if file.get("content", _DATA) == _POSITION_DELETES:
                    raise self._error(
                        f"the file {file['file_path']} lists deleted rows of other files, and cannot be "
                        "rewritten. Move the table back. Merge the deletes into their files "
                        "(`maintenance: {optimize: …}` and `strandline maintain`, then expire the "
                        "older snapshots), and move the table again"
                    )
                file["file_path"] = self.move.moved(file["file_path"])
                if entry["status"] != _DELETED:
                    rows += file["record_count"] if file.get("content", _DATA) == _DATA else 0
                    self.files[key or file["file_path"]] = file["file_size_in_bytes"]
            new_address = self.move.renamed(address)
            self._manifests[address] = (new_address, self._keep(new_address, container), rows)
        return self._manifests[address]

    def _read(self, address: str) -> AvroContainer:
        from obstore.exceptions import BaseError

        key = self.move.key(address)
        if key is None:
            raise self._error(f"the metadata file {address} lies outside of {self.move.before}")
        try:
            return AvroContainer.parse(bytes(self.place.store.get(key).bytes()))
        except (BaseError, OSError) as error:
            raise self._missing(key) from error
        except (ValueError, EOFError, KeyError) as error:
            raise self._error(f"{key} cannot be read: {shorten_to_line(str(error))}") from error

    def _keep(self, address: str, container: AvroContainer) -> int:
        """Keep a rewritten file until it is written; return its length."""
        data = container.encode()
        self.rewritten[address.removeprefix(f"{self.move.after}/")] = data
        return len(data)

    def _check_files(self) -> None:
        sizes = _sizes_below(self.place)
        for key, size in self.files.items():
            if key not in sizes:
                raise self._missing(key)
            if sizes[key] != size:
                raise self._error(
                    f"expected {key} with {size:,} bytes, found {sizes[key]:,}: the copy is incomplete. "
                    "Copy the file again"
                )

    def _missing(self, key: str) -> TargetError:
        if key.startswith("/") or "://" in key:
            return self._error(f"the data file {key} lies outside of {self.move.before}")
        return self._error(
            f"expected the file {key}, found none. Copy it from {self.move.before}, and run `strandline "
            "relocate` again"
        )

    def _error(self, problem: str) -> TargetError:
        return TargetError(f"table {self.place} cannot be relocated: {problem}. Nothing was changed")


def _sizes_below(place: Place) -> dict[str, int]:
    """Return the size of each file below a place, by its path."""
    if place.local is None:
        return {meta["path"]: meta["size"] for page in place.store.list() for meta in page}
    root = str(place.local)
    paths = (
        os.path.join(parent, name)  # noqa: PTH118 - names alone
        for parent, _, names in os.walk(root)
        for name in names
    )
    return {os.path.relpath(path, root): os.path.getsize(path) for path in paths}  # noqa: PTH202


def _read_rows(location: str, storage: Mapping[str, str]) -> int:
    """Read each data file of the newest version that a metadata file names, and count the rows.

    Files of other formats than Parquet count as their manifests say.
    """
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location, dict(storage))
    snapshot, rows = table.current_snapshot(), 0
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        for entry in manifest.fetch_manifest_entry(table.io):
            file = entry.data_file
            if file.content != DataFileContent.DATA:
                continue
            if file.file_format != FileFormat.PARQUET:
                rows += file.record_count
                continue
            with table.io.new_input(file.file_path).open() as stream:
                rows += sum(batch.num_rows for batch in pq.ParquetFile(stream).iter_batches())
    return rows
