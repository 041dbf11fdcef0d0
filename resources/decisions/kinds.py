"""Which kind of watermark goes by which rules in decisions."""

from __future__ import annotations

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.path.definition import PathWatermark
from partitions.stream.definition import StreamWatermark
from partitions.stream.structured import StructuredStream
from partitions.window.definition import WindowWatermark
from resources.decisions.rules import StateRules
from resources.kinds.column.decisions import ColumnRules
from resources.kinds.path.decisions import PathRules
from resources.kinds.spark_stream.decisions import SparkStreamRules
from resources.kinds.stream.decisions import StreamRules
from resources.kinds.window.decisions import WindowRules
from resources.platform import Platform


def rules_of(platform: Platform, dataflow: Dataflow) -> StateRules:
    """Return what decisions about a dataflow's state go by."""
    match dataflow.watermark:
        case PathWatermark():
            return PathRules(dataflow, platform.files(dataflow), platform.table(dataflow), platform.log)
        case ColumnWatermark():
            return ColumnRules(
                dataflow, platform.table(dataflow), lambda: platform.log.history(dataflow.name)
            )
        case WindowWatermark():
            return WindowRules(dataflow, lambda: platform.log.history(dataflow.name))
        case StreamWatermark():
            return StreamRules(dataflow)
        case StructuredStream():
            return SparkStreamRules(dataflow)
