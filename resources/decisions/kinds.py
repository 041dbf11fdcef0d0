"""Which kind of watermark goes by which rules in decisions."""

from __future__ import annotations

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.definition import PathWatermark
from partitions.window.definition import WindowWatermark
from resources.decisions.column import ColumnRules
from resources.decisions.path import PathRules
from resources.decisions.rules import StateRules
from resources.decisions.window import WindowRules
from resources.platform import Platform


def rules_of(platform: Platform, dataflow: Dataflow) -> StateRules:
    """Return what decisions about a dataflow's state go by.

    Raises:
        ConfigurationError: the kind of its watermark has no rules.
    """
    match dataflow.watermark:
        case PathWatermark():
            return PathRules(dataflow, platform.files(dataflow), platform.table(dataflow), platform.log)
        case ColumnWatermark():
            return ColumnRules(
                dataflow, platform.table(dataflow), lambda: platform.log.history(dataflow.name)
            )
        case WindowWatermark():
            return WindowRules(dataflow, lambda: platform.log.history(dataflow.name))
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected a watermark of type path, column or window, found {dataflow.kind}, of which no decision is known"
    )
