"""The tags of runs: what people read is shown, and what machines read is not."""

from __future__ import annotations

import pytest
from dagster import DagsterInstance, RunsFilter
from dagster._core.storage.tags import HIDDEN_TAG_PREFIX
from dagster._core.test_utils import create_run_for_test

from platform_assets.factory.upstream import CHANGES_TAG
from resources.dagster.io_managers import PLAN_TAG
from resources.dagster.run_holder import HOLDER_TAG
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.dagster.unreported_entries import mark_reported
from tests.support.names import names_of_runs


@pytest.mark.parametrize(
    ("tag", "hidden"), [(DATAFLOW_TAG, False), (PLAN_TAG, False), (HOLDER_TAG, True), (CHANGES_TAG, True)]
)
def test_dagster_hides_the_tags_that_only_machines_read(tag: str, hidden: bool) -> None:
    assert tag.startswith(HIDDEN_TAG_PREFIX) is hidden


def test_a_run_is_found_by_a_hidden_tag_and_shows_only_its_dataflow() -> None:
    with DagsterInstance.ephemeral() as instance:
        run = create_run_for_test(
            instance, job_name="load_flow", tags={DATAFLOW_TAG: "flow", CHANGES_TAG: "x"}
        )
        mark_reported(instance, names_of_runs("flow"), [run.run_id], 7)
        (same,) = instance.get_runs(RunsFilter(tags={CHANGES_TAG: "x"}))
        assert same.run_id == run.run_id
        assert [tag for tag in same.tags if not tag.startswith(HIDDEN_TAG_PREFIX)] == [DATAFLOW_TAG]
