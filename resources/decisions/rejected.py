"""``strandline rejected``: the rows that failed a rule, and their release.

See docs/how-to/rules-for-rows.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.loads import ReplaceAll, ReplaceKeys
from partitions.plan import pluralize
from partitions.rules.definition import RULES, Rule
from partitions.spelling import first_few
from partitions.table_names import REJECTED, rejected_table
from resources.decisions.draft import require_current_definition
from resources.loop.context import RunContext
from resources.loop.ending import end_abandoned
from resources.loop.rules.releasing import commit_release, release_intent, released_rows
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry, check_reason


@dataclass(frozen=True)
class RejectedRows:
    """The rejected rows of a dataflow.

    Attributes:
        dataflow: the dataflow's name.
        table: the table that has them.
        rows: their number.
        by_rule: by rule, the rows that failed it; a row may have failed several.
        rules: the rules of the definition, by name.
    """

    dataflow: str
    table: str
    rows: int
    by_rule: Mapping[str, int]
    rules: Mapping[str, Rule]

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "dataflow": self.dataflow,
            "table": self.table,
            "rows": self.rows,
            "rules": [
                {
                    "rule": name,
                    "rows": count,
                    "demand": self.rules[name].demand if name in self.rules else None,
                    "on_fail": self.rules[name].on_fail if name in self.rules else None,
                }
                for name, count in self.by_rule.items()
            ],
        }


def rejected_rows(platform: Opener, dataflow: Dataflow) -> RejectedRows:
    """Return the rejected rows of a dataflow by rule. Starts no Spark.

    Raises:
        ConfigurationError: the dataflow has no rules.
        SourceError: only Spark can read the table.
    """
    table = _side(platform, dataflow)
    counts: Counter[str] = Counter()
    total = 0
    if table.exists():
        for names, rows in zip(*table.contents.text_counts(RULES).to_pydict().values(), strict=True):
            total += rows
            for name in str(names).split(", "):
                counts[name] += rows
    rules = {rule.label: rule for rule in dataflow.rules}
    ordered = {name: counts[name] for name in (*rules, *sorted(counts.keys() - rules.keys())) if counts[name]}
    return RejectedRows(dataflow.name, rejected_table(dataflow), total, ordered, rules)


def _side(platform: Opener, dataflow: Dataflow) -> Any:
    table = platform.side_tables(dataflow).get(REJECTED)
    if table is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected rules in {dataflow.position.file}, which can reject rows, found none. "
            "Add them below `rules`"
        )
    return table


@dataclass(frozen=True)
class ReleasePreview:
    """What a release would do.

    Attributes:
        passing: rows that pass the rules of now, and would be loaded.
        failing: rows of the rule that would stay.
        failed: by rule, the rows that would stay because of it.
        lines: sentences for people.
    """

    passing: int
    failing: int
    failed: Mapping[str, int]
    lines: Sequence[str]


def preview_release(platform: Opener, dataflow: Dataflow, rule: str, now: datetime) -> ReleasePreview:
    """Return what a release would do. Starts Spark, changes nothing.

    Raises:
        ConfigurationError: no row was rejected by the rule, or rejected rows cannot be loaded alone.
        NeedsDecision: the definition has changed.
    """
    run = platform.loop(dataflow, now).context
    last = require_current_definition(platform, dataflow, platform.log.newest(dataflow.name))
    rejected_count = _check_release(platform, dataflow, run, rule)
    rows = released_rows(run, release_intent(run, last, rule, run.table.tip(None).version))
    passing = rows.passing.count()
    failed: Counter[str] = Counter()
    for row in rows.staying.groupBy(RULES).count().collect():
        for name in str(row[RULES]).split(", "):
            failed[name] += row["count"]
    failing = rejected_count - passing
    lines = [
        f"{pluralize(passing, 'row')} of {rejected_count:,} that {rule} rejected pass the rules now, and go into {dataflow.table}",
        *(
            [
                f"{pluralize(failing, 'row')} still {'fails' if failing == 1 else 'fail'}, and {'stays' if failing == 1 else 'stay'} in {rejected_table(dataflow)}"
            ]
            if failing
            else []
        ),
    ]
    return ReleasePreview(passing, failing, dict(failed), lines)


def release_rejected(
    platform: Opener,
    dataflow: Dataflow,
    rule: str,
    reason: str,
    now: datetime,
    *,
    run_id: str | None = None,
    job_id: str | None = None,
    observer: Observer = lambda step, line: None,
    **patience: Any,
) -> Entry:
    """Load the rejected rows of a rule that pass the rules of now; return the entry of the release.

    If none passes, return the newest entry and change nothing.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        rule: the rule that rejected them.
        reason: the operator's reason; stays in the log.
        now: the clock, aware.
        run_id: Dagster's run id, if the run is Dagster's.
        job_id: Dagster's job.
        observer: is called at each step.
        patience: attributes of :class:`resources.loop.holder_wait.HolderPolicy`, for a live run.

    Raises:
        ConfigurationError: there is no reason; or as :func:`preview_release`.
        NeedsDecision: state and table do not match.
        DataflowHeld: a run or decision still works on the dataflow.
        Conflict: another run was faster.
        TargetError: the write failed.
    """
    check_reason(dataflow.name, reason)
    loop = platform.loop(dataflow, now, run_id=run_id, job_id=job_id, observer=observer, **patience)
    run = loop.context
    entry = end_abandoned(run, loop.holder_policy, "a release", reason)
    last = require_current_definition(platform, dataflow, entry)
    _check_release(platform, dataflow, run, rule)
    if released_rows(run, release_intent(run, last, rule, run.table.tip(None).version)).passing.isEmpty():
        return last
    return commit_release(run, last, rule, reason)


def _check_release(platform: Opener, dataflow: Dataflow, run: RunContext[Any], rule: str) -> int:
    """Return how many rows a rule has rejected; raise if they cannot be released.

    Raises:
        ConfigurationError: there are none, or the load takes no rows beside a slice.
    """
    rejected = rejected_rows(platform, dataflow)
    if rule not in rejected.by_rule:
        names = first_few(list(rejected.by_rule), 5) or "no rejected row"
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --release: expected a rule that has rejected rows in {rejected.table}, found "
            f"{rule!r}; there: {names}. `strandline rejected {dataflow.name}` lists them"
        )
    load = run.kind.writing.load_of_rejected()
    if load is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --release: expected a table that takes rows in any order, found that of a "
            f"stream, whose rows leave in the order of {dataflow.stream.event_time}. Read {rejected.table} by a "
            "dataflow of its own"
        )
    if isinstance(load, ReplaceKeys | ReplaceAll):
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --release: expected a load that takes single rows, found load: "
            f"{dataflow.target.load}, which replaces all rows of a key or of the table by those of a slice. Mend the "
            "rule, and replay the part of the source that has the rows: it replaces its rejected rows, too"
        )
    return rejected.by_rule[rule]
