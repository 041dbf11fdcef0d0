"""What the registry has of a kind of watermark: how it is opened, what decisions go by, how it reads again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.kinds.contract.decisions import StateRules
from resources.kinds.contract.kind import Kind
from resources.platform.stores import Stores
from resources.replay.kind import ReplayKind
from resources.replay.options import ReplayOptions
from resources.staging import Staging


class RegisteredKind(NamedTuple):
    """One kind of watermark.

    Attributes:
        name: as ``watermark.type`` has it.
        open: binds a dataflow's kind to its source; the staging is None for who reads no rows.
        rules: what decisions about a state go by.
        replay: makes a replay of a range; None: the kind reads nothing again.
    """

    name: str
    open: Callable[[Stores, Dataflow, Staging | None], Kind[Any]]
    rules: Callable[[Stores, Dataflow], StateRules]
    replay: Callable[[Stores, Dataflow, ReplayOptions, datetime], ReplayKind] | None = None


def unreadable_source(dataflow: Dataflow) -> ConfigurationError:
    """Return the error of a source that the dataflow's kind does not read."""
    return ConfigurationError(
        f"dataflow {dataflow.name}: expected a source that a {dataflow.kind} watermark reads, found {dataflow.source.label}"
    )
