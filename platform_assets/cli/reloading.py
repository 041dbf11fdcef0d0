"""The part of ``strandline dev`` that loads the project again when its files change."""

from __future__ import annotations

from collections.abc import Callable

from partitions.errors import StrandlineError, shorten_to_line
from partitions.plan import pluralize
from partitions.spelling import first_few
from platform_assets.platform import engine_of_project
from platform_assets.project import Project, load_project
from platform_assets.project.file_changes import ProjectFiles

_NAMED = 3
"""How many changed files a line names."""


class LocationReload:
    """Reloads the code location in Dagster's UI and daemon after a change of the project's files."""

    def __init__(
        self, project: Project, host: str, port: int, location: str, say: Callable[[str], None]
    ) -> None:
        """Remember the project's files as they are now.

        Args:
            project: the project as it was loaded.
            host: the address of the UI.
            port: its port.
            location: the name of the code location.
            say: prints a line.
        """
        self._folder, self._env = project.folder, project.env
        self._host, self._port, self._location = host, port, location
        self._say = say
        self._files = ProjectFiles(project.folder)
        self._jars = _needed_jars(project)

    def look(self) -> None:
        """Reload the location if files have changed, and say what it then has."""
        changed = self._files.changed()
        if not changed:
            return
        self._say(f"reloading, because {first_few(changed, _NAMED)} changed …")
        problem = self._reload()
        if problem:
            self._say(f"the project does not load: {problem}")
            return
        self._say_project()

    def _reload(self) -> str:
        """Ask the UI to reload; return what is wrong, "" if nothing is."""
        from dagster_graphql import DagsterGraphQLClient, ReloadRepositoryLocationStatus

        host = f"[{self._host}]" if ":" in self._host else self._host
        try:
            client = DagsterGraphQLClient(host, port_number=self._port)
            answer = client.reload_repository_location(self._location)
        except Exception as error:  # noqa: BLE001 - whatever the UI answers, the processes go on with the old project
            return shorten_to_line(f"{type(error).__name__}: {error}")
        if answer.status == ReloadRepositoryLocationStatus.SUCCESS:
            return ""
        return answer.message or answer.failure_type or "Dagster gives no reason"

    def _say_project(self) -> None:
        try:
            project = load_project(self._folder, env=self._env or "")
        except StrandlineError as error:
            self._say(f"the project does not load: {error.message}")
            return
        broken = f", {len(project.broken)} of them broken" if project.broken else ""
        self._say(f"reloaded: {pluralize(len(project.dataflows) + len(project.broken), 'dataflow')}{broken}")
        for name, errors in project.broken.items():
            self._say(f"  {name}: {errors[0]}")
        missing = _needed_jars(project) - self._jars
        if missing:
            self._say(
                f"Spark runs without {', '.join(sorted(missing))}, which the dataflows need now: start `strandline dev` again"
            )


def _needed_jars(project: Project) -> set[str]:
    try:
        return set(engine_of_project(project).packages)
    except StrandlineError:  # `validate` tells what is wrong
        return set()
