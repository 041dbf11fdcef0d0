"""A Dagster component for a project folder: ``type: strandline.StrandlineProject``.

docs/how-to/own-project.md shows its ``defs.yaml``.
"""

from __future__ import annotations

from pathlib import Path

from dagster import (
    Component,
    ComponentLoadContext,
    Definitions,
    Model,
    Resolvable,
    Scaffolder,
    ScaffoldRequest,
    scaffold_with,
)
from dagster.components.component_scaffolding import scaffold_component
from pydantic import BaseModel, Field

from platform_assets.build import build_definitions
from platform_assets.project import InvalidProject, load_project
from platform_assets.project.checked_file import NAME
from platform_assets.scaffold.new_project import FirstKind, FirstSource, project_files, template, write_new

_OWN = "."


class FirstDataflow(BaseModel):
    """The options of ``dg scaffold``."""

    kind: FirstKind | None = Field(
        default=None,
        description="The kind of watermark of a first dataflow; path unless the source needs another.",
    )
    source: FirstSource | None = Field(
        default=None, description="The type of its source; by default the kind's first one."
    )
    name: str = Field(
        default="events",
        pattern=f"^{NAME.pattern}$",
        description="The name of that dataflow: a small letter, then small letters, digits and _.",
    )


class ProjectScaffolder(Scaffolder[FirstDataflow]):
    """Writer of a component whose folder is the project, with a first dataflow."""

    @classmethod
    def get_scaffold_params(cls) -> type[FirstDataflow]:
        """Return the model of the options."""
        return FirstDataflow

    def scaffold(self, request: ScaffoldRequest[FirstDataflow]) -> None:
        """Write ``defs.yaml`` and the project beside it; keep files that exist."""
        scaffold_component(request, {"project": _OWN})
        params = request.params
        folder = request.target_path.parent if request.append else request.target_path
        files = project_files(folder, {params.name: template(params.name, params.kind, params.source)})
        # The component is the way in, and the instance and the README are those of the dg project.
        of_a_location = ("definitions.py", "workspace.yaml", "dagster.yaml", "README.md")
        write_new(folder, {name: text for name, text in files.items() if name not in of_a_location})


@scaffold_with(ProjectScaffolder)
class StrandlineProject(Component, Model, Resolvable):
    """Loads a project's dataflows: tables and watermarks as assets, with jobs, sensors and checks.

    Runs that people start from the asset graph use the code location's executor. A dataflow's job runs in
    one process.
    """

    project: str = Field(
        default=_OWN,
        description="The folder with platform.yaml and dataflows/; relative paths count from this component's folder.",
    )
    strict: bool = Field(
        default=False,
        description="Fail if a file has errors. Otherwise the dataflow of such a file becomes an asset that fails with "
        "them, and the others load.",
    )

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """Return the Dagster definitions of the project.

        Raises:
            ConfigurationError: if the folder does not exist or holds no project.
            InvalidProject: if a file has errors and ``strict`` is set.
        """
        project = load_project(Path(context.path) / Path(self.project).expanduser())
        if self.strict and project.errors:
            raise InvalidProject(project.errors)
        return build_definitions(project, executor=None)
