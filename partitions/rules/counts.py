"""The rows of a slice that failed its rules, and what follows from their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partitions.rules.definition import Rule
from partitions.rules.limits import exceeds, share_in_words


@dataclass(frozen=True)
class RuleCounts:
    """The counts of a slice's rows by rules.

    Attributes:
        rows: rows that were checked; rows that delete their key are not.
        rejected: rows that were written into the table of rejected rows.
        failed: by rule, the rows that failed it; a row may fail several.
        digest: a digest of the rejected rows, whatever their order; "" without rejected rows.
    """

    rows: int
    rejected: int
    failed: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""

    def rejects_same_rows(self, other: RuleCounts) -> bool:
        """Return whether two reads of a slice reject the same rows."""
        return (self.rejected, self.digest) == (other.rejected, other.digest)


def broken_rules(rules: Sequence[Rule], counts: RuleCounts) -> list[Rule]:
    """Return the rules by which nothing of a slice may be loaded."""
    return [rule for rule in rules if _is_broken(rule, counts.failed.get(rule.label, 0), counts.rows)]


def _is_broken(rule: Rule, failed: int, rows: int) -> bool:
    return exceeds("0" if rule.on_fail == "fail" else rule.max, failed, rows)


def broken_in_words(rule: Rule, counts: RuleCounts) -> str:
    """Return which rows broke a rule, and what it allows, in a line for people."""
    failed = share_in_words(counts.failed.get(rule.label, 0), counts.rows)
    allowed = "none may (on_fail: fail)" if rule.on_fail == "fail" else f"at most {rule.max} may (max)"
    return f"rule {rule.label}: {failed} fail {rule.demand!r}, {allowed}"
