"""Cron texts: whatever is taken, Dagster takes; a wrong one breaks its own file, not the code location."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dagster._utils.schedules import is_valid_cron_string
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.project.cron import is_cron

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

ITEMS = st.one_of(
    st.sampled_from(
        [
            "*",
            "jan",
            "DEC",
            "sun",
            "FRI",
            "mon-fri",
            "jan-mar",
            "1-0",
            "L",
            "?",
            "-1",
            "1-",
            "/2",
            "99",
            "x",
            "",
        ]
    ),
    st.integers(0, 62).map(str),
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
    st.tuples(st.sampled_from(["*", "0-7", "2", "1-5"]), st.integers(0, 70)).map(
        lambda pair: f"{pair[0]}/{pair[1]}"
    ),
)
TEXTS = st.lists(
    st.lists(ITEMS, min_size=1, max_size=2).map(",".join) | st.just("*"), min_size=4, max_size=6
).map(" ".join)


@given(TEXTS)
def test_dagster_takes_every_text_that_is_taken(text: str) -> None:
    assert is_valid_cron_string(text) or not is_cron(text)


@pytest.mark.parametrize(
    "text",
    [
        "0 6 * * *",
        "*/15 * * * *",
        "0 6 * * MON-FRI",
        "0,30 8-18/2 1,15 jan-jun 0",
        "@daily",
        "0 0 29 2 *",
        "5 4 * * sun",
    ],
)
def test_common_texts_are_taken(text: str) -> None:
    assert is_cron(text)
    assert is_valid_cron_string(text)


@pytest.mark.parametrize(
    "text",
    [
        "every day",
        "0 6 * *",
        "0 6 * * * *",
        "60 6 * * *",
        "0 24 * * *",
        "0 0 0 * *",
        "0 0 30 2 *",
        "0 0 31 apr *",
        "0 0 31 apr,jun *",
        "0 0 30 feb mon",
        "0 0 30 2,2 *",
        "@reboot",
        "6:00",
    ],
)
def test_a_wrong_schedule_is_an_error_of_its_file(make: Make, text: str) -> None:
    errors = make(
        f'source: {{type: table, table: bronze/orders}}\nwatermark: {{type: column, columns: [at]}}\nschedule: "{text}"\n'
    ).errors
    assert [(error.line, error.key, error.actual.strip("'")) for error in errors] == [(3, "schedule", text)]
    assert 'such as "0 6 * * *"' in errors[0].expected
    assert errors[0].expected.endswith("or a shorthand such as @daily")


def test_a_schedule_beside_a_path_watermark_is_quoted(make: Make) -> None:
    source = "source: {type: files, path: ./landing, format: ndjson}"
    (error,) = make(f'{source}\nwatermark: {{type: path}}\nschedule: "0 6 * * *"\n').errors
    assert (error.line, error.key, error.actual) == (3, "schedule", "'0 6 * * *'")
