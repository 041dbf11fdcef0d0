"""The path kind of a dataflow, bound to its files."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.path.slices import PathSlice
from resources.kinds.contract.kind import Kind
from resources.kinds.path.bad_parts import PathBadParts
from resources.kinds.path.copies import CopyFinder
from resources.kinds.path.decisions import PathRules
from resources.kinds.path.planning import PathPlanning
from resources.kinds.path.reading import PathReading
from resources.kinds.path.stored_slices import StoredPathSlices
from resources.kinds.path.writing import PathWriting
from resources.platform.stores import Stores
from resources.sources.files.source import FileSource
from resources.staging import Staging
from resources.tables.contract.table import Table
from resources.watermarks.log import WatermarkLog


def open_path(
    stores: Stores,
    dataflow: Dataflow,
    staging: Staging | None = None,
) -> Kind[PathSlice]:
    """Return the kind; raise ConfigurationError if the dataflow reads no files."""
    return path_kind(dataflow, stores.files(dataflow, staging), stores.log, stores.table(dataflow))


def path_kind(dataflow: Dataflow, source: FileSource, log: WatermarkLog, table: Table) -> Kind[PathSlice]:
    """Return the kind over open files, with what the log knows about them."""
    return Kind(
        PathPlanning(dataflow, source, log),
        StoredPathSlices(dataflow),
        PathReading(source, CopyFinder(dataflow, source.root, log, table)),
        PathWriting(dataflow),
        PathBadParts(dataflow, source, log),
    )


def path_planning(stores: Stores, dataflow: Dataflow) -> PathPlanning:
    """Return the planning alone, for callers that load no files."""
    return PathPlanning(dataflow, stores.files(dataflow), stores.log)


def path_rules(stores: Stores, dataflow: Dataflow) -> PathRules:
    """Return the rules for decisions."""
    return PathRules(dataflow, stores.files(dataflow), stores.table(dataflow), stores.log)
