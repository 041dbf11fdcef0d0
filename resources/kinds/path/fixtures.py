"""The rows of a test of a dataflow of files."""

from __future__ import annotations

from partitions.change_events import load_of_events, order_of_rows
from partitions.loads import Load, load_for_target
from partitions.predicate import NOTHING
from resources.kinds.contract.fixtures import FixtureRules


class PathFixtures(FixtureRules):
    """Rows of files."""

    def load(self) -> Load:
        """Return the target's load; of two rows of a key the one of the later file counts."""
        source = self.dataflow.source
        return load_of_events(source, load_for_target(self.dataflow.target, NOTHING, order_of_rows(source)))
