"""The units of a window dataflow: listed, or read from its secondary inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.readings import dataflow_of_units
from partitions.window.secondary_input import SecondaryInput
from partitions.window.units import list_units
from resources.connections.places import Place
from resources.kinds.window.unit_spelling import as_known
from resources.kinds.window.units import rows_in_time
from resources.platform.stores import Stores
from resources.sources.source import ListsRows
from resources.tables.registry import find_table


def units_of(stores: Stores, dataflow: Dataflow) -> tuple[str, ...]:
    """Return the identities of all units in listed order, as the state spells them. Starts no Spark.

    Raises:
        PlanError: if a secondary input cannot be read.
    """
    watermark = dataflow.window
    units = list_units(watermark.units, watermark.secondary_input, partial(_unit_rows, stores, dataflow))
    return as_known(dataflow, units, stores.log, partial(stores.source, dataflow))


def _unit_rows(stores: Stores, dataflow: Dataflow, secondary: SecondaryInput) -> Iterable[Mapping[str, Any]]:
    reading = dataflow_of_units(dataflow, secondary)
    if reading is not None:
        source, number = stores.source(reading), dataflow.window.secondary_input.index(secondary)
        if not isinstance(source, ListsRows):
            raise AssertionError(source)
        what = f"dataflow {dataflow.name}, secondary_input {number + 1} ({reading.source.label})"
        return rows_in_time(what, partial(source.listed, secondary.columns), secondary.columns)
    if secondary.path:
        place = Place.parse(secondary.path, stores.folder)
    else:
        place = stores.lake.child(secondary.table or stores.lineage.table_of(secondary.asset or ""))
    return find_table(place).contents.distinct_rows(secondary.columns)
