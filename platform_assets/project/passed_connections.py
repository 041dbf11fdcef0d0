"""Connections that a user's code passes to ``build_definitions`` (docs/how-to/own-resources.md).

One rule says where settings come from: ``platform.yaml`` names each connection, and what is passed replaces the
connection of that name in this code location. Commands do not run the user's code, so they use the file alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from partitions.errors import ConfigurationError
from partitions.spelling import nearest_name
from platform_assets.project.connection_settings import ConnectionSettings, S3Settings
from platform_assets.project.places import PASSED
from platform_assets.project.project import Project
from platform_assets.project.references import EnvRef, PassedText
from platform_assets.project.secret_keys import is_secret

if TYPE_CHECKING:
    from dagster_aws.s3 import S3Resource

PassedConnection: TypeAlias = "S3Resource | Mapping[str, object]"
"""A resource of Dagster, or the keys of a connection in platform.yaml; a value may be an ``EnvVar``."""

_ADAPTER: TypeAdapter[Any] = TypeAdapter(ConnectionSettings)
_PASSED_BY = "build_definitions"

_S3_KEYS = {
    "endpoint_url": "endpoint",
    "region_name": "region",
    "profile_name": "profile",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
"""The fields of an ``S3Resource`` with the keys of a connection. Its retries are those of boto3 alone."""

_REFUSED_OF_S3 = {"use_unsigned_session": True, "verify": False}
"""What an ``S3Resource`` can ask for, and the clients of Strandline cannot do."""


def with_connections(project: Project, connections: Mapping[str, PassedConnection]) -> Project:
    """Return a project in which the passed connections replace those of the same name.

    Args:
        project: a loaded project.
        connections: by name.

    Raises:
        ConfigurationError: platform.yaml does not name the connection, gives it another type, or a value
            cannot be used.
        InvalidProject: platform.yaml has errors.
    """
    if not connections:
        return project
    settings = project.settings
    passed = {name: _settings_of(project, name, value) for name, value in connections.items()}
    for name, connection in passed.items():
        declared = settings.connections[name].type
        if declared not in (connection.type, PASSED):
            raise ConfigurationError(
                f"connections[{name!r}]: expected a connection of type {declared}, as platform.yaml says, found one of"
                f" type {connection.type}. Write `{name}: {{type: {PASSED}}}` there if only this code has the settings"
            )
    return replace(
        project,
        _settings=settings.model_copy(update={"connections": {**settings.connections, **passed}}),
        _setting_files={**project._setting_files, **{f"connections.{name}": _PASSED_BY for name in passed}},
    )


def has_passed(project: Project) -> bool:
    """Return whether code has passed a connection of the project."""
    return _PASSED_BY in project._setting_files.values()


def with_stand_ins(project: Project) -> Project:
    """Return a project in which connections that nobody has passed are stores of S3.

    Which jars Spark needs depends on what is read and written, and not on its credentials. A database stays unknown.

    Raises:
        InvalidProject: platform.yaml has errors.
    """
    settings = project.settings
    stand_ins = {
        name: S3Settings(type="s3")
        if connection.type == PASSED and name != settings.iceberg.connection
        else connection
        for name, connection in settings.connections.items()
    }
    return replace(project, _settings=settings.model_copy(update={"connections": stand_ins}))


def _settings_of(project: Project, name: str, value: object) -> Any:
    declared = project.settings.connections
    if name not in declared:
        nearest = nearest_name(name, declared)
        hint = f" (did you mean {nearest}?)" if nearest else ""
        raise ConfigurationError(
            f"connections: expected the name of a connection of platform.yaml, found {name!r}{hint}. Add it there:"
            f" `connections: {{{name}: {{type: {PASSED}}}}}`"
        )
    what = f"connections[{name!r}]"
    if isinstance(value, Mapping):
        if declared[name].type == PASSED and "type" not in value:
            raise ConfigurationError(
                f"{what}: expected a mapping with the key type, such as s3 or jdbc, found none: platform.yaml says type:"
                f" {PASSED}"
            )
        kind = {} if declared[name].type == PASSED else {"type": declared[name].type}
        return _validated(what, kind | dict(_texts(name, value)))
    dagster_aws = sys.modules.get("dagster_aws.s3")  # whoever passes its resource has imported it
    if dagster_aws is not None and isinstance(value, dagster_aws.S3Resource):
        return _validated(what, {"type": "s3"} | dict(_texts(name, _fields_of_s3(what, value))))
    raise ConfigurationError(
        f"{what}: expected an S3Resource, or a mapping with the keys of a connection in platform.yaml,"
        f" found a {type(value).__name__}"
    )


def _fields_of_s3(what: str, resource: Any) -> dict[str, Any]:
    """Return the keys of a connection to the store of an ``S3Resource``.

    Raises:
        ConfigurationError: it asks for what Strandline's clients cannot do.
    """
    for field, refused in _REFUSED_OF_S3.items():
        if getattr(resource, field) is refused:
            raise ConfigurationError(
                f"{what}: expected an S3Resource without {field}={refused}, which Strandline cannot do. Leave it out"
            )
    if not resource.use_ssl and resource.endpoint_url is None:
        raise ConfigurationError(
            f"{what}: expected an S3Resource with use_ssl, or with an endpoint_url, found use_ssl=False alone:"
            " the scheme of endpoint_url says whether requests are encrypted"
        )
    return {key: getattr(resource, field) for field, key in _S3_KEYS.items()}


def _texts(name: str, values: Mapping[Any, Any], *within: str) -> Iterator[tuple[str, Any]]:
    """Yield each key with its value, in which variables and secrets are references."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield key, dict(_texts(name, value, *within, key))
        elif value is not None:
            yield key, _text(name, (*within, key), value)


def _text(name: str, key: tuple[str, ...], value: Any) -> Any:
    from dagster import EnvVar

    if isinstance(value, EnvVar):
        return EnvRef(value.env_var_name)
    if isinstance(value, str) and value and is_secret(("connections", name, *key)):
        return PassedText(value, f"{'.'.join(key)} of the passed connection {name}")
    return value


def _validated(what: str, values: Mapping[str, Any]) -> Any:
    """Return a connection's settings; the error shows no value, which may be a secret."""
    try:
        return _ADAPTER.validate_python(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'][1:]) or 'type'}:"
            f" {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False, include_input=False, include_context=False)
        )
        raise ConfigurationError(
            f"{what}: expected the keys of a connection in platform.yaml, found {problems}."
            " docs/reference/project-files.md lists the keys of each type"
        ) from None
