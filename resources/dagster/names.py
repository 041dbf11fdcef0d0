"""A project's names in Dagster: keys of assets and resources, jobs, sensors, pools, tags of runs.

One object has all of them. An asset's key may be anything, and may change at any time: nothing is looked up
by the text of a key, and no state depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dagster import AssetKey, RunRequest

from partitions.dataflow import Dataflow
from resources.dagster.run_tags import RunTags

_WATERMARK = "watermark"


@dataclass(frozen=True)
class AssetKeys:
    """The keys of a dataflow's assets.

    Attributes:
        watermark: of its watermark.
        tables: of its own table, which is the first, and of those beside it, by ``<layer>/<name>``.
    """

    watermark: AssetKey
    tables: Mapping[str, AssetKey]

    @property
    def table(self) -> AssetKey:
        """The key of the dataflow's own table."""
        return next(iter(self.tables.values()))


@dataclass(frozen=True)
class DagsterDataflowNames:
    """The names of one dataflow's parts.

    Attributes:
        dataflow: its name in the project.
        project: the names of all parts of the project.
        keys: the keys of its assets.
    """

    dataflow: str
    project: DagsterNames
    keys: AssetKeys

    @property
    def tags(self) -> RunTags:
        """The tags of the project's runs."""
        return self.project.tags

    @property
    def table(self) -> AssetKey:
        """The key of the table."""
        return self.keys.table

    @property
    def watermark(self) -> AssetKey:
        """The key of the watermark."""
        return self.keys.watermark

    @property
    def pool(self) -> str:
        """The pool that all runs of the dataflow share."""
        return self.tags.pool(self.dataflow)

    @property
    def run_tags(self) -> Mapping[str, str]:
        """The tags of all runs that load the dataflow; they find these runs, too."""
        return self.tags.of(self.dataflow)

    @property
    def identifier(self) -> str:
        """The dataflow's name among all projects of a location."""
        return self.tags.identifier(self.dataflow)

    @property
    def step(self) -> str:
        """The name of the step that loads the dataflow.

        Dagster names the steps of assets by their keys in this way. So neither an asset of a user nor a word that
        Dagster reserves has this name, whatever the dataflow is called.
        """
        return self.table.to_python_identifier()

    def job(self, verb: str) -> str:
        """Return the name of a job, such as ``load_orders``."""
        return f"{verb}_{self.identifier}"

    def trigger(self, what: str) -> str:
        """Return the name of a sensor or schedule, such as ``orders_files``."""
        return f"{self.identifier}_{what}"

    def is_trigger(self, name: str) -> bool:
        """Return whether a sensor or schedule is the dataflow's; their last parts hold no ``_``."""
        return name == self.trigger(name.rpartition("_")[2])

    def run_request(self, run_key: str) -> RunRequest:
        """Return a request for a run of the dataflow; Dagster runs each key once."""
        return RunRequest(run_key=run_key, tags=self.run_tags)


@dataclass(frozen=True)
class DagsterNames:
    """The names of a project's parts.

    Attributes:
        tags: the tags of its runs, with the name of the project.
        key_prefix: the first parts of the keys of all its assets.
        usual: the keys of assets without a translator, by dataflow.
        keys: the keys of assets, by dataflow.
    """

    tags: RunTags = field(default_factory=RunTags)
    key_prefix: Sequence[str] = ()
    usual: Mapping[str, AssetKeys] = field(default_factory=dict)
    keys: Mapping[str, AssetKeys] = field(default_factory=dict)

    @classmethod
    def of(
        cls, dataflows: Iterable[Dataflow], project: str | None = None, key_prefix: Sequence[str] = ()
    ) -> DagsterNames:
        """Return the names of a project whose dataflows have their usual keys.

        Args:
            dataflows: all dataflows of the project.
            project: its name in Dagster; None if it has none.
            key_prefix: the first parts of all keys.
        """
        names = cls(RunTags(project), tuple(key_prefix))
        keys = {flow.name: names._usual_keys(flow) for flow in dataflows}
        return replace(names, usual=keys, keys=keys)

    def with_keys(self, keys: Mapping[str, AssetKeys]) -> DagsterNames:
        """Return the same names with other keys of assets, by dataflow."""
        return replace(self, keys=keys)

    def __getitem__(self, dataflow: str) -> DagsterDataflowNames:
        """Return the names of a dataflow's parts."""
        return DagsterDataflowNames(dataflow, self, self.keys[dataflow])

    def usual_key(self, asset: str) -> AssetKey:
        """Return the key of an asset ``<layer>/<name>`` of the project, unless a translator changes it."""
        return AssetKey([*self.key_prefix, *asset.split("/")])

    @property
    def project(self) -> str | None:
        """The project's name; None if it has none."""
        return self.tags.project

    @property
    def table_manager(self) -> str:
        """The key of the IO manager of tables.

        The prefix keeps resources apart from a user's own, which these may be merged with.
        """
        return self.shared("table")

    @property
    def watermark_manager(self) -> str:
        """The key of the IO manager of watermarks."""
        return self.shared("watermark")

    @property
    def watermarks(self) -> str:
        """The key of the watermark manager, which any asset may ask for."""
        return self.shared("watermarks")

    @property
    def spark(self) -> str:
        """The key of Spark, which any asset may ask for."""
        return self.shared("spark")

    def shared(self, what: str) -> str:
        """Return the name of a part that all dataflows of the project share: a resource, job or sensor."""
        return f"strandline_{what}" if self.project is None else f"strandline_{self.project}_{what}"

    def key_of(self, asset: str) -> AssetKey:
        """Return the key of an asset ``<layer>/<name>``; without a prefix if no dataflow makes it."""
        return self._tables.get(asset) or AssetKey(asset.split("/"))

    def asset_of(self, key: AssetKey) -> str | None:
        """Return the asset ``<layer>/<name>`` of a table's key; None if no dataflow of the project makes it."""
        return next((asset for asset, table in self._tables.items() if table == key), None)

    def maker_of(self, asset: str) -> str:
        """Return the dataflow that makes an asset ``<layer>/<name>`` of the project."""
        return next(name for name, keys in self.keys.items() if asset in keys.tables)

    def dataflow_of(self, watermark: AssetKey) -> str | None:
        """Return the dataflow of a watermark's key; None if it is of no dataflow of the project."""
        return next((name for name, keys in self.keys.items() if keys.watermark == watermark), None)

    @cached_property
    def _tables(self) -> Mapping[str, AssetKey]:
        return {asset: key for keys in self.keys.values() for asset, key in keys.tables.items()}

    def _usual_keys(self, dataflow: Dataflow) -> AssetKeys:
        prefix = self.key_prefix or ([] if self.project is None else [self.project])
        return AssetKeys(
            AssetKey([*prefix, _WATERMARK, dataflow.name]),
            {asset: self.usual_key(asset) for asset in (dataflow.asset, *dataflow.tables_beside)},
        )
