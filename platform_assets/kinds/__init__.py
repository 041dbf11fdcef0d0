"""The kinds of watermark as this layer shows them: a package a kind, and the one place that maps names to them.

Belongs here: whatever differs between kinds in Dagster and on the command line. Does not belong here: what all kinds share
(``factory``, ``cli``), and what a run does (``resources.kinds``). To add a kind: a package beside ``path`` and ``window``, and a line
below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from platform_assets.kinds.column.profile import ColumnProfile
from platform_assets.kinds.path.profile import PathProfile
from platform_assets.kinds.profile import KindProfile
from platform_assets.kinds.stream.profile import StreamProfile
from platform_assets.kinds.window.profile import WindowProfile

PROFILES: Mapping[str, KindProfile] = MappingProxyType(
    {"path": PathProfile(), "column": ColumnProfile(), "window": WindowProfile(), "stream": StreamProfile()}
)
"""By the name of the kind: ``watermark.type`` of a dataflow, ``kind`` of an entry and of a plan."""

ContractT = TypeVar("ContractT")


def profile_of(dataflow: Dataflow) -> KindProfile:
    """Return the profile of a dataflow's kind."""
    return PROFILES[dataflow.kind]


def required(dataflow: Dataflow, contract: type[ContractT], instead: Sequence[str] = ()) -> ContractT:
    """Return the profile of a dataflow's kind as a contract that only some kinds have.

    Args:
        dataflow: that something is asked of.
        contract: what it takes.
        instead: commands for those that lack it.

    Raises:
        ConfigurationError: if its kind does not have it.
    """
    profile = profile_of(dataflow)
    if isinstance(profile, contract):
        return profile
    fitting = " or ".join(kind for kind, profile in PROFILES.items() if isinstance(profile, contract))
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected a watermark of type {fitting}, found {dataflow.kind}",
        choices=instead,
    )
