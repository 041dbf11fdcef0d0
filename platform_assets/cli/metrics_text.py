"""Prometheus' metrics of dataflows, from the documents of ``strandline list``.

Names and units follow Prometheus' rules for names: base units, ``_total`` for counters,
times as Unix time in seconds. A figure that is unknown has no sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from platform_assets.kinds import PROFILES
from platform_assets.kinds.profile import CountsRowsSetAside

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Document = Mapping[str, Any]


class _Figure(NamedTuple):
    """One metric of each dataflow.

    Attributes:
        name: without ``_total``.
        help: one sentence.
        value: returns the figure of a dataflow; None: it is unknown, or the dataflow has none.
        is_counter: whether it only rises.
    """

    name: str
    help: str
    value: Callable[[Document], float | None]
    is_counter: bool = False


def _time(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def _attempt(key: str) -> Callable[[Document], Any]:
    return lambda document: (document.get("last_attempt") or {}).get(key)


def _failures(document: Document) -> int | None:
    attempt = document.get("last_attempt")
    if attempt is None:
        return None if "error" in document else 0
    # Dagster alone knows of a run that died before its loop, and does not count.
    return max(attempt["failures"], 1) if attempt["failing_since"] else 0


def _waiting(key: str) -> Callable[[Document], int | None]:
    return lambda document: (document.get("waiting") or {}).get(key)


def _has_work(document: Document) -> int | None:
    waiting = document.get("waiting") or {}
    figures = [waiting.get(key) for key in ("files", "new_rows", "new_input", "work_units")]
    known_figures = [figure for figure in figures if figure is not None]
    return int(any(known_figures)) if known_figures else None


def _counts_rows(document: Document) -> bool:
    return isinstance(PROFILES.get(document.get("kind", "")), CountsRowsSetAside)


def _set_aside(key: str, *, rows: bool) -> Callable[[Document], int | None]:
    """Return the count of late or quarantined files or rows; None of a dataflow that counts the other."""
    return lambda document: (
        document[key]["count"]
        if key in document and "error" not in document and _counts_rows(document) == rows
        else None
    )


_FIGURES: Sequence[_Figure] = (
    _Figure("known", "Whether the state could be read (1), or not, or the file has errors (0).", lambda document: int("error" not in document)),
    _Figure("loaded_rows", "Rows that loads have written so far, replays too.", lambda document: document.get("loaded_rows"), is_counter=True),
    _Figure("table_rows", "Rows of the table as the watermark log counts them.", lambda document: document.get("total_rows")),
    _Figure("lag_seconds", "Age of the newest loaded data, by the source's own times; of a stream the clock less its global watermark.", lambda document: document.get("lag_seconds")),
    _Figure("event_lag_seconds", "Age of the newest event of a stream's source; it grows while no row comes.", lambda document: (document.get("stream") or {}).get("event_lag_seconds")),
    _Figure("consecutive_failures", "Runs and looks that failed one after the other; 0 if the last one did not fail.", _failures),
    _Figure("failing_since_timestamp_seconds", "When the first of these failed; no sample if the last one did not fail.", lambda document: _time(_attempt("failing_since")(document))),
    _Figure("new_data", "Whether the next run would load something (1) or nothing (0).", _has_work),
    _Figure("waiting_files", "New files that wait for a run.", _waiting("files")),
    _Figure("waiting_work_units", "Due work units that wait for a run.", _waiting("work_units")),
    _Figure("failed_work_units", "Work units that failed, and are tried again.", _waiting("failed_units")),
    _Figure("upstream_waiting_work_units", "Work units that wait for their upstream to be complete.", _waiting("waiting_for_upstream")),
    _Figure("waiting_rows", "Rows of a stream that wait for its global watermark.", lambda document: document.get("buffered")),
    _Figure("late_files", "Late files that wait.", _set_aside("late", rows=False)),
    _Figure("late_rows", "Late rows of a stream since its start.", _set_aside("late", rows=True)),
    _Figure("quarantined_files", "Files in quarantine.", _set_aside("quarantined", rows=False)),
    _Figure("quarantined_rows", "Rows of a stream that were quarantined since its start.", _set_aside("quarantined", rows=True)),
    _Figure("rejected_rows", "Rows that failed a rule and wait for a release.", lambda document: document.get("rejected")),
    _Figure("last_run_duration_seconds", "How long the last run took.", _attempt("seconds")),
    _Figure("last_run_timestamp_seconds", "When the last run, or a look that failed since, ended.", lambda document: _time(_attempt("time")(document))),
    _Figure("last_load_timestamp_seconds", "When something was last loaded.", lambda document: _time(document.get("last_load"))),
    _Figure("last_look_timestamp_seconds", "When the source last answered a look for these metrics.", lambda document: document.get("last_look")),
)  # fmt: skip

METRICS = {
    f"strandline_{figure.name}{'_total' if figure.is_counter else ''}": figure.help for figure in _FIGURES
}
"""The metrics of each dataflow, with their help."""


def families(documents: Sequence[Document], gathered_at: float, seconds: float) -> Iterator[Metric]:
    """Yield the metrics of all dataflows.

    Args:
        documents: the documents of ``strandline list``, each with ``last_look`` in epoch seconds.
        gathered_at: when they were gathered, epoch seconds.
        seconds: how long that took.
    """
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

    info = InfoMetricFamily("strandline_dataflow", "Kind and table of each dataflow.", labels=["dataflow"])
    for document in documents:
        named = {key: document[key] for key in ("kind", "target") if key in document}
        info.add_metric([document["dataflow"]], named)
    yield info
    for figure in _FIGURES:
        family = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
        metric = family(f"strandline_{figure.name}", figure.help, labels=["dataflow"])
        for document in documents:
            value = figure.value(document)
            if value is not None:
                metric.add_metric([document["dataflow"]], value)
        yield metric
    for name, text, value in (
        ("strandline_gathered_timestamp_seconds", "When these metrics were gathered.", gathered_at),
        ("strandline_gathering_duration_seconds", "How long that took.", seconds),
    ):
        yield GaugeMetricFamily(name, text, value=value)
