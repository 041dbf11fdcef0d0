"""Several projects in one code location: the form of their names, and the error of a conflict."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Self

from dagster import AssetKey, MetadataValue

from partitions.errors import ConfigurationError
from platform_assets.project import Project
from resources.dagster.names import DagsterNames

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

_METADATA = "strandline/project"
"""The key of a project without a name in the metadata of its code location."""


def checked_name(name: str | None) -> str | None:
    """Return the name of a project in Dagster.

    Raises:
        ConfigurationError: if it has another form. Two _ stand between the names of project and dataflow.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"name of a project: expected a small letter, then small letters, digits and single _, found {name!r}:"
            " choose a name such as north or shop_north"
        )
    return name


def checked_prefix(key_prefix: str | Sequence[str]) -> Sequence[str]:
    """Return the parts of a prefix of keys; a text may have several, as ``shop/north``.

    Raises:
        ConfigurationError: if a part is empty.
    """
    parts = key_prefix.split("/") if isinstance(key_prefix, str) else list(key_prefix)
    if key_prefix and not all(isinstance(part, str) and part for part in parts):
        raise ConfigurationError(
            f"key_prefix: expected texts that are not empty, found {key_prefix!r}: write north or shop/north"
        )
    return parts if key_prefix else ()


def location_metadata(project: Project, names: DagsterNames) -> dict[str, Any]:
    """Return a project's folder as metadata, under a key that a second project may not have."""
    return {ProjectKey.of(project, names): MetadataValue.path(str(project.folder.resolve()))}


class ProjectKey(str):
    """The key of a project in the metadata of a code location.

    Dagster puts the metadata of definitions into one mapping when it merges them, before it compares their
    resources. All such keys have one hash, so that the mapping compares each project with each other one: there
    a name or an asset that two projects have is found. Dagster's own errors name numbers and keys alone.
    """

    __slots__ = ("_folder", "_identifiers", "_name", "_tables", "_watermarks")

    _folder: str
    _identifiers: frozenset[str]
    _name: str | None
    _tables: frozenset[AssetKey]
    _watermarks: frozenset[AssetKey]

    @classmethod
    def of(cls, project: Project, names: DagsterNames) -> Self:
        """Return the key of a project, with its folder and the keys of its assets for the comparison."""
        key = cls(_METADATA if names.project is None else f"{_METADATA}/{names.project}")
        key._folder, key._name = str(project.folder.resolve()), names.project
        of_dataflows = names.keys.values()
        key._tables = frozenset(
            [table for keys in of_dataflows for table in keys.tables.values()]
            + [names.usual_key(f"{project.layer(name)}/{name}") for name in project.broken]
        )
        key._watermarks = frozenset(keys.watermark for keys in of_dataflows)
        key._identifiers = frozenset(names[dataflow].identifier for dataflow in names.keys)
        return key

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ProjectKey) and other._folder != self._folder:
            _refuse_conflict(*sorted([self, other], key=lambda key: key._folder))
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(_METADATA)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Be an ordinary text in another process."""
        return str, (str(self),)


def _refuse_conflict(first: ProjectKey, second: ProjectKey) -> None:
    """Raise if two projects of one location have the same name, or an asset with the same key."""
    projects = f"the projects {first._folder} and {second._folder}"
    tables = _first_of(first._tables & second._tables)
    if first._name == second._name:
        named = "no name" if first._name is None else f"the name {first._name}"
        also = f", and a key_prefix, since both have the asset {tables}" if tables else ""
        python, yaml = (', key_prefix="north"', " and `key_prefix: north`") if tables else ("", "")
        raise ConfigurationError(
            f"one code location: expected a name of its own for each Strandline project, found {projects} with {named}."
            f' Give one of them another name{also}: `build_definitions(folder, name="north"{python})`, or `name: north`'
            f"{yaml} in the attributes of its defs.yaml"
        )
    shared = tables or _first_of((first._tables | first._watermarks) & (second._tables | second._watermarks))
    if shared:
        raise ConfigurationError(
            f"one code location: expected keys of their own for the assets of each Strandline project, found {projects}"
            f' with the asset {shared}. Give one of them a prefix: `build_definitions(folder, key_prefix="north")`, or'
            " `key_prefix: north` in the attributes of its defs.yaml"
        )
    identifier = min(first._identifiers & second._identifiers, default=None)
    if identifier is not None:
        raise ConfigurationError(
            f"one code location: expected dataflows with names of their own in Dagster, found {projects} with {identifier}:"
            " the name of a project and two _ stand before its dataflow. Give the project with a name another one"
        )


def _first_of(keys: Collection[AssetKey]) -> str:
    return min((key.to_user_string() for key in keys), default="")
