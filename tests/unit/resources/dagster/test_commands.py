"""Commands in texts name the environment that they are about."""

from __future__ import annotations

import pytest

from partitions.commands import commands_with_environment
from partitions.errors import StrandlineError
from platform_assets.run_metadata import error_metadata
from resources.dagster.io_managers import dagster_failure


@pytest.mark.parametrize(
    ("text", "env", "expected"),
    [
        ("run `strandline run a` again", "prod", "run `strandline run a --env prod` again"),
        ("run `strandline run a` again", None, "run `strandline run a` again"),
        ("set `lake`, not `dagster dev`", "prod", "set `lake`, not `dagster dev`"),
    ],
)
def test_a_command_in_backticks_gets_it(text: str, env: str | None, expected: str) -> None:
    assert commands_with_environment(text, env) == expected


def test_errors_in_dagster_name_it_in_message_and_choices() -> None:
    error = StrandlineError("no table: `strandline run a` makes it", choices=["strandline why a"])
    failure = dagster_failure(error, "prod")
    assert failure.description == "no table: `strandline run a --env prod` makes it"
    assert failure.metadata["choice 1"].value == "strandline why a --env prod"
    shown = error_metadata(error.message, error.choices, "prod")
    assert shown["error"] == failure.description
    assert shown["what_to_do"].value == "- `strandline why a --env prod`"
