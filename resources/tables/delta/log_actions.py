"""The actions by which a commit of a Delta log adds and removes a data file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from resources.tables.data_files.written import (
    DataFile,
)

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction


def add_action(file: DataFile) -> AddAction:
    """Return the action that adds a data file with its statistics."""
    from deltalake.transaction import AddAction

    return AddAction(
        file.path, file.size, file.partition, file.modified, data_change=True, stats=file.statistics
    )


def remove_action(action: Mapping[str, Any]) -> RemoveAction:
    """Return the action that removes the file of an add action."""
    from deltalake.transaction import RemoveAction

    return RemoveAction(unquote(action["path"]), True, int(time.time() * 1000), action["size_bytes"])
