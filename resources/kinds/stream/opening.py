"""The kind of a dataflow that streams over splits, bound to its source."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.stream.slices import EpochSlice
from resources.kinds.contract.kind import Kind
from resources.kinds.registered import unreadable_source
from resources.kinds.stream.bad_parts import StreamBadParts
from resources.kinds.stream.decisions import StreamRules
from resources.kinds.stream.epochs import Epochs
from resources.kinds.stream.file_epochs import EpochsOfFiles
from resources.kinds.stream.judging import Judging
from resources.kinds.stream.planning import StreamPlanning
from resources.kinds.stream.reading import StreamReading
from resources.kinds.stream.stored_slices import StoredStreamSlices
from resources.kinds.stream.table_epochs import EpochsOfVersions
from resources.kinds.stream.writing import StreamWriting
from resources.platform.stores import Stores
from resources.sources.files.source import FileSource
from resources.sources.table import TableRows
from resources.staging import Staging


def open_stream(
    stores: Stores,
    dataflow: Dataflow,
    staging: Staging | None = None,
) -> Kind[EpochSlice]:
    """Return the kind over files or table versions.

    Raises:
        ConfigurationError: the source is neither.
    """
    source = stores.source(dataflow, staging)
    if not isinstance(source, FileSource | TableRows):
        raise unreadable_source(dataflow)
    epochs: Epochs = (
        EpochsOfFiles(dataflow, source)
        if isinstance(source, FileSource)
        else EpochsOfVersions(dataflow, source)
    )
    sides, bad_parts = stores.side_tables(dataflow), StreamBadParts(epochs)
    judging = Judging(dataflow, epochs, sides)
    return Kind(
        StreamPlanning(dataflow, epochs),
        StoredStreamSlices(),
        StreamReading(dataflow, epochs, judging, bad_parts),
        StreamWriting(dataflow, sides, judging),
        bad_parts,
    )


def stream_rules(_: Stores, dataflow: Dataflow) -> StreamRules:
    """Return the rules for decisions."""
    return StreamRules(dataflow)
