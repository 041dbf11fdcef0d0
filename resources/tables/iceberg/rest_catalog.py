"""The catalog of Iceberg tables on a server with Iceberg's REST protocol.

The server replaces metadata only if the table meets the requirements of the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from partitions.errors import TargetError, WriteConflict, shorten_to_line
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.places import Place
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.catalog import LOCAL_FILES, SqlNames, at_own_place, key_below, strip_file_scheme
from resources.tables.iceberg.folder_metadata import check_not_moved, find_moved_metadata, read_metadata
from resources.tables.iceberg.metadata import MAIN, Metadata
from resources.tables.iceberg.refs import RefChange

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog as Client
    from pyiceberg.table import Table


class RestCatalog(SqlNames):
    """The server's table with the namespace and name of a place: the last two parts of its address."""

    def __init__(self, place: Place, server: RestCatalogServer) -> None:
        """Use a table; it need not exist."""
        self._place, self._server = place, server
        lake, self._namespace, self._table = place.spark_url.rsplit("/", 2)
        self._catalog = f"strandline_{sha256(f'{server} {lake}'.encode()).hexdigest()[:8]}"

    def newest(self) -> Metadata | None:
        """Return the metadata that the server has."""
        try:
            table = self._load()
        except TargetError:  # the server may miss the metadata at the old address
            check_not_moved(self._place)
            raise
        if table is None:
            check_not_moved(self._place)
            return None
        if key_below(self._place, table.metadata_location) is None:
            check_not_moved(self._place)
        self._check_location(table.metadata_location)
        return at_own_place(self._metadata(table), self._place)

    def find_moved(self) -> tuple[Metadata, tuple[str, ...]] | None:
        """Return the metadata that the server names, by its file in the folder, else the newest file's.

        Raises:
            TargetError: the server's table is still at its old address, so that this one is a copy.
        """
        moved = find_moved_metadata(self._place)
        if moved is None:
            return None
        newest_taken = f"the newest metadata file is used: {moved.location}"
        try:
            table = self._load()
        except TargetError as error:
            return moved, (
                f"the catalog cannot read the table at its old address; {newest_taken} ({error.message})",
            )
        if table is None:
            return moved, (f"the catalog does not know the table; {newest_taken}",)
        if self._exists(table.metadata_location):
            raise TargetError(
                f"table {self._place}: expected the only table of its name in the catalog {self._server}, "
                f"found that the catalog still has the table at {table.metadata.location}: this one is a "
                "copy of it. Use another warehouse for this lake, or another target.table"
            )
        listed = read_metadata(self._place, table.metadata_location.rpartition("/")[2])
        return listed or moved, ("the catalog will know the table only at its new address",)

    def publish_moved(self, moved: Metadata, raw: Mapping[str, Any]) -> None:
        """Write the metadata, and have the server take it instead of the one at the old address."""
        from obstore.exceptions import BaseError
        from pyiceberg.exceptions import NoSuchTableError, RESTError

        name = f"{moved.version + 1:05d}-{uuid4()}.metadata.json"
        client, table = _client(self._server), (self._namespace, self._table)
        try:
            self._place.store.put(f"metadata/{name}", json.dumps(raw).encode())
            client.create_namespace_if_not_exists(self._namespace)
            with suppress(NoSuchTableError):
                client.drop_table(table)  # in the catalog alone: no file is removed
            client.register_table(table, f"{self._place.spark_url}/metadata/{name}")
        except (BaseError, RESTError, OSError, ValueError) as error:
            raise self._error("be added to its catalog", error) from None

    def _exists(self, location: str) -> bool:
        """Return whether a metadata file of an old address is still there, by the lake's connection."""
        folder, _, name = strip_file_scheme(location).rpartition("/metadata/")
        address = f"s3://{folder.partition('://')[2]}" if folder.startswith("s3") else folder
        return read_metadata(replace(self._place, url=address), name) is not None

    def _metadata(self, table: Table) -> Metadata:
        raw = json.loads(table.metadata.model_dump_json())
        return Metadata(raw, table.metadata_location, storage=self._place.pyiceberg_options)

    def change_refs(self, change: RefChange) -> bool:
        """Have the server change refs, if they have not changed since they were read."""
        from pyiceberg.exceptions import CommitFailedException, RESTError

        def once() -> bool:
            table = self._load()
            if table is None:
                return False
            before = self._metadata(table)
            if change.is_done(before):
                return True
            if not change.is_possible(before):
                return False
            ref_update = table.manage_snapshots()
            for name, snapshot in change.tags.items():
                ref_update.create_tag(snapshot, name)
            for name, snapshot in change.branches.items():
                existing_ref = table.metadata.refs.get(name)
                ref_update.create_branch(
                    snapshot,
                    name,
                    existing_ref.max_ref_age_ms if existing_ref else None,
                    existing_ref.max_snapshot_age_ms if existing_ref else None,
                    existing_ref.min_snapshots_to_keep if existing_ref else None,
                )
            for name in sorted(set(change.dropped) & before.refs.keys()):
                ref_update.remove_branch(name)
            try:
                ref_update.commit()
            except CommitFailedException as error:
                raise WriteConflict(
                    f"table {self._place}: another writer changed it in the catalog first. Run again"
                ) from error
            except (RESTError, OSError, ValueError) as error:
                raise self._error("change its branches and tags", error) from None
            return True

        return retry_conflicts(once)

    def add_snapshot(self, base: Metadata, snapshot: Mapping[str, Any]) -> bool:
        """Have the server add the snapshot, if readers still see its parent."""
        from pyiceberg.exceptions import CommitFailedException, RESTError
        from pyiceberg.table.refs import SnapshotRefType
        from pyiceberg.table.snapshots import Snapshot
        from pyiceberg.table.update import (
            AddSnapshotUpdate,
            AssertRefSnapshotId,
            AssertTableUUID,
            SetSnapshotRefUpdate,
        )

        table = self._load()
        if table is None or self._metadata(table).raw["last-sequence-number"] >= snapshot["sequence-number"]:
            return False
        new_snapshot = Snapshot.model_validate(snapshot)
        main_ref = table.metadata.refs.get(MAIN)
        main_update = SetSnapshotRefUpdate(
            ref_name=MAIN,
            type=SnapshotRefType.BRANCH,
            snapshot_id=new_snapshot.snapshot_id,
            max_ref_age_ms=main_ref.max_ref_age_ms if main_ref else None,
            max_snapshot_age_ms=main_ref.max_snapshot_age_ms if main_ref else None,
            min_snapshots_to_keep=main_ref.min_snapshots_to_keep if main_ref else None,
        )
        requirements = (
            AssertTableUUID(uuid=UUID(base.uuid)),
            AssertRefSnapshotId(ref=MAIN, snapshot_id=new_snapshot.parent_snapshot_id),
        )
        try:
            table.catalog.commit_table(
                table, requirements, (AddSnapshotUpdate(snapshot=new_snapshot), main_update)
            )
        except CommitFailedException:
            return False
        except (RESTError, OSError, ValueError) as error:
            raise self._error("take a snapshot", error) from None
        return True

    @property
    def new_table_properties(self) -> Mapping[str, str]:
        """Location of the table: the server would choose a place of its own."""
        return {"location": self._place.spark_url}

    @property
    def _settings(self) -> Mapping[str, str]:
        return {
            "type": "rest",
            **self._server.options,
            # Files go through the lake's own connection, as everywhere.
            "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            "cache-enabled": "false",
            **(LOCAL_FILES if self._place.local else {}),
        }

    def _load(self) -> Table | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, RESTError

        try:
            table: Table = _client(self._server).load_table((self._namespace, self._table))
        except (NoSuchNamespaceError, NoSuchTableError):
            return None
        except (
            RESTError,
            OSError,
            ValueError,
        ) as error:  # errors of the server, of HTTP, or of parsing the answer
            raise self._error("be looked up in its catalog", error) from None
        return table

    def _check_location(self, location: str) -> None:
        if key_below(self._place, location) is None:
            raise TargetError(
                f"table {self._place}: expected its metadata below its folder, found it at {location}: the catalog {self._server} has another"
                " table of this name. Use another warehouse for this lake, or another target.table"
            )

    def _error(self, verb: str, error: Exception) -> TargetError:
        message = self._server.hide(shorten_to_line(str(error)))
        return TargetError(
            f"table {self._place}: cannot {verb} (catalog {self._server}): {type(error).__name__}: {message}. Check that the server runs, and the"
            " connection's uri, warehouse and credentials"
        )


@lru_cache(maxsize=8)
def _client(server: RestCatalogServer) -> Client:
    """Return the client of a server, which reads the server's settings once."""
    from pyiceberg.catalog.rest import RestCatalog as Client

    options: dict[str, Any] = server.options
    return Client("strandline", **options)
