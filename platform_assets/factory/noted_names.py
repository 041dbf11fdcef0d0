"""A project's names in a Dagster instance: its code location notes them, the command line reads them.

A command knows the project's folder, but not how a code location shows it. So sensors and runs of the location
leave the names in Dagster's storage, and commands report runs under the same names and find the same runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dagster import AssetKey
from pydantic import BaseModel

from partitions.dataflow import Dataflow
from platform_assets.dagster_internals import store_text, stored_text
from resources.dagster.names import AssetKeys, DagsterNames
from resources.dagster.run_tags import RunTags
from resources.loop.own_state import address_of
from resources.platform.stores import Stores

if TYPE_CHECKING:
    from dagster import DagsterInstance

_noted: WeakKeyDictionary[DagsterInstance, dict[str, DagsterNames]] = WeakKeyDictionary()
"""The names that this process has noted last in each instance, by the key of the project's state."""


class _Keys(BaseModel):
    watermark: list[str]
    tables: dict[str, list[str]]


class _Note(BaseModel):
    """The names as they are stored; keys only where they are not the usual ones."""

    project: str | None = None
    key_prefix: list[str] = []
    keys: dict[str, _Keys] = {}


def note_names(instance: DagsterInstance, stores: Stores, names: DagsterNames) -> None:
    """Note a project's names in a Dagster instance, unless it has them already.

    A failure fails no tick and no run: some instances keep no texts of a code location.
    """
    key, noted = _storage_key(stores), _noted.setdefault(instance, {})
    if noted.get(key) is names:
        return
    text = _text(names)
    with suppress(Exception):
        if (stored_text(instance, key) or _NOTHING) != text:
            store_text(instance, key, text)
    noted[key] = names


def noted_names(instance: DagsterInstance, stores: Stores, dataflows: Iterable[Dataflow]) -> DagsterNames:
    """Return a project's names in a Dagster instance; the usual ones if no location has noted others.

    Args:
        instance: the Dagster instance.
        stores: the project's resources.
        dataflows: all dataflows of the project.
    """
    note = _read(instance, stores)
    usual = DagsterNames.of(dataflows, note.project, note.key_prefix)
    return usual.with_keys({name: _keys(keys, note.keys.get(name)) for name, keys in usual.keys.items()})


def noted_tags(instance: DagsterInstance, stores: Stores) -> RunTags:
    """Return the tags of a project's runs in a Dagster instance."""
    return RunTags(_read(instance, stores).project)


def _read(instance: DagsterInstance, stores: Stores) -> _Note:
    try:
        return _Note.model_validate_json(stored_text(instance, _storage_key(stores)) or _NOTHING)
    except Exception:  # noqa: BLE001 - of another version, or Dagster fails here: what asks next says so
        return _Note()


def _storage_key(stores: Stores) -> str:
    """Return the key under which the names of a project are stored: its state tells projects apart."""
    return f"strandline/names/{hashlib.sha256(address_of(stores.state).encode()).hexdigest()[:32]}"


def _text(names: DagsterNames) -> str:
    usual = names.usual
    keys = {
        dataflow: _Keys(
            watermark=list(keys.watermark.path),
            tables={asset: list(key.path) for asset, key in keys.tables.items()},
        )
        for dataflow, keys in names.keys.items()
        if keys != usual.get(dataflow)
    }
    note = _Note(project=names.project, key_prefix=list(names.key_prefix), keys=keys)
    return note.model_dump_json(exclude_defaults=True)


_NOTHING = _Note().model_dump_json(exclude_defaults=True)


def _keys(usual: AssetKeys, noted: _Keys | None) -> AssetKeys:
    if noted is None:
        return usual
    tables = {
        asset: AssetKey(noted.tables[asset]) if asset in noted.tables else key
        for asset, key in usual.tables.items()
    }
    return AssetKeys(AssetKey(noted.watermark), tables)
