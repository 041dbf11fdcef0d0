"""What a kind of watermark adds to a comparison of source and table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.reconcile.result import Reconciliation
from resources.platform.stores import Stores
from resources.reconcile.options import ReconcileOptions
from resources.tables.contract.commits import Version
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class ReconcileKind(ABC):
    """The comparison of one dataflow, as its kind of watermark sees it.

    Attributes:
        stores: the project's resources.
        dataflow: the definition.
        options: what to compare.
        entry: newest entry.
        now: the clock, aware.
    """

    stores: Stores
    dataflow: Dataflow
    options: ReconcileOptions
    entry: Entry
    now: datetime

    @abstractmethod
    def check(self) -> None:
        """Raise ConfigurationError if the comparison cannot be made, before anything is opened."""

    @abstractmethod
    def compared(self, version: Version) -> Reconciliation:
        """Compare the source with the table.

        Args:
            version: version of the table that holds the rows of the entry.

        Raises:
            ConfigurationError: an option does not fit the source.
            SourceError: the source refuses, or does not answer.
        """
