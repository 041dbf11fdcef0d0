"""Which facts about a dataflow make an alert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitions.alerts.conditions import (
    EndedRun,
    bad_records_alert,
    broken_file_alert,
    failure_alert,
    freshness_alert,
    gaps_alert,
    has_late_files,
    late_files_alert,
    quarantined_alert,
)
from partitions.dataflow import Dataflow
from partitions.instants import milliseconds
from partitions.window.ledger import GROWS, NEVER, Gap, Ledger, UnitLedger

NOON = datetime(2026, 1, 28, 12, tzinfo=UTC)
SINCE = "2026-01-28T05:58:12+00:00"


def flow(watermark: str = "path", **more: Any) -> Dataflow:
    source = {"type": "files", "path": "./landing", "format": "ndjson"}
    return Dataflow.model_validate(
        {"name": "orders", "source": source, "watermark": {"type": watermark}, **more}
    )


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (None, None),
        (EndedRun("success", SINCE), None),
        (EndedRun("held", SINCE), None),
        (
            EndedRun("failed", SINCE, "the source is away", ("strandline doctor", "strandline plan orders")),
            "since 2026-01-28 05:58:12 UTC: the source is away\n  strandline doctor\n  strandline plan orders",
        ),
        (EndedRun("died", SINCE), "died since 2026-01-28 05:58:12 UTC: see its run\n  strandline run orders"),
        (
            EndedRun("blocked", SINCE, "two tables"),
            "blocked since 2026-01-28 05:58:12 UTC: two tables\n  strandline run orders",
        ),
        (
            EndedRun("held", SINCE, continues_failures=True),
            "held since 2026-01-28 05:58:12 UTC: see its run\n  strandline run orders",
        ),
        (EndedRun("nothing", SINCE, continues_failures=True), None),
        (
            EndedRun("failed", SINCE, "no password", failed_looks=2),
            "since 2026-01-28 05:58:12 UTC: no password\n  strandline plan orders",
        ),
    ],
)
def test_a_last_run_that_failed_is_an_alert_with_what_to_do(run: EndedRun | None, text: str | None) -> None:
    alert = failure_alert(flow(), run)
    assert (alert and alert.text) == text
    assert alert is None or alert.key == "orders:failed"


def test_a_file_with_errors_is_a_failure_to_validate() -> None:
    alert = broken_file_alert("orders", ["line 1: no source", "line 2: no watermark"])
    assert alert.text == "its file has errors: line 1: no source; line 2: no watermark\n  strandline validate"


@pytest.mark.parametrize(
    ("count", "names", "files"),
    [
        (1, ["a"], "1 late file, a"),
        (3, ["a", "b", "c"], "3 late files, a, b, c"),
        (5000, ["a", "b", "c", "d"], "5,000 late files, such as a, b, c"),
    ],
)
def test_late_files_are_an_alert_with_their_policy(count: int, names: list[str], files: str) -> None:
    alert = late_files_alert(flow(), count, names)
    assert alert is not None
    assert alert.text == f"{files}: loaded by the next run\n  strandline late orders"
    assert late_files_alert(flow(), 0, []) is None


def test_late_files_matter_unless_they_are_ignored() -> None:
    assert [has_late_files(flow(late_files=policy)) for policy in ("ingest", "alert", "ignore")] == [
        True,
        True,
        False,
    ]


def test_a_window_that_is_over_and_missing_is_an_alert_and_one_that_goes_on_is_none() -> None:
    start = milliseconds(NOON)

    def of(*gaps: Gap) -> Ledger:
        return Ledger("orders", NOON, UTC, [UnitLedger('{"shop":"a"}', False, [], gaps, [], None)])

    alert = gaps_alert(
        flow(), of(Gap(start, start + 3_600_000, NEVER), Gap(start + 3_600_000, start + 7_200_000, GROWS))
    )
    assert alert is not None
    assert alert.text == (
        "1 gap in its ledger, the first: shop a, 2026-01-28T12:00:00+00:00 to 2026-01-28T13:00:00+00:00: never loaded"
        "\n  strandline ledger orders"
    )
    assert gaps_alert(flow(), of(Gap(start, start + 1, GROWS))) is None


def test_a_table_is_stale_when_nothing_was_loaded_for_longer_than_its_freshness() -> None:
    fresh = flow(freshness={"fail": "PT2H"})
    loaded = (NOON - timedelta(hours=2)).isoformat()
    assert freshness_alert(fresh, loaded, NOON) is None
    alert = freshness_alert(fresh, loaded, NOON + timedelta(seconds=1))
    assert alert is not None
    assert alert.text == (
        "nothing was loaded since 2026-01-28 10:00:00 UTC, for longer than 2 h (freshness: fail)\n  strandline plan orders"
    )
    assert freshness_alert(fresh, None, NOON) is None
    assert freshness_alert(flow(), "2000-01-01T00:00:00+00:00", NOON) is None


def test_files_in_quarantine_are_an_alert_with_their_reasons() -> None:
    assert quarantined_alert("orders", []) is None
    alert = quarantined_alert("orders", [(f"{number}.csv", "not UTF-8") for number in range(4)])
    assert alert
    assert alert.key == "orders:quarantined"
    assert alert.text == (
        "4 files in quarantine, such as 0.csv: not UTF-8; 1.csv: not UTF-8; 2.csv: not UTF-8\n"
        "  strandline list orders\n  strandline files release orders 0.csv 1.csv 2.csv"
    )


def test_bad_records_are_an_alert_that_names_their_table() -> None:
    assert bad_records_alert("orders", 0, "bronze/orders_bad") is None
    alert = bad_records_alert("orders", 1, "bronze/orders_bad")
    assert alert
    assert (
        alert.text
        == "1 record did not parse, and is in table bronze/orders_bad\n  strandline show bronze/orders_bad"
    )
