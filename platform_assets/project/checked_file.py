"""One project file: from its bytes to a checked model, with all its errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.model import Model
from platform_assets.project.document import Key, YamlDocument, value_at
from platform_assets.project.env_reference import FromEnvironment
from platform_assets.project.errors import ProjectError
from platform_assets.project.resolving import hidden, resolved
from platform_assets.project.secret_keys import literal_secrets, shown
from platform_assets.project.settings import Settings
from platform_assets.project.translate import escaped, masked, translated

M = TypeVar("M", bound=Model)

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""What a dataflow may be called."""


@dataclass
class Checked(Generic[M]):
    """A file and its model.

    Attributes:
        document: as the user wrote it.
        value: its root with the environment's texts in place.
        texts: what came from the environment.
        model: the file's contents; None if they do not fit the model.
        errors: all errors so far.
    """

    document: YamlDocument
    value: dict[str, Any] = field(default_factory=dict, repr=False)
    texts: dict[Key, FromEnvironment] = field(default_factory=dict)
    model: M | None = None
    errors: list[ProjectError] = field(default_factory=list)
    _blamed: set[str] = field(default_factory=set)

    @property
    def valid(self) -> M | None:
        """Return the model, or None if the file has errors."""
        return None if self.errors else self.model

    def text(self, *key: str | int) -> str | None:
        """Return the text at a key; None for anything else, which the model refuses."""
        value = value_at(self.value, key)
        return value if isinstance(value, str) and value else None

    def shown(self, *key: str | int) -> str:
        """Return what a user wrote at a key, for an error."""
        return shown(self.document.get(key), key)

    def refuse(self, key: Key, found: str, expected: str, nearest: str | None = None) -> None:
        """Note an error, unless the key or one above it is blamed already."""
        self.add([masked(self.document.error(key, found, expected, nearest), key, self.texts)])

    def add(self, errors: list[ProjectError]) -> None:
        """Note errors of one check; later errors at their keys are dropped."""
        new = [error for error in errors if not self._is_blamed(error.key or "")]
        self.errors += new
        self._blamed |= {error.key for error in new if error.key}

    def _is_blamed(self, key: str) -> bool:
        parts = key.split(".")
        return any(".".join(parts[: end + 1]) in self._blamed for end in range(len(parts)))


def read_settings(path: Path, environment: Mapping[str, str]) -> Checked[Settings]:
    """Read ``platform.yaml``; an absent file has the defaults."""
    document = _document(path, path.name) if path.exists() else YamlDocument(path.name)
    return _checked(Checked(document), Settings, environment, {})


def read_dataflow(
    path: Path,
    file: str,
    environment: Mapping[str, str],
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Checked[Dataflow]:
    """Read one file of ``dataflows``.

    Args:
        path: where it is.
        file: the same relative to the project folder, for errors.
        environment: what ``{env: NAME}`` refers to.
        complete: adds what the dataflow takes from the settings.
    """
    checked: Checked[Dataflow] = Checked(_document(path, file))
    if checked.document.has(("name",)):
        checked.refuse(("name",), "a name", f"no such key: the name is the file's, {path.stem}")
    unwritten = {"name": path.stem}
    return _checked(checked, Dataflow, environment, unwritten, complete)


def _document(path: Path, file: str) -> YamlDocument:
    try:
        return YamlDocument.read(file, path.read_bytes())
    except OSError as error:
        document = YamlDocument(file)
        document.refuse(1, f"a file that cannot be read ({error.strerror})", "a readable file")
        return document


def _checked(
    checked: Checked[M],
    model: type[M],
    environment: Mapping[str, str],
    unwritten: Mapping[str, Any],
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Checked[M]:
    """Check one file alone; ``unwritten`` are the model's fields that no user writes, ``complete`` adds what it takes from other files."""
    document = checked.document
    checked.add(document.errors)
    if document.readable:
        values = resolved(document, model, environment)
        checked.value, checked.texts = complete(values.value), values.texts
        checked.add(literal_secrets(document) + values.errors)
        _validate(checked, model, unwritten)
    return checked


def _validate(checked: Checked[M], model: type[M], unwritten: Mapping[str, Any]) -> None:
    try:
        value = model.model_validate({**checked.value, **unwritten})
    except ValidationError as refused:
        checked.add(translated(refused, checked.document, model, checked.texts, set(unwritten)))
    except ConfigurationError as refused:
        key, error = escaped(refused, checked.document, checked.value, checked.texts)
        checked.add([error])
        if (
            key
        ):  # pydantic stopped there: continue with a value that no field accepts, to find the other errors
            value_at(checked.value, key[:-1])[key[-1]] = ...
            _validate(checked, model, unwritten)
    else:
        checked.model = hidden(value, checked.texts)
