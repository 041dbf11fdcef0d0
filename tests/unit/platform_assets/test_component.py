"""The component that `dg` makes: what its scaffold writes. The commands themselves are tried in tests/packaging."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import ScaffoldRequest
from pydantic import ValidationError

from platform_assets.component import FirstDataflow, ProjectScaffolder
from platform_assets.platform import build_platform
from platform_assets.project import load_project


def test_the_folder_that_a_first_dataflow_reads_is_there(tmp_path: Path) -> None:
    request = ScaffoldRequest(
        type_name="strandline.StrandlineProject",
        target_path=tmp_path,
        scaffold_format="yaml",
        project_root=tmp_path,
        params=FirstDataflow(name="orders_2"),
        append=False,
    )
    ProjectScaffolder().scaffold(request)
    project = load_project(tmp_path, environment={})
    assert project.errors == []
    place = build_platform(project).root_of(project.dataflows["orders_2"]).local
    assert place is not None
    assert place.is_dir()


@pytest.mark.parametrize("name", ["Orders", "or ders", "../orders", "2x", ""])
def test_a_name_that_no_dataflow_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="should match pattern"):
        FirstDataflow(name=name)
