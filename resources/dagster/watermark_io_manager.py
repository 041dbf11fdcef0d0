"""The watermark as the second of two outputs of one step (docs/reference/dagster.md).

Its manager runs after the table's: it checks that the newest entry is the one of this run, and shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dagster import AssetKey, Failure, InputContext, IOManager, OutputContext

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.sentinels import Watermark
from resources.dagster.io_managers import Load, dagster_failure
from resources.dagster.names import DagsterNames
from resources.dagster.output_metadata import add_run_metadata
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

DescribeEntry = Callable[[Dataflow, Entry | None], Mapping[str, Any]]
"""Metadata of a dataflow's watermark."""


class WatermarkIOManager(IOManager):
    """Shows a dataflow's newest watermark; provides it to downstream assets as a dict of values."""

    def __init__(self, platform: Platform, names: DagsterNames, describe: DescribeEntry) -> None:
        """Use a project's resources and names; ``describe`` returns the metadata of a materialisation."""
        self._platform = platform
        self._names = names
        self._describe = describe

    def handle_output(self, context: OutputContext, obj: Load) -> None:
        """Add the metadata of the run's newest entry; warn if another run has appended an entry since.

        Raises:
            Failure: for the value of an asset that no dataflow makes.
        """
        _check_load(context, obj, self._names.watermark_manager)
        if obj.is_unchanged:
            return
        if obj.outcome is None:
            raise dagster_failure(
                ConfigurationError(
                    "the watermark's output came before the table's: expected the table first"
                ),
                None,
            )
        newest, own_entry = self._platform.log.newest(obj.dataflow.name), obj.outcome.newest
        if (newest and newest.id) != (own_entry and own_entry.id):
            # Another run may continue right after this one; its entry is valid, and this run's entry is in the history.
            context.log.warning(
                "entry %s was appended by another run meanwhile", newest.number if newest else 0
            )
        metadata = self._describe(obj.dataflow, own_entry)
        add_run_metadata(context, metadata, ("state_number",))

    def described(self, dataflow: Dataflow) -> Mapping[str, Any]:
        """Return the metadata of the newest entry."""
        return self._describe(dataflow, self._platform.log.newest(dataflow.name))

    def load_input(self, context: InputContext) -> Watermark | None:
        """Return the newest watermark; None if there is none.

        Raises:
            Failure: if the asset is no watermark of the project.
        """
        dataflow = self._names.dataflow_of(context.asset_key)
        if dataflow is None:
            raise _not_of_this_project(context.asset_key, self._names.watermark_manager)
        return self._platform.manager().get_watermark(dataflow)


def _check_load(context: OutputContext, value: object, manager: str) -> None:
    """Raise if an output is no dataflow's."""
    if not isinstance(value, Load):
        raise dagster_failure(
            ConfigurationError(
                f"asset {context.asset_key.to_user_string()}: expected the watermark of a dataflow, found "
                f"{type(value).__name__}. Its io_manager_key is {manager}, which stores no other values: give "
                "the asset another IO manager"
            ),
            None,
        )


def _not_of_this_project(key: AssetKey, manager: str) -> Failure:
    return dagster_failure(
        ConfigurationError(
            f"asset {key.to_user_string()}: expected a watermark of this project, found another asset. Its IO"
            f" manager, {manager}, reads the project's own assets only: give it another IO manager"
        ),
        None,
    )
