"""The folder where a project's Dagster keeps its runs: in the project, unless DAGSTER_HOME is set."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from platform_assets.installation import ROOT

HOME = "DAGSTER_HOME"

PAUSED = "STRANDLINE_PAUSED"
"""The variable of the environment that leaves sensors and schedules off until someone turns them on."""

_SETTINGS = "dagster.yaml"
_NOTE = (
    f"# Written again by each start of `strandline dev`, from {_SETTINGS} of the project, if it has one. For other settings"
    f" change that file, or set {HOME}.\n\n"
)


def dagster_home(
    project: Path, environment: Mapping[str, str] = os.environ, *, env: str | None = None
) -> Path:
    """Return the folder of a project's runs; create the project's own, with Dagster's settings.

    Args:
        project: its folder.
        environment: a DAGSTER_HOME in it wins over the project's own folder.
        env: the project's environment; each has runs of its own.
    """
    if user_home := environment.get(HOME):
        return Path(user_home)
    home = project_home(project, env)
    home.mkdir(parents=True, exist_ok=True)
    draft = home / f".{_SETTINGS}.{os.getpid()}"
    own_settings = project / _SETTINGS
    settings = own_settings if own_settings.is_file() else ROOT / _SETTINGS
    draft.write_text(_NOTE + settings.read_text())
    draft.replace(home / _SETTINGS)
    return home


@contextmanager
def lock_dagster_home(home: Path) -> Iterator[None]:
    """Hold the lock under which a Dagster instance is opened in a folder.

    The first to open it creates Dagster's tables; two processes that do so at once break them for good. A
    missing folder is not created: Dagster refuses it.

    Raises:
        OSError: if the folder cannot be written.
    """
    if not home.is_dir():
        yield
        return
    with (home / ".opening.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def use_dagster_home(project: Path, env: str | None) -> Iterator[Path]:
    """Set DAGSTER_HOME to a project's folder of runs inside the block, also for child processes."""
    previous = os.environ.get(HOME)
    os.environ[HOME] = str(dagster_home(project, env=env))
    try:
        yield Path(os.environ[HOME])
    finally:
        os.environ.pop(HOME)
        if previous is not None:
            os.environ[HOME] = previous


def project_home(project: Path, env: str | None = None) -> Path:
    """Return the own folder of runs of a project's environment, which may not exist yet.

    The checkout's own project has it beside its state.
    """
    folder = project.resolve()
    top = (ROOT if folder == ROOT / "platform_assets" else folder) / ".strandline"
    return (top / env if env else top) / "dagster"
