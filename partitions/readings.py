"""A dataflow with one source in the place of its own: one of several, or one that gives the units of its windows."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.sources import JdbcSource
from partitions.window.definition import secondary_inputs
from partitions.window.secondary_input import SecondaryInput


def source_readings(dataflow: Dataflow) -> Sequence[Dataflow]:
    """Return the dataflow with each of its sources in the place of all."""
    return [dataflow.model_copy(update={"source": source}) for source in dataflow.source.parts.values()]


def unit_reading(dataflow: Dataflow, secondary: SecondaryInput) -> Dataflow | None:
    """Return the dataflow with the source of a secondary input in the place of its own; None if that is a table by its name, asset or path."""
    source = secondary.source
    if secondary.query and isinstance(dataflow.source, JdbcSource):
        source = JdbcSource(type="jdbc", connection=dataflow.source.connection, query=secondary.query)
    return dataflow.model_copy(update={"source": source}) if source is not None else None


def unit_readings(dataflow: Dataflow) -> Sequence[Dataflow]:
    """Return the same for each secondary input that has a source."""
    readings = (unit_reading(dataflow, secondary) for secondary in secondary_inputs(dataflow.watermark))
    return [reading for reading in readings if reading is not None]
