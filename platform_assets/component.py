"""A Dagster component for a project folder: ``type: strandline.StrandlineProject``.

docs/how-to/own-project.md shows its ``defs.yaml``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from dagster import (
    Component,
    ComponentLoadContext,
    Definitions,
    Injected,
    Model,
    Resolvable,
    Scaffolder,
    ScaffoldRequest,
    scaffold_with,
)
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, Field

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from platform_assets.project.checked_file import NAME
from platform_assets.scaffold.new_project import FirstKind, FirstSource, project_files, template, write_new
from platform_assets.translator import FunctionTranslator, StrandlineAsset

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
    strict: bool | None = Field(
        default=None,
        description="Fail if a file has errors. Otherwise the dataflow of such a file becomes an asset that fails with "
        "them, and the others load. Without this key only `dg check defs` fails.",
    )
    name: str | None = Field(
        default=None,
        description="The project's name in Dagster: small letters, digits and single _. Every project needs one where "
        "several share a code location or an instance.",
    )
    key_prefix: str | list[str] = Field(
        default_factory=list, description="The first parts of the keys of all its assets, such as north."
    )
    translation: Annotated[
        TranslationFn[StrandlineAsset] | None,
        TranslationFnResolver[StrandlineAsset](
            template_vars_for_translation_fn=lambda data: {"data": data, "dataflow": data.dataflow}
        ),
    ] = Field(
        default=None,
        description="Changes attributes of its assets, such as key, group_name, tags and owners. "
        "`{{ dataflow.name }}` is the dataflow, `{{ data.role }}` is table, watermark or late_rows, and "
        "`{{ spec }}` the asset without it.",
    )
    decisions: bool = Field(
        default=True,
        description="Add the jobs of an operator: decisions, views of a state, replays and deletes.",
    )
    connections: dict[str, Injected[Any]] = Field(
        default_factory=dict,
        description="Replace connections of platform.yaml, by name: `{{ land }}`, a template variable that returns an "
        "S3Resource, or a mapping with the keys of a connection.",
    )
    spark: Injected[Any] | None = Field(
        default=None,
        description="Where Spark sessions come from: `{{ spark }}`, a template variable that returns a PySparkResource, a "
        "LazyPySparkResource, or a function that returns a session.",
    )

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """Return the Dagster definitions of the project.

        Raises:
            ConfigurationError: if the folder does not exist or holds no project.
            InvalidProject: if a file has errors, and ``strict`` is set, or Dagster validates the definitions.
        """
        project = load_project(Path(context.path) / Path(self.project).expanduser())
        translator = FunctionTranslator(self.translation) if self.translation else None
        return build_definitions(
            project,
            strict=self.strict,
            name=self.name,
            key_prefix=self.key_prefix,
            translator=translator,
            decisions=self.decisions,
            executor=None,
            connections=self.connections,
            spark=self.spark,
        )
