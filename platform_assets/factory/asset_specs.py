"""The assets of a dataflow as specs: first as Strandline shows them, then as a user's translator does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster import (
    AssetDep,
    AssetKey,
    AssetSpec,
    BetaWarning,
    CodeReferencesMetadataValue,
    FreshnessPolicy,
    LocalFileCodeReference,
)

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import SideTable, side_table_of
from platform_assets.factory.run_settings import automation_condition
from platform_assets.translator import Role, StrandlineAsset, StrandlineTranslator
from resources.dagster.names import AssetKeys, DagsterDataflowNames, DagsterNames
from resources.platform.platform import Platform

WATERMARK_GROUP = "watermarks"
"""The group of all watermarks, so that a layer's group shows one asset for each dataflow."""

_ICONS = {"delta": "deltalake"}
"""Names of Dagster's icons for formats where they differ."""


@dataclass(frozen=True)
class DataflowSpecs:
    """The specs of a dataflow's assets.

    Attributes:
        table: its table's.
        watermark: its watermark's.
        beside: its side table's; None if it has none.
    """

    table: AssetSpec
    watermark: AssetSpec
    beside: AssetSpec | None = None

    @property
    def all(self) -> Sequence[AssetSpec]:
        """All of them."""
        return [spec for spec in (self.table, self.beside, self.watermark) if spec is not None]

    @property
    def added_deps(self) -> Sequence[AssetDep]:
        """The upstream assets that a translator has added."""
        return [dep for spec in self.all for dep in spec.deps]


def dataflow_specs(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    translator: StrandlineTranslator,
) -> DataflowSpecs:
    """Return the specs of a dataflow's assets, as the translator returns them.

    Args:
        dataflow: the definition.
        platform: the resources.
        names: the dataflow's names, with the usual keys.
        translator: what the user changes.

    Raises:
        ConfigurationError: if the translator returns what is no spec, or partitions.
    """
    side_table = side_table_of(definitions_of(dataflow), dataflow)
    file, line = dataflow.position
    reference = code_reference(platform.folder / file, line)

    def translated(role: Role, spec: AssetSpec) -> AssetSpec:
        where = f"translator, the {role.replace('_', ' ')} of dataflow {dataflow.name}"
        try:
            translated_spec = translator.get_asset_spec(StrandlineAsset(dataflow, role, spec))
        except Exception as error:
            error.add_note(f"({where})")
            raise
        return _checked(translated_spec, where)

    table = translated("table", _table_spec(dataflow, platform, names.table, reference))
    watermark = AssetSpec(
        names.watermark,
        description=f"How far {dataflow.name} is loaded and what is missing, by its {dataflow.kind} watermark. "
        f"Whether runs succeed, and why one fails, is on the page of its table, {table.key.to_user_string()}.",
        kinds={"json"},
        metadata=reference,
        owners=list(dataflow.owners),
        group_name=WATERMARK_GROUP,
    )
    beside = (
        None
        if side_table is None
        else translated(
            "late_rows",
            _side_table_spec(dataflow, platform, side_table, names.keys.tables[side_table.asset], reference),
        )
    )
    return DataflowSpecs(table, translated("watermark", watermark), beside)


def keys_of(specs: Mapping[str, DataflowSpecs], usual: DagsterNames) -> DagsterNames:
    """Return the names of a project with the keys of specs, by dataflow.

    Raises:
        ConfigurationError: if two assets have one key.
    """
    owners = dict[AssetKey, str]()
    for dataflow, of_dataflow in specs.items():
        for spec in of_dataflow.all:
            first = owners.setdefault(spec.key, dataflow)
            if first != dataflow or len({spec.key for spec in of_dataflow.all}) < len(of_dataflow.all):
                whose = f"dataflows {first} and {dataflow}" if first != dataflow else f"dataflow {dataflow}"
                raise ConfigurationError(
                    f"{whose}: expected a key of its own for each asset, found two with the key"
                    f" {spec.key.to_user_string()}: correct the translator"
                )
    return usual.with_keys(
        {dataflow: _keys(of_dataflow, usual[dataflow]) for dataflow, of_dataflow in specs.items()}
    )


def _keys(specs: DataflowSpecs, usual: DagsterDataflowNames) -> AssetKeys:
    tables = [spec.key for spec in (specs.table, specs.beside) if spec is not None]
    return AssetKeys(specs.watermark.key, dict(zip(usual.keys.tables, tables, strict=True)))


def _checked(spec: Any, where: str) -> AssetSpec:
    if not isinstance(spec, AssetSpec):
        raise ConfigurationError(f"{where}: expected an AssetSpec, found {type(spec).__name__}")
    if spec.partitions_def is not None:
        raise ConfigurationError(
            f"{where}: expected no partitions_def, found one. A dataflow's windows and units are its partitions:"
            " leave it out"
        )
    return spec


def _table_spec(
    dataflow: Dataflow, platform: Platform, key: AssetKey, reference: Mapping[str, Any]
) -> AssetSpec:
    freshness = dataflow.freshness
    policy = freshness and FreshnessPolicy.time_window(fail_window=freshness.fail, warn_window=freshness.warn)
    loaded = f"Loaded from {dataflow.source.label} above a {dataflow.kind} watermark."
    return AssetSpec(
        key,
        description=dataflow.description or loaded,
        kinds=_kinds(dataflow),
        tags=dataflow.tags,
        metadata={
            **_table_facts(dataflow.table, dataflow.target.format, platform),
            **_sharing(dataflow, platform),
            **reference,
        },
        owners=list(dataflow.owners),
        group_name=dataflow.layer,
        freshness_policy=policy or None,
        automation_condition=automation_condition(dataflow),
    )


def _side_table_spec(
    dataflow: Dataflow, platform: Platform, side_table: SideTable, key: AssetKey, reference: Mapping[str, Any]
) -> AssetSpec:
    return AssetSpec(
        key,
        description=side_table.description,
        kinds=_kinds(dataflow),
        tags=dataflow.tags,
        metadata={**_table_facts(side_table.table, dataflow.target.format, platform), **reference},
        owners=list(dataflow.owners),
        group_name=dataflow.layer,
    )


def _kinds(dataflow: Dataflow) -> set[str]:
    return {_ICONS.get(dataflow.target.format, dataflow.target.format), "spark"}


def _table_facts(table: str, format_: str, platform: Platform) -> dict[str, str]:
    """Return a table's name, location and format under Dagster's own metadata keys."""
    return {
        "dagster/table_name": table.replace("/", "."),
        "dagster/uri": str(platform.lake.child(table)),
        "dagster/storage_kind": format_,
    }


def code_reference(file: Path, line: int) -> dict[str, Any]:
    """Return the link that opens a dataflow's file at a line; nothing if the file is missing."""
    if not file.is_file():
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)  # a test of these links fails if Dagster changes them
        reference = LocalFileCodeReference(file_path=str(file), line_number=line, label=file.name)
        return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}


def _sharing(dataflow: Dataflow, platform: Platform) -> dict[str, str]:
    """Return a shared table and the other dataflows that load it; nothing if it is not shared."""
    if not dataflow.target.shared:
        return {}
    sharing_dataflows = [
        maker.name for maker in platform.lineage.makers(dataflow.table) if maker.name != dataflow.name
    ]
    return {"table": dataflow.table, "shared_with": ", ".join(sharing_dataflows) or "no other dataflow"}
