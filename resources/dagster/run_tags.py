"""The tags by which a project finds its own runs in a Dagster instance that several projects share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DATAFLOW_TAG = "strandline/dataflow"
"""The tag of every run that loads a dataflow: its name, after the name of its project, if that has one."""

PROJECT_TAG = "strandline/project"
"""The tag of every run of a project that has a name."""

HIDDEN = ".dagster/strandline_"
"""The prefix of tags for machines: Dagster keeps and finds them, and its UI does not show them."""


@dataclass(frozen=True)
class RunTags:
    """The tags of a project's runs.

    Attributes:
        project: its name in Dagster; None if it has none.
    """

    project: str | None = None

    def of(self, dataflow: str) -> dict[str, str]:
        """Return the tags of a run that loads a dataflow; they find its runs, too."""
        project = {} if self.project is None else {PROJECT_TAG: self.project}
        return {DATAFLOW_TAG: self.qualified(dataflow), **project}

    def of_any(self, dataflows: Iterable[str]) -> dict[str, list[str]]:
        """Return the filter of runs that load one of some dataflows."""
        return {DATAFLOW_TAG: sorted(map(self.qualified, dataflows))}

    def dataflow_of(self, tags: Mapping[str, str]) -> str:
        """Return the dataflow of a run that such a filter has found."""
        return tags[DATAFLOW_TAG].rpartition("/")[2]

    def qualified(self, dataflow: str) -> str:
        """Return a dataflow's name after that of its project, such as ``north/orders``."""
        return dataflow if self.project is None else f"{self.project}/{dataflow}"

    def pool(self, dataflow: str) -> str:
        """Return the pool that all runs of a dataflow share."""
        return f"strandline/{self.qualified(dataflow)}"

    def identifier(self, dataflow: str) -> str:
        """Return the same for names that take no slash: ``north__orders``."""
        return self.qualified(dataflow).replace("/", "__")
