"""The contract of a kind whose work shows as partitions of its assets: what the IO manager asks of it (docs/dagster.md, Runs and partitions)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from dagster import AssetKey, AssetMaterialization, PartitionsDefinition

from partitions.request import Request
from resources.outcome import Committed


class AssetPartitions(Protocol):
    """The partitions of one dataflow's assets."""

    @property
    def definition(self) -> PartitionsDefinition[str] | None:
        """What both assets get; None if they have no partitions after all."""
        ...

    def requested(self, keys: Sequence[str], now: datetime, *, forced: bool) -> Request:
        """Return what a run over these keys asks for.

        Raises:
            ConfigurationError: for keys that can not be loaded now.
        """
        ...

    def loaded(self, committed: Sequence[Committed]) -> Mapping[str, Mapping[str, Any]]:
        """Return the keys that these slices have loaded as a whole, each with its metadata."""
        ...

    def failed(self, committed: Sequence[Committed]) -> set[str | None]:
        """Return the keys of which a part could not be read."""
        ...

    def materialisation(
        self, asset: AssetKey, key: str | None, metadata: Mapping[str, Any] | None = None
    ) -> AssetMaterialization:
        """Return the event that a partition is loaded."""
        ...
