"""The counts of rows that failed rules, which one run keeps until its entries have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.plan import pluralize
from partitions.rules.counts import RuleCounts
from partitions.rules.definition import Rule
from partitions.table_names import rejected_table

if TYPE_CHECKING:
    from pyspark.sql import Observation


@dataclass
class RuleCountsOfRun:
    """The counts of one run, by the numbers of its slices.

    Attributes:
        counts: counts that are known.
        observed: by number, an observation that has counts once the rows are written, and its rules.
    """

    counts: dict[int, RuleCounts] = field(default_factory=dict)
    observed: dict[int, tuple[Observation, Sequence[Rule]]] = field(default_factory=dict)

    def warnings(self, dataflow: Dataflow) -> list[str]:
        """Return a sentence on the rejected rows, and one on those that a rule only warns of."""
        rejected = sum(counts.rejected for counts in self.counts.values())
        totals: dict[str, int] = {}
        for counts in self.counts.values():
            for rule, rows in counts.failed.items():
                totals[rule] = totals.get(rule, 0) + rows
        warned = {rule.label for rule in dataflow.rules if rule.on_fail == "warn"}
        by_rule = {rule: rows for rule, rows in totals.items() if rows}
        lines = []
        if rejected:
            names = ", ".join(f"{rule} {rows:,}" for rule, rows in by_rule.items() if rule not in warned)
            lines.append(
                f"{pluralize(rejected, 'row')} failed a rule: see table {rejected_table(dataflow)}, or strandline rejected "
                f"{dataflow.name} ({names})"
            )
        lines += [
            f"{pluralize(rows, 'loaded row')} failed rule {rule} (on_fail: warn)"
            for rule, rows in by_rule.items()
            if rule in warned
        ]
        return lines
