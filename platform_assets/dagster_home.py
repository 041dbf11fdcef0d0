"""Where a project's Dagster keeps its runs: below the project, unless the user has set DAGSTER_HOME."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from platform_assets.platform import CHECKOUT

HOME = "DAGSTER_HOME"

_SETTINGS = "dagster.yaml"
_NOTE = f"# Written anew by each start of `strandline dev`. For settings of your own set {HOME}.\n\n"


def dagster_home(project: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of a project's runs, with settings in it.

    Args:
        project: its folder.
        environment: where DAGSTER_HOME goes before the project's own.
    """
    if given := environment.get(HOME):
        return Path(given)
    home = project_home(project)
    home.mkdir(parents=True, exist_ok=True)
    draft = home / f".{_SETTINGS}.{os.getpid()}"
    draft.write_text(_NOTE + (CHECKOUT / _SETTINGS).read_text())
    draft.replace(home / _SETTINGS)
    return home


def project_home(project: Path) -> Path:
    """A project's own folder of runs, whether it is there or not; that of the checkout's project is beside its state."""
    folder = project.resolve()
    return (CHECKOUT if folder == CHECKOUT / "platform_assets" else folder) / ".strandline" / "dagster"
