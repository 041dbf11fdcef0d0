"""Where a project's Dagster keeps its runs: below the project, unless the user has set DAGSTER_HOME."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from platform_assets.installation import ROOT

HOME = "DAGSTER_HOME"

_SETTINGS = "dagster.yaml"
_NOTE = f"# Written again by each start of `strandline dev`. For settings of your own set {HOME}.\n\n"


def dagster_home(project: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of a project's runs, with settings in it.

    Args:
        project: its folder.
        environment: its DAGSTER_HOME wins over the project's own folder.
    """
    if given := environment.get(HOME):
        return Path(given)
    home = project_home(project)
    home.mkdir(parents=True, exist_ok=True)
    draft = home / f".{_SETTINGS}.{os.getpid()}"
    draft.write_text(_NOTE + (ROOT / _SETTINGS).read_text())
    draft.replace(home / _SETTINGS)
    return home


@contextmanager
def opening(home: Path) -> Iterator[None]:
    """Wait until no other process opens a folder of runs: Dagster makes its tables then, and two that make them at once break them for good.

    Of a folder that is not there nothing is made: Dagster refuses it.

    Raises:
        OSError: the folder cannot be written.
    """
    if not home.is_dir():
        yield
        return
    with (home / ".opening.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def at_home(project: Path) -> Iterator[Path]:
    """Have this process, and those that it starts, use the folder of a project's runs as long as the block runs."""
    before = os.environ.get(HOME)
    os.environ[HOME] = str(dagster_home(project))
    try:
        yield Path(os.environ[HOME])
    finally:
        os.environ.pop(HOME)
        if before is not None:
            os.environ[HOME] = before


def project_home(project: Path) -> Path:
    """Return a project's own folder of runs, which may not exist yet. The checkout's project has it beside its state."""
    folder = project.resolve()
    return (ROOT if folder == ROOT / "platform_assets" else folder) / ".strandline" / "dagster"
