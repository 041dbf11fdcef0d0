"""An entry in the registry of kinds: how to open a kind, decide about its state, and replay it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.kinds.contract.decisions import StateRules
from resources.kinds.contract.fixtures import FixtureRules
from resources.kinds.contract.kind import Kind
from resources.platform.stores import Stores
from resources.reconcile.kind import ReconcileKind
from resources.reconcile.options import ReconcileOptions
from resources.replay.kind import ReplayKind
from resources.replay.options import ReplayOptions
from resources.staging import Staging
from resources.watermarks.entry import Entry


class RegisteredKind(NamedTuple):
    """One kind of watermark.

    Attributes:
        name: the value of ``watermark.type``.
        open: binds a dataflow's kind to its source; the staging is None if no rows are read.
        rules: makes the rules for decisions about a state.
        fixtures: makes the rules for the rows of a test.
        replay: makes a replay of a range; None if the kind cannot replay.
        reconcile: makes a comparison of source and table; None if the kind has none.
    """

    name: str
    open: Callable[[Stores, Dataflow, Staging | None], Kind[Any]]
    rules: Callable[[Stores, Dataflow], StateRules]
    fixtures: Callable[[Dataflow], FixtureRules]
    replay: Callable[[Stores, Dataflow, ReplayOptions, datetime], ReplayKind] | None = None
    reconcile: Callable[[Stores, Dataflow, ReconcileOptions, Entry, datetime], ReconcileKind] | None = None


def unreadable_source(dataflow: Dataflow) -> ConfigurationError:
    """Return the error for a source that the dataflow's kind does not read."""
    return ConfigurationError(
        f"dataflow {dataflow.name}: expected a source that a {dataflow.kind} watermark can read, found "
        f"{dataflow.source.label}"
    )
