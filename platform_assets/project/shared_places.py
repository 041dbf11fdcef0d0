"""Refuse a state or lake that two environments of a project share (docs/how-to/environments.md).

Two spellings of one place are one: links, dots, slashes, letters of a host, default ports, parameters. A place that only a
machine tells is looked up for the environment that is loaded, and compared with what the files say of the others.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from partitions.errors import ConfigurationError
from platform_assets.installation import SETTINGS
from platform_assets.project.document import ProjectDocument, value_at
from platform_assets.project.environments import STATE_AND_LAKE, default_place, settings_file
from platform_assets.project.references import Secrets, Unresolved, reference_of
from platform_assets.project.secret_keys import display_value
from resources.connections.postgres import AddressError, Database, address_fields, is_database

_HERE = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", ""})  # noqa: S104 - compared, not bound
_PORTS = {"http": 80, "https": 443}
_AWS = "AWS"


@dataclass(frozen=True)
class _StoredPlace:
    """A place to compare.

    Attributes:
        stores: the names of its store; two places may lie in one store if they have a name in common.
        path: the path in it, without dots and doubled slashes.
    """

    stores: frozenset[str]
    path: str

    def relation_to(self, other: _StoredPlace) -> str:
        """Return how a place relates to another one that it overlaps with, in words; "" if they lie apart."""
        if not self.stores & other.stores:
            return ""
        if self.path == other.path:
            return "is"
        if f"{self.path}/".startswith(f"{other.path}/"):
            return "lies inside"
        return "holds" if f"{other.path}/".startswith(f"{self.path}/") else ""


def shared_places(
    settings: ProjectDocument, env: str | None, others: Mapping[str | None, ProjectDocument], secrets: Secrets
) -> Iterator[tuple[str, str, str]]:
    """Yield each place that an environment shares: its key, what is shared, and what to do.

    Args:
        settings: the merged settings of the environment.
        env: its name.
        others: the merged settings of the other environments, by name.
        secrets: looks up what the environment refers to, as it is in this process.
    """
    own, folder = _Places(settings, env, secrets), secrets.folder
    for name in STATE_AND_LAKE:
        place = own.place(name, folder)
        for other, document in others.items():
            other_places = _Places(document, other, None, secrets.variables)
            other_name, relation = _shared_with(name, place, other_places, folder)
            if relation:
                whose = f"environment {other}" if other else f"{SETTINGS} without an environment"
                yield (
                    name,
                    f"{own.written(name)}, which {relation} the {other_name} of {whose} ({other_places.written(other_name)})",
                    _remedy(name, env, settings, other, document),
                )
                break


def _shared_with(
    name: str, place: _StoredPlace | None, other_places: _Places, folder: Path
) -> tuple[str, str]:
    """Return the place of another environment that a place overlaps with, of its own kind first, and how."""
    for other_name in sorted(STATE_AND_LAKE, key=lambda other_name: other_name != name):
        other_place = other_places.place(other_name, folder)
        if place and other_place and (relation := place.relation_to(other_place)):
            return other_name, relation
    return name, ""


def _remedy(
    name: str, env: str | None, settings: ProjectDocument, other: str | None, document: ProjectDocument
) -> str:
    """Return what to write, and where: a default if the environment names no place itself.

    If both name theirs, either file may have the mistake: the one with tables already keeps them.
    """
    files = [settings.file_of((name,)), document.file_of((name,))]
    if env and files[0] == SETTINGS:
        where = f"such as {default_place(name, env)}, in {settings_file(env)}"
    elif other and files[1] == SETTINGS:
        where = f"such as {default_place(name, other)}, in {settings_file(other)}"
    else:
        where = f"in {' or '.join(dict.fromkeys(files))}, whichever is wrong"
    return f"a place of its own for each, {where}: environments share neither state nor lake"


class _Places:
    """State and lake of an environment, as far as its files, and the process if it is loaded, tell them."""

    def __init__(
        self,
        document: ProjectDocument,
        env: str | None,
        secrets: Secrets | None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Bind to an environment; without ``secrets``, references lead nowhere."""
        self._document, self._env, self._secrets = document, env, secrets
        self._variables = secrets.variables if secrets is not None else variables or {}

    def written(self, name: str) -> str:
        """Return the address as the file has it; a reference stays one."""
        value = self._value(name)
        return str(reference_of(value) or display_value(value))

    def place(self, name: str, folder: Path) -> _StoredPlace | None:
        """Return a place to compare; None if nothing here tells it, or its address is of another form."""
        text = self._text(self._value(name))
        if not text:
            return None
        if is_database(text):
            return self._database(text)
        scheme, is_url, rest = text.partition("://")
        if is_url and scheme != "file":
            connection = self._document.get((name, "connection"))
            endpoint = value_at(self._document.value, ("connections", connection or "", "endpoint"))
            bucket, _, prefix = rest.partition("/")
            path = posixpath.normpath(f"/{prefix}").strip("/")
            return _StoredPlace(
                frozenset(f"{scheme} at {store}" for store in self._endpoints(endpoint)),
                f"{bucket}/{path}".rstrip("/"),
            )
        local = os.path.realpath(folder / Path(rest if is_url else text).expanduser())
        return _StoredPlace(frozenset({""}), local)

    def _value(self, name: str) -> Any:
        value = self._document.get((name,), default_place(name, self._env))
        return value.get("path") if isinstance(value, dict) and not reference_of(value) else value

    def _text(self, value: Any) -> str | None:
        """Return the text that a value is or refers to; None for wrong forms, and if nothing here tells it."""
        reference = reference_of(value)
        if reference is None:
            return value if isinstance(value, str) else None
        if self._secrets is not None and not reference.needs_user_code:
            with suppress(Unresolved, ConfigurationError):
                return self._secrets.look_up(reference)
        return None

    def _endpoints(self, endpoint: Any) -> set[str]:
        """Return names of an endpoint of S3: its host and port, and the reference that tells it."""
        if endpoint is None:
            endpoint = (
                self._variables.get("AWS_ENDPOINT_URL_S3") or self._variables.get("AWS_ENDPOINT_URL") or ""
            )
        text, reference = self._text(endpoint), reference_of(endpoint)
        names = {repr(reference)} if reference is not None else set()
        return names if text is None else names | {_server(text)}

    def _database(self, text: str) -> _StoredPlace | None:
        try:
            database = Database.parse(text)
            fields = address_fields(database.url)
        except AddressError:  # of another form, which is refused elsewhere
            return None
        except ConfigurationError:  # another environment's, which this installation has no package for
            return None
        hosts = self._field(fields, "host", "PGHOST").split(",")
        ports = self._field(fields, "port", "PGPORT").split(",")
        name = self._field(fields, "dbname", "PGDATABASE") or self._field(fields, "user", "PGUSER")
        if not name and not any(hosts):
            return None
        pairs = zip_longest(hosts, ports if len(ports) > 1 else ports * len(hosts), fillvalue="")
        stores = frozenset(f"postgresql at {_host(host)}:{port or 5432}" for host, port in pairs)
        return _StoredPlace(stores, f"{name}/{database.schema}")

    def _field(self, fields: Mapping[str, str], field: str, variable: str) -> str:
        """Return a part of an address, or what libpq takes instead, if this is the environment that is loaded."""
        return fields.get(field) or (self._variables.get(variable, "") if self._secrets is not None else "")


def _server(endpoint: str) -> str:
    """Return host and port of an endpoint; all of Amazon's are one store, where bucket names are unique."""
    if not endpoint:
        return _AWS
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)
    except ValueError:  # of another form, which is refused elsewhere
        return endpoint
    if host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return _AWS
    return f"{_host(host)}:{port}{posixpath.normpath(parts.path).rstrip('/.')}"


def _host(host: str) -> str:
    name = host.lower().rstrip(".")
    return "localhost" if name in _HERE else name
