"""The rows of a test of a dataflow of files."""

from __future__ import annotations

from partitions.loads import Load, OrderByPath, load_for_target
from partitions.predicate import NOTHING
from resources.kinds.contract.fixtures import FixtureRules
from resources.sources.files.paths import SOURCE_FILE


class PathFixtures(FixtureRules):
    """Rows of files."""

    def load(self) -> Load:
        """Return the target's load; of two rows of a key the one of the later file counts."""
        return load_for_target(self.dataflow.target, NOTHING, (OrderByPath(SOURCE_FILE),))
