"""Loads that no run of this Dagster instance has made, such as those of the command line: shown once.

The watermark log has them. A sensor's tick, and each run, reports the entries that are new since the last
report. The newest entry that was looked at stands in the instance; a claim beside the log keeps two daemons
from reporting one entry at the same moment. See docs/reference/dagster.md, Loads outside of this Dagster.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import dropwhile, takewhile
from typing import Any

from dagster import AssetKey, AssetMaterialization, DagsterInstance, partition_loading_context

from partitions.dataflow import Dataflow
from platform_assets.dagster_internals import storage_id, store_text, stored_text
from platform_assets.run_metadata import rows_metadata, watermark_metadata
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.unreported_entries import summarize_entries
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.own_state import address_of
from resources.loop.recorded import committed_slice
from resources.platform.platform import Platform
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.holder import host_name
from resources.watermarks.quarantine_list import read_quarantine
from resources.watermarks.stored_objects import folder_of

_ENTRIES = 200
"""The most entries that one call looks at; of older ones only the newest load counts."""

_SECONDS = 10.0
"""After this time a call reports no further entry: a tick has 60 s, and serves up to 50 dataflows."""

_CLAIM_SECONDS = 300.0
"""A claim of this age is of a process that died."""

_EVENTS = 1000
"""The newest events of an asset that are searched for an entry, after a process died."""

_ENTRY = "entry"
"""The metadata that names the entry of an event."""

_looked_at: dict[tuple[str, str], int] = {}
"""The newest entry that this process has looked at, by the instance's folder and the dataflow's key.

Each tick has an instance of its own, so the instance is no key.
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OutsideLoads:
    """The loads of one dataflow that no run of a Dagster instance has made.

    Attributes:
        dataflow: the dataflow.
        platform: the resources.
        names: its names in Dagster.
        partitions: its partitions; None if it has none.
        clock: epoch seconds.
    """

    dataflow: Dataflow
    platform: Platform
    names: DagsterDataflowNames
    partitions: WindowAssetPartitions | None = None
    clock: Callable[[], float] = time.time

    def show(self, instance: DagsterInstance, up_to: int | None = None) -> None:
        """Materialise what was loaded outside since the last call.

        A failure fails no tick and no run: the rows are loaded, and the next call tries again.

        Args:
            instance: the Dagster instance.
            up_to: the number of the newest entry to look at; None: the log's.
        """
        try:
            self._show(instance, up_to)
        except Exception as error:  # noqa: BLE001 - see above
            _log.warning("loads of %s outside of Dagster are not shown yet: %s", self.dataflow.name, error)

    def _show(self, instance: DagsterInstance, up_to: int | None) -> None:
        entry = self.platform.log.newest(self.dataflow.name)
        newest = entry.number if entry else 0
        number = newest if up_to is None else min(newest, up_to)
        place = instance.root_directory, self._key
        if _looked_at.get(place) == number:
            return
        since = self._since(instance)
        if since is not None and number <= since <= newest:
            _looked_at[place] = since
            return
        if self._new_loads(instance, number):
            with self._claim(instance) as is_mine:
                if not is_mine:
                    return
                if not self._report(instance, self._new_loads(instance, number)):
                    return
        store_text(instance, self._key, str(number))
        _looked_at[place] = number

    @cached_property
    def _key(self) -> str:
        """Return the key under which the instance keeps the number of the newest entry looked at."""
        log = f"{address_of(self.platform.state)} {self.dataflow.name}"
        return f"strandline/outside_loads/{hashlib.sha256(log.encode()).hexdigest()[:32]}"

    def _since(self, instance: DagsterInstance) -> int | None:
        """Return the newest entry that the instance has looked at; None before the first look."""
        stored = stored_text(instance, self._key)
        return int(stored) if stored is not None else None

    def _new_loads(self, instance: DagsterInstance, number: int) -> Sequence[Entry]:
        """Return the loads since the last report that no run of the instance has made, oldest first.

        Of a project that Dagster has never looked at only the newest load, and only if Dagster shows
        nothing newer.
        """
        history = self.platform.log.history(self.dataflow.name, _ENTRIES)
        entries: Iterator[Entry] = dropwhile(lambda entry: entry.number > number, history)
        since = self._since(instance)
        if since is None or since > number:  # never looked at, or the log has begun again
            since = 0
            newest = next((entry for entry in entries if entry.why in LOADS), None)
            event = instance.get_latest_materialization_event(self.names.table)
            is_shown = event and newest and event.timestamp >= datetime.fromisoformat(newest.time).timestamp()
            entries = iter([newest] if newest and not is_shown else ())
        new = [*takewhile(lambda entry: entry.number > since, entries)]
        runs: dict[str, bool] = {}
        for entry in new:
            if entry.run_id and entry.run_id not in runs:
                runs[entry.run_id] = instance.get_run_by_id(entry.run_id) is not None
        return [entry for entry in reversed(new) if entry.why in LOADS and not runs.get(entry.run_id or "")]

    def _report(self, instance: DagsterInstance, entries: Sequence[Entry]) -> bool:
        """Report entries; return whether there was time for all of them."""
        started = self.clock()
        reported = self._reported_events(instance) if entries else set()
        for entry in entries:
            if self.clock() - started > _SECONDS:
                return False
            for event in self._events(instance, entry):
                if (entry.id, event.asset_key, event.partition) not in reported:
                    instance.report_runless_asset_event(event)
            store_text(instance, self._key, str(entry.number))
        return True

    def _reported_events(self, instance: DagsterInstance) -> set[tuple[str, AssetKey, str | None]]:
        """Return the events that name an entry: a process that died may have reported a part of it."""
        events = [
            record.asset_materialization
            for asset in (self.names.table, self.names.watermark)
            for record in instance.fetch_materializations(asset, limit=_EVENTS).records
        ]
        return {
            (str(event.metadata[_ENTRY].value), event.asset_key, event.partition)
            for event in events
            if event is not None and _ENTRY in event.metadata
        }

    def _events(self, instance: DagsterInstance, entry: Entry) -> Iterator[AssetMaterialization]:
        """Yield the materialisations of an entry: of both assets, of each partition if there are some."""
        log, table, watermark = self.platform.log, self.names.table, self.names.watermark
        intent = log.intent(self.dataflow.name, entry.number)
        where = f" on {host_name(intent.holder)}" if intent is not None and intent.id == entry.id else ""
        common = {
            "loaded_by": f"outside of this Dagster{where}",
            "loaded_at": entry.time,
            _ENTRY: entry.id,
            **({"table_version": entry.table_version} if entry.table_version is not None else {}),
        }
        if self.partitions is None or self.partitions.definition is None:
            rows = {**summarize_entries([entry]), **rows_metadata(self.dataflow, entry)}
            yield AssetMaterialization(table, metadata=rows | common)
            quarantine = read_quarantine(log, entry)
            yield AssetMaterialization(watermark, metadata=watermark_metadata(entry, quarantine) | common)
            return
        committed = committed_slice(log, self.dataflow.name, self.platform.kind(self.dataflow), entry)
        loaded = self.partitions.loaded([committed]) if committed else {}
        for key, metadata in self._existing_partitions(instance, loaded).items():
            for asset in (table, watermark):
                yield self.partitions.materialisation(asset, key, {**metadata, **common})

    def _existing_partitions(
        self, instance: DagsterInstance, loaded: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return the partitions that the definition has, once Dagster knows the keys of dynamic ones."""
        assert self.partitions is not None
        assert self.partitions.definition is not None
        for dynamic, keys in self.partitions.dynamic_keys(loaded).items():
            instance.add_dynamic_partitions(dynamic, keys)
        with partition_loading_context(dynamic_partitions_store=instance):
            return {
                key: metadata
                for key, metadata in loaded.items()
                if self.partitions.definition.has_partition_key(
                    str(self.partitions.materialisation(self.names.table, key).partition)
                )
            }

    @contextmanager
    def _claim(self, instance: DagsterInstance) -> Iterator[bool]:
        """Yield whether this process may report now; what another one reports is no longer new after it."""
        blobs = self.platform.log.blobs
        key = f"{folder_of(self.dataflow.name)}/notes/reporting-{storage_id(instance)}.json"
        claim = json.dumps({"at": self.clock()}).encode()
        is_mine = blobs.put_if_absent(key, claim)
        if not is_mine and self.clock() - _time_of(blobs.get(key)) > _CLAIM_SECONDS:
            blobs.delete(key)
            is_mine = blobs.put_if_absent(key, claim)
        try:
            yield is_mine
        finally:
            if is_mine:
                blobs.delete(key)


def _time_of(claim: bytes | None) -> float:
    """Return the time of a claim; that of one that does not read, or is gone, is long ago."""
    try:
        return float(json.loads(claim or b"{}").get("at", 0))
    except (ValueError, AttributeError, TypeError):
        return 0.0
