"""Metadata of an output that stands for several partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dagster import OutputContext

_OF_A_PARTITION = ("rows", "work_units")
"""Metadata of both a run and each of its partitions."""


def partition_keys_of(context: OutputContext) -> Sequence[str]:
    """Return the partitions that an output stands for; none if it has none."""
    return context.asset_partition_keys if context.has_asset_partitions else ()


def add_run_metadata(context: OutputContext, metadata: Mapping[str, Any], of_each: Sequence[str]) -> None:
    """Add a run's metadata to its output.

    If the run is over many partitions, only the event of the last one has all metadata, since the asset's
    page shows that one. There, metadata that a partition has, too, is prefixed with ``run_``.

    Args:
        context: the output.
        metadata: the metadata of the run.
        of_each: the names of metadata that each of several partitions gets.
    """
    keys = partition_keys_of(context)
    if len(keys) <= 1:
        context.add_output_metadata(metadata)
        return
    context.add_output_metadata({name: metadata[name] for name in of_each})
    whole = {f"run_{name}" if name in _OF_A_PARTITION else name: value for name, value in metadata.items()}
    context.step_context.add_asset_metadata(whole, asset_key=context.asset_key, partition_key=keys[-1])
