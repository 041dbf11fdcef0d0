"""Move the tables of a dataflow to other names in the same lake (docs/how-to/moving-and-restoring.md)."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.table_names import bad_records_table, side_tables
from resources.connections.places import Place
from resources.listing.failures import folder_failure, store_failures
from resources.listing.removal import is_empty, remove_folder
from resources.tables.contract.relocation import CanRelocate
from resources.tables.registry import open_table

_STAGING = "_staging"
"""The folder beside a layer's tables with the files that Parquet tables do not show."""


def move_tables(lake: Place, dataflow: Dataflow, table: str) -> None:
    """Move a table with those beside it to another name. The same call finishes a stopped move.

    Args:
        lake: the lake.
        dataflow: the dataflow under its old definition.
        table: the new name, ``<layer>/<name>``.

    Raises:
        ConfigurationError: another table has the name; or a catalog lists the table, under its own name.
        SourceError: a folder or store cannot be read or written.
        TargetError: the moved table cannot be given its new addresses.
    """
    if lake.catalog is not None and dataflow.target.format == "iceberg":
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a table that its folder alone names, found one in the catalog {lake.catalog}, which other engines"
            " ask for it. Rename the dataflow without --move-table: the table keeps its name"
        )
    names = _new_names(dataflow, table)
    for old, new in names.items():
        _check_free(lake.child(old), lake.child(new))
    for old, new in names.items():
        move_folder(lake, old, new)
    for name in (table, *(names[side] for side, _ in side_tables(dataflow).values())):
        moved = open_table(dataflow.target.format, lake.child(name))
        if isinstance(moved, CanRelocate):
            moved.relocate()


def _new_names(dataflow: Dataflow, table: str) -> Mapping[str, str]:
    """Return the new name of each folder of a table, by its old name; the table's own comes last."""
    old = dataflow.table
    beside = [name for name, _ in side_tables(dataflow).values()]
    if bad_records := bad_records_table(dataflow):
        beside.append(bad_records)
    names = {name: table + name.removeprefix(old) for name in beside}
    (old_layer, old_name), (layer, name) = old.split("/"), table.split("/")
    staged = {f"{old_layer}/{_STAGING}/{old_name}": f"{layer}/{_STAGING}/{name}"}
    return {**names, **(staged if dataflow.target.format == "parquet" else {}), old: table}


def _check_free(old: Place, new: Place) -> None:
    """Raise ConfigurationError if a new name is taken by other files than those of a stopped move."""
    if is_empty(old) or is_empty(new):
        return
    if new.local is None:
        with store_failures(new):
            keys = {meta["path"] for page in old.store.list() for meta in page}
            if all(meta["path"] in keys for page in new.store.list() for meta in page):
                return
    raise ConfigurationError(
        f"expected no table {new} yet, found one beside {old}. Choose another name, or move that table away"
    )


def move_folder(lake: Place, old: str, new: str) -> None:
    """Move a folder, if it exists: on a disk by a rename, in a store by copies, then deletions."""
    folder, target = lake.child(old), lake.child(new)
    if folder.local is not None and target.local is not None:
        try:
            if folder.local.exists():
                target.local.parent.mkdir(parents=True, exist_ok=True)
                folder.local.rename(target.local)
        except OSError as error:
            raise folder_failure("", str(folder), error) from error
        return
    with store_failures(folder):
        keys = [meta["path"] for page in folder.store.list() for meta in page]
        # Spark and S3A leave objects that stand for folders, which some stores list and do not copy.
        folders = {key[:place] for key in keys for place, letter in enumerate(key) if letter == "/"}
        for key in keys:
            if key not in folders:
                lake.store.copy(f"{old}/{key}", f"{new}/{key}")
    remove_folder(folder)
