"""The Parquet files that a plain reader of a table's folder sees, listed or not."""

from __future__ import annotations

import os
from collections.abc import Iterator

from resources.connections.places import Place
from resources.listing.failures import store_failures


def visible_files(table: Place) -> set[str]:
    """Return the paths of the Parquet files that plain readers see, relative to the table.

    Raises:
        SourceError: the folder cannot be listed.
    """
    if table.local is not None and not table.local.is_dir():
        return set()
    with store_failures(table):
        if table.local is not None:
            return set(_local_files(str(table.local)))
        return {meta["path"] for page in table.store.list() for meta in page if _is_visible(meta["path"])}


def has_visible_files(table: Place) -> bool:
    """Return whether plain readers see a Parquet file in a table's folder.

    Raises:
        SourceError: a store cannot be listed.
    """
    if table.local is not None:
        return next(_local_files(str(table.local)), None) is not None
    with store_failures(table):
        return any(_is_visible(meta["path"]) for page in table.store.list() for meta in page)


def _local_files(root: str) -> Iterator[str]:
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (os.path.relpath(f"{parent}/{name}", root) for name in names if _is_data(name))


def _is_visible(path: str) -> bool:
    *folders, name = path.split("/")
    return _is_data(name) and not any(map(_is_hidden, folders))


def _is_hidden(folder: str) -> bool:
    """Return whether readers skip a folder; a partition folder may begin with any letter."""
    return folder.startswith(("_", ".")) and "=" not in folder


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(("_", "."))
