"""A project whose own assets are stored by its table IO manager."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from dagster import (
    AssetIn,
    AssetKey,
    AssetsDefinition,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    PartitionsDefinition,
    asset,
    in_process_executor,
)

from platform_assets.build import build_definitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.dagster.run_options import RunOptions
from resources.spark.engine import SparkEngine
from resources.tables.registry import find_table
from tests.support.projects import project_of

NOW = datetime(2026, 1, 10, tzinfo=UTC)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class OwnProject:
    """A project, which may have dataflows, and runs of a user's own assets in it."""

    def __init__(
        self,
        folder: Path,
        engine: SparkEngine | None = None,
        table_format: str = "delta",
        key_prefix: str = "",
        **dataflows: str,
    ) -> None:
        self.folder = project_of(folder, **dataflows)
        (self.folder / "platform.yaml").write_text(f"state: ./state\nlake: ./lake\nformat: {table_format}\n")
        self.instance = DagsterInstance.ephemeral()
        self._engine, self._prefix = engine, key_prefix

    @classmethod
    def at(cls, folder: Path) -> OwnProject:
        """Return a project that exists, as another process sees it."""
        project = cls.__new__(cls)
        project.folder, project.instance = folder, DagsterInstance.ephemeral()
        project._engine, project._prefix = None, ""
        return project

    def elsewhere(self) -> OwnProject:
        """Return the same project with a Dagster of its own."""
        project = OwnProject.at(self.folder)
        project._engine, project._prefix = self._engine, self._prefix
        return project

    def definitions(self, *assets: AssetsDefinition) -> Definitions:
        """Return the definitions of the project with these assets."""
        project = load_project(self.folder)
        platform = build_platform(project)
        platform = platform if self._engine is None else replace(platform, spark=self._engine)
        options = RunOptions(now=NOW, hold_wait=timedelta(0))
        own = build_definitions(project, platform, options, key_prefix=self._prefix, executor=None)
        return Definitions.merge(own, Definitions(assets=assets, executor=in_process_executor))

    def run(
        self,
        *assets: AssetsDefinition,
        partition: str | None = None,
        partitions: tuple[str, str] | None = None,
        **more: Any,
    ) -> ExecuteInProcessResult:
        """Run assets over one partition, or over a range of them."""
        tags = dict(
            zip(
                ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end"),
                partitions or (),
                strict=False,
            )
        )
        job = self.definitions(*assets).resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=[each.key for each in assets],
            partition_key=partition,
            run_config=QUIET,
            tags=tags,
            **more,
        )

    def refused(self, *assets: AssetsDefinition, **more: Any) -> str:
        """Run assets, and return the text with which the run fails."""
        result = self.run(*assets, raise_on_error=False, **more)
        (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
        assert failure.user_failure_data is not None, failure.error
        return str(failure.user_failure_data.description)

    def rows(self, table: str, *order: str) -> list[dict[str, Any]]:
        """Return all rows of a table; none if there is no table."""
        found = find_table(Place(str(self.folder / "lake" / table)))
        if not found.exists():
            return []
        contents = found.contents
        names = [name for name in contents.columns() if name != "_commit"]
        read = contents.arrow_rows(contents.newest_version(), columns=names).read_all()
        rows: list[dict[str, Any]] = read.sort_by(
            [(name, "ascending") for name in order or names[:1]]
        ).to_pylist()
        return rows


def own_asset(
    value: Callable[[Any], Any],
    key: str = "silver/totals",
    partitions_def: PartitionsDefinition[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    manager: str = "strandline_table",
) -> AssetsDefinition:
    """Return an asset that returns what a function makes of its context."""

    @asset(key=key.split("/"), partitions_def=partitions_def, metadata=metadata, io_manager_key=manager)
    def own(context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Dagster checks no type then
        return value(context)

    return own


def below(
    key: str = "silver/totals",
    annotation: Any = pa.Table,
    partitions_def: PartitionsDefinition[str] | None = None,
    **of_input: Any,
) -> tuple[AssetsDefinition, list[Any]]:
    """Return an asset that reads another one, and what it gets."""
    seen: list[Any] = []

    def report(given):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - annotated below
        seen.append(given)

    report.__annotations__ = {"given": annotation, "return": None}
    ins = {"given": AssetIn(AssetKey(key.split("/")), **of_input)}
    return asset(name="report", ins=ins, partitions_def=partitions_def)(report), seen


def shown(result: ExecuteInProcessResult, key: str) -> dict[str | None, dict[str, Any]]:
    """Return the metadata of an asset's materialisations, by partition."""
    events = result.asset_materializations_for_node(key.replace("/", "__"))
    return {each.partition: {name: value.value for name, value in each.metadata.items()} for each in events}
