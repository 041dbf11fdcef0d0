"""The path kind of a dataflow, bound to its files."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.kinds.path.decisions import PathRules
from resources.kinds.path.kind import PathKind
from resources.platform.stores import Stores
from resources.staging import Staging


def open_path(
    stores: Stores,
    dataflow: Dataflow,
    staging: Staging | None = None,
) -> PathKind:
    """Return the kind; raise ConfigurationError if the dataflow reads no files."""
    return PathKind(dataflow, stores.files(dataflow, staging), stores.log)


def path_rules(stores: Stores, dataflow: Dataflow) -> PathRules:
    """Return what decisions go by."""
    return PathRules(dataflow, stores.files(dataflow), stores.table(dataflow), stores.log)
