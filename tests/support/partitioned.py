"""A step with two partitioned outputs, table and watermark, whose effects a test defines.

Nothing is loaded. Without ``from __future__ import annotations``: Dagster refuses a ``context`` that is
annotated by a text.
"""

from collections.abc import Callable, Iterator
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetOut,
    AssetsDefinition,
    BackfillPolicy,
    Definitions,
    Failure,
    InputContext,
    IOManager,
    Output,
    OutputContext,
    PartitionsDefinition,
    asset,
    in_process_executor,
    multi_asset,
)

from partitions.dagster_partitions import WindowPartitions
from tests.support.windows import windowed

Effect = Callable[[OutputContext], None]
Body = Callable[[AssetExecutionContext], Iterator[Any]]

DAYS = WindowPartitions.of("days", windowed("2020-01-01", "2021-01-01"))
PAIRS = WindowPartitions.of("pairs", windowed("2020-01-01", "2021-01-01", units=["b", "a|c", "d"]))
ROLLING = WindowPartitions.of("rolling", windowed("P7D"))


class TellingIOManager(IOManager):
    """An IO manager that calls the output's value."""

    def handle_output(self, context: OutputContext, obj: Effect) -> None:
        """Call the value."""
        obj(context)

    def load_input(self, context: InputContext) -> Any:
        """Return nothing: no step loads it."""
        raise NotImplementedError


def nothing(context: OutputContext) -> None:
    """Do nothing."""


def table_of(name: str) -> AssetKey:
    return AssetKey(["bronze", name])


def watermark_of(name: str) -> AssetKey:
    return AssetKey(["watermark", name])


def loading(
    name: str,
    partitions: PartitionsDefinition[str] | None,
    table: Effect = nothing,
    body: Body | None = None,
    *,
    required: bool = True,
    single_run: bool = True,
) -> AssetsDefinition:
    """Return the two assets of a step.

    Args:
        name: the name of the step.
        partitions: the partitions of both assets.
        table: the effect of the table's IO manager.
        body: the step's body, instead of yielding both outputs.
        required: whether outputs must be yielded.
        single_run: whether a backfill is one run.
    """

    @multi_asset(
        name=name,
        outs={
            "table": AssetOut(key=table_of(name), io_manager_key="telling", is_required=required),
            "watermark": AssetOut(key=watermark_of(name), io_manager_key="telling", is_required=required),
        },
        partitions_def=partitions,
        backfill_policy=BackfillPolicy.single_run() if single_run else None,
        can_subset=False,
    )
    def load(context: AssetExecutionContext) -> Iterator[Any]:
        if body is not None:
            yield from body(context)
            return
        yield Output(table, "table")
        yield Output(nothing, "watermark")

    return load


def definitions(*assets: AssetsDefinition) -> Definitions:
    """Return assets with the IO manager."""
    return Definitions(assets, resources={"telling": TellingIOManager()}, executor=in_process_executor)


def _two_then_failure(context: OutputContext) -> None:
    for key in sorted(context.asset_partition_keys)[:2]:
        context.log_event(DAYS.materialisation(context.asset_key, key))
    raise Failure("the third window cannot be read")


def _whole_then_failure(context: OutputContext) -> None:
    context.log_event(DAYS.materialisation(context.asset_key, min(context.asset_partition_keys)))
    context.log_event(AssetMaterialization(watermark_of("whole")))
    raise Failure("the second window cannot be read")


@asset(key=["silver", "below"], deps=[table_of("days")], partitions_def=DAYS.definition)
def below() -> None:
    """Stand downstream of a table."""


defs = definitions(
    loading("days", DAYS.definition),
    loading("pairs", PAIRS.definition),
    loading("rolling", ROLLING.definition),
    loading("failing", DAYS.definition, _two_then_failure),
    loading("whole", DAYS.definition, _whole_then_failure),
    loading("single", DAYS.definition, single_run=False),
    below,
)
