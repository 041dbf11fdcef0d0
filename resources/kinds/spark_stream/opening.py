"""The kind of a dataflow that Spark's own engine streams, bound to its sources."""

from __future__ import annotations

from functools import partial

from partitions.dataflow import Dataflow
from partitions.spark_stream.batches import BatchSlice
from resources.connections.places import Place
from resources.kinds.contract.kind import Kind
from resources.kinds.spark_stream.bad_parts import SparkStreamBadParts
from resources.kinds.spark_stream.decisions import SparkStreamRules
from resources.kinds.spark_stream.folder import STREAMS
from resources.kinds.spark_stream.inputs import Inputs
from resources.kinds.spark_stream.planning import SparkStreamPlanning
from resources.kinds.spark_stream.reading import SparkStreamReading
from resources.kinds.spark_stream.stored_slices import StoredSparkStreamSlices
from resources.kinds.spark_stream.writing import SparkStreamWriting
from resources.loop.missing_source import explain_missing_source
from resources.platform.stores import Stores
from resources.staging import Staging


def open_spark_stream(
    stores: Stores,
    dataflow: Dataflow,
    staging: Staging | None = None,
) -> Kind[BatchSlice]:
    """Return the kind; its folders lie in the lake, below ``_streams``."""
    folders = stores.lake.child(f"{STREAMS}/{dataflow.table}/{dataflow.name}")
    roots = [place for place in stores.engines.read_by(dataflow) if isinstance(place, Place)]
    inputs = Inputs.of(dataflow, roots, staging or stores.staging(dataflow), stores.folder)
    for source in inputs.files.values():
        source.explain_missing = partial(explain_missing_source, stores.log, dataflow)
    return Kind(
        SparkStreamPlanning(dataflow, inputs, folders, stores.log),
        StoredSparkStreamSlices(),
        SparkStreamReading(inputs, folders),
        SparkStreamWriting(dataflow),
        SparkStreamBadParts(),
    )


def spark_stream_rules(_: Stores, dataflow: Dataflow) -> SparkStreamRules:
    """Return the rules for decisions."""
    return SparkStreamRules(dataflow)
