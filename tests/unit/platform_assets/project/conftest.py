"""Projects made of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from platform_assets.project import Project, load_project

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A project of these files; ``flow`` is the text of dataflows/flow.yaml, ``platform`` that of platform.yaml."""

    def project(
        flow: str | None = None,
        platform: str | None = None,
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Project:
        texts = {"platform.yaml": platform, "dataflows/flow.yaml": flow, **(files or {})}
        (tmp_path / "dataflows").mkdir()
        for name, text in texts.items():
            if text is not None:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
        return load_project(tmp_path, environment=environment or {})

    return project
