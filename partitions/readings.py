"""Derive a dataflow for each single source: one of several, or the source of its units."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.sources import JdbcSource
from partitions.window.definition import secondary_inputs
from partitions.window.secondary_input import SecondaryInput


def dataflows_by_source(dataflow: Dataflow) -> Sequence[Dataflow]:
    """Return a copy of the dataflow for each of its sources, with that source alone."""
    return [dataflow.model_copy(update={"source": source}) for source in dataflow.source.parts.values()]


def dataflow_of_units(dataflow: Dataflow, secondary: SecondaryInput) -> Dataflow | None:
    """Return a copy of the dataflow that reads the source of a secondary input.

    None if the secondary input is a named table, an asset or a path.
    """
    source = secondary.source
    if secondary.query and isinstance(dataflow.source, JdbcSource):
        source = JdbcSource(type="jdbc", connection=dataflow.source.connection, query=secondary.query)
    return dataflow.model_copy(update={"source": source}) if source is not None else None


def dataflows_of_units(dataflow: Dataflow) -> Sequence[Dataflow]:
    """Return such a copy for each secondary input that has a source."""
    readings = (dataflow_of_units(dataflow, secondary) for secondary in secondary_inputs(dataflow.watermark))
    return [reading for reading in readings if reading is not None]
