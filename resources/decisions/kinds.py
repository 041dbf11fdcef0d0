"""Which kind of watermark goes by which rules in decisions."""

from __future__ import annotations

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.path.definition import PathWatermark
from partitions.stream.definition import StreamWatermark
from partitions.stream.structured import StructuredStream
from partitions.window.definition import WindowWatermark
from resources.decisions.column import ColumnRules
from resources.decisions.path import PathRules
from resources.decisions.rules import StateRules
from resources.decisions.stream import StreamRules
from resources.decisions.structured import SparkStreamRules
from resources.decisions.window import WindowRules
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
