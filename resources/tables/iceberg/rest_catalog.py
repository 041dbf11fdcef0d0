"""The catalog of Iceberg tables on a server with Iceberg's REST protocol.

The server replaces metadata only if the table meets the requirements of the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from partitions.errors import TargetError, WriteConflict, shorten_to_line
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.places import Place
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.catalog import LOCAL_FILES, SqlNames, key_below
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
        table = self._load()
        if table is None:
            return None
        self._check_location(table.metadata_location)
        return self._metadata(table)

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
