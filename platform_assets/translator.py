"""What a user's own code may change of a project's assets (docs/how-to/several-projects.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dagster import AssetSpec

from partitions.dataflow import Dataflow

Role = Literal["table", "watermark", "late_rows"]
"""What an asset of a dataflow is: its table, its watermark, or the table of a stream's late rows."""


@dataclass(frozen=True)
class StrandlineAsset:
    """An asset that is to be translated.

    Attributes:
        dataflow: its dataflow: ``name``, ``layer``, ``kind``, ``source``, ``target``, ``tags``, ``owners`` …
        role: what it is of the dataflow.
        spec: the asset as it is without a translator.
    """

    dataflow: Dataflow
    role: Role
    spec: AssetSpec


class StrandlineTranslator:
    """Says how a project's assets look in Dagster: their keys, groups, tags, owners and so on.

    State, runs, pools and lineage follow the dataflow, so keys may change at any time.
    """

    def get_asset_spec(self, data: StrandlineAsset) -> AssetSpec:
        """Return the asset's spec; ``data.spec`` unless a subclass changes it.

        Assets that it adds to ``deps`` are upstream beside the tables that the dataflow reads.
        """
        return data.spec


class FunctionTranslator(StrandlineTranslator):
    """The translator of a component: its ``translation`` is a function."""

    def __init__(self, translation: Callable[[AssetSpec, StrandlineAsset], AssetSpec]) -> None:
        """Use a function of the asset's spec and the asset."""
        self._translation = translation

    def get_asset_spec(self, data: StrandlineAsset) -> AssetSpec:
        """Return what the function returns."""
        return self._translation(data.spec, data)
