"""A dataflow's table and watermark as one multi-asset with two outputs (spec 08)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dagster import (
    AllPartitionMapping,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetDep,
    AssetKey,
    AssetOut,
    AssetsDefinition,
    BackfillPolicy,
    Failure,
    FreshnessPolicy,
    Output,
    multi_asset,
)

from partitions.dataflow import Dataflow
from partitions.definitions import WindowPartitions
from partitions.path.plan import naming
from partitions.path.slices import PathSlice
from partitions.sentinels import serialise
from platform_assets.project.errors import ProjectError
from platform_assets.words import in_words
from resources.io_managers import Load, failure
from resources.loop.outcome import Outcome
from resources.platform import Platform


def table_key(dataflow: Dataflow) -> AssetKey:
    """The asset of its table."""
    return _key(dataflow.asset)


def _key(asset: str) -> AssetKey:
    return AssetKey(asset.split("/"))


def watermark_key(name: str) -> AssetKey:
    """The asset of its watermark."""
    return AssetKey(["watermark", name])


def pool(name: str) -> str:
    """The pool that all runs of a dataflow share."""
    return f"strandline/{name}"


def dataflow_assets(
    dataflow: Dataflow,
    platform: Platform,
    partitions: WindowPartitions | None = None,
    *,
    checked: bool = True,
) -> AssetsDefinition:
    """Table first, then watermark: the watermark's manager runs only after the table's succeeded.

    Args:
        dataflow: the definition.
        platform: the resources.
        partitions: of a window watermark.
        checked: whether each run tells Dagster what its checks found.
    """
    freshness = dataflow.freshness and FreshnessPolicy.time_window(
        fail_window=dataflow.freshness.fail, warn_window=dataflow.freshness.warn
    )
    common: dict[str, Any] = {
        "group_name": dataflow.layer,
        "owners": list(dataflow.owners) or None,
        "freshness_policy": freshness,
    }

    @multi_asset(
        name=dataflow.name,
        outs={
            "table": AssetOut(
                key=table_key(dataflow),
                io_manager_key="table",
                description=dataflow.description
                or f"Loaded from {dataflow.source.shown} above a {dataflow.kind} watermark.",
                kinds={dataflow.target.format, "spark"},
                tags=dataflow.tags,
                **common,
            ),
            "watermark": AssetOut(
                key=watermark_key(dataflow.name),
                io_manager_key="watermark",
                description=f"How far {dataflow.name} is loaded: its {dataflow.kind} watermark, from the watermark log.",
                kinds={"json"},
                **common,
            ),
        },
        check_specs=_check_specs(dataflow) if checked else None,
        deps=_deps(dataflow, platform),
        pool=pool(dataflow.name),
        can_subset=False,
        partitions_def=partitions.definition if partitions else None,
        backfill_policy=BackfillPolicy.single_run() if partitions and partitions.definition else None,
    )
    def load() -> Iterator[Any]:
        run = Load(dataflow)
        yield Output(run, "table")
        if run.outcome is not None and run.outcome.error is not None:
            run.told()
            raise failure(run.outcome.error)
        yield Output(run, "watermark")
        run.told()
        if checked and run.outcome is not None:
            yield from _checks(dataflow, platform, run.outcome)

    return load


def _deps(dataflow: Dataflow, platform: Platform) -> list[AssetDep]:
    """The tables that it reads. A row's window or unit there says nothing about its window here, so all their partitions count."""
    above = platform.lineage.upstream_assets(dataflow)
    return [AssetDep(_key(asset), partition_mapping=AllPartitionMapping()) for asset in above]


def _check_specs(dataflow: Dataflow) -> list[AssetCheckSpec]:
    specs = [
        AssetCheckSpec(
            "watermark_monotone",
            asset=watermark_key(dataflow.name),
            description="No part of the watermark fell in this run.",
        ),
        AssetCheckSpec(
            "rows_accounted",
            asset=table_key(dataflow),
            description="The rows of this run's commits are the rows of its entries.",
        ),
    ]
    if dataflow.kind == "path":
        naming_spec = AssetCheckSpec(
            "names_sort_by_time",
            asset=table_key(dataflow),
            description="Names of a sample of the new files sort by time.",
        )
        specs.append(naming_spec)
    return specs


def broken_asset(layer: str, name: str, errors: Sequence[ProjectError]) -> AssetsDefinition:
    """A dataflow whose file has errors: it shows as an asset whose materialisation fails with them."""
    text = "\n".join(str(error) for error in errors)

    @multi_asset(
        name=name,
        outs={
            "table": AssetOut(
                key=AssetKey([layer, name]),
                group_name=layer,
                description=f"This dataflow's file has errors:\n\n```\n{text}\n```",
                kinds={"error"},
            )
        },
        pool=pool(name),
    )
    def load() -> None:
        raise Failure(
            description=text, metadata={"code": "configuration", "exit_code": 2}, allow_retries=False
        )

    return load


def _checks(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> Iterator[AssetCheckResult]:
    before, after = serialise(outcome.before), serialise(outcome.after)
    yield AssetCheckResult(
        passed=platform.kind(dataflow).covers(after, before),
        check_name="watermark_monotone",
        asset_key=watermark_key(dataflow.name),
        metadata={"before": in_words(outcome.before), "after": in_words(outcome.after)},
    )
    start = outcome.committed[0].entry.total_rows - outcome.committed[0].grown if outcome.committed else 0
    logged = outcome.newest.total_rows - start if outcome.committed and outcome.newest else 0
    grown = sum(piece.grown for piece in outcome.committed)
    yield AssetCheckResult(
        passed=logged == grown,
        check_name="rows_accounted",
        asset_key=table_key(dataflow),
        metadata={"rows_committed": grown, "rows_in_log": logged},
    )
    if dataflow.kind == "path":
        yield _naming(dataflow, outcome)


def _naming(dataflow: Dataflow, outcome: Outcome) -> AssetCheckResult:
    slices = [piece for piece in outcome.plan.slices if isinstance(piece, PathSlice)] if outcome.plan else []
    report = naming(dataflow.path, [file for piece in slices for file in piece.files])
    return AssetCheckResult(
        passed=report.sorts,
        check_name="names_sort_by_time",
        asset_key=table_key(dataflow),
        severity=AssetCheckSeverity.WARN,
        metadata={"sample": report.sample, "findings": "\n".join(report.findings) or "none"},
    )
