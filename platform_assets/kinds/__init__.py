"""The kinds of watermark as this layer shows them: one package for each, and their registry.

Belongs here: whatever differs between kinds on the command line and in what people read. Does not belong
here: what all kinds share (``factory``, ``cli``), and what a run does (``resources.kinds``). To add a
kind, add a package beside ``path`` and ``window``, and a line below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from platform_assets.kinds.column.profile import ColumnProfile
from platform_assets.kinds.offset.profile import OffsetProfile
from platform_assets.kinds.path.profile import PathProfile
from platform_assets.kinds.profile import KindProfile
from platform_assets.kinds.stream.profile import StreamProfile
from platform_assets.kinds.window.profile import WindowProfile

PROFILES: Mapping[str, KindProfile] = MappingProxyType(
    {
        "path": PathProfile(),
        "column": ColumnProfile(),
        "window": WindowProfile(),
        "offset": OffsetProfile(),
        "stream": StreamProfile(),
    }
)
"""By the name of the kind: ``watermark.type`` of a dataflow, ``kind`` of an entry and of a plan."""

ContractT = TypeVar("ContractT")


def profile_of(dataflow: Dataflow) -> KindProfile:
    """Return the profile of a dataflow's kind."""
    return PROFILES[dataflow.kind]


def require_profile(dataflow: Dataflow, contract: type[ContractT], instead: Sequence[str] = ()) -> ContractT:
    """Return the profile of a dataflow's kind, which must implement a contract.

    Args:
        dataflow: the dataflow.
        contract: a protocol that only some kinds implement.
        instead: commands to offer for kinds without it.

    Raises:
        ConfigurationError: if its kind does not implement it.
    """
    profile = profile_of(dataflow)
    if isinstance(profile, contract):
        return profile
    fitting_kinds = " or ".join(kind for kind, profile in PROFILES.items() if isinstance(profile, contract))
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected a watermark of type {fitting_kinds}, found {dataflow.kind}",
        choices=instead,
    )
