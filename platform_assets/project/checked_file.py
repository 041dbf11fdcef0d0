"""One project file, from its bytes to a checked model with all its errors."""

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
from platform_assets.installation import SETTINGS
from platform_assets.project.document import Key, ProjectDocument, value_at
from platform_assets.project.environments import (
    STATE_AND_LAKE,
    default_place,
    merge_documents,
    settings_file,
)
from platform_assets.project.errors import ProjectError
from platform_assets.project.references import ReferencedText, Secrets
from platform_assets.project.resolving import hide_texts, resolve_values
from platform_assets.project.secret_keys import display_value, literal_secrets
from platform_assets.project.settings import Settings
from platform_assets.project.translate import mask_texts, translate_errors, translate_escaped

M = TypeVar("M", bound=Model)

Complete = Callable[[dict[str, Any]], dict[str, Any]]
"""Adds the values that a dataflow takes from the settings."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""The form of a dataflow's name."""

NAME_IN_WORDS = "a name of the letters a-z, digits and underscores that starts with a letter"


def valid_name(text: str) -> str | None:
    """Return a text as the name of a dataflow, for a hint; None if it has no letter."""
    return re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_0123456789") or None


@dataclass
class Checked(Generic[M]):
    """A file and its model.

    Attributes:
        document: the file as the user wrote it.
        name: the dataflow's name; "" of settings.
        imported_by: the file of ``dataflows`` that imports it from elsewhere; None if it stands there.
        value: its root mapping, with the texts of references put in.
        texts: the texts of references, by key.
        model: the model of the file; None if its contents do not fit.
        errors: all errors so far.
    """

    document: ProjectDocument
    name: str = ""
    imported_by: str | None = None
    value: dict[str, Any] = field(default_factory=dict, repr=False)
    texts: dict[Key, ReferencedText] = field(default_factory=dict)
    model: M | None = None
    errors: list[ProjectError] = field(default_factory=list)
    _keys_with_errors: set[str] = field(default_factory=set)

    @property
    def valid(self) -> M | None:
        """Return the model, or None if the file has errors."""
        return None if self.errors else self.model

    def text(self, *key: str | int) -> str | None:
        """Return the text at a key; None for anything else, which the model refuses."""
        value = value_at(self.value, key)
        return value if isinstance(value, str) and value else None

    def written_text(self, *key: str | int) -> str:
        """Return the value that the user wrote at a key, in the form for an error."""
        return display_value(self.document.get(key), key)

    def refuse(self, key: Key, actual: str, expected: str, nearest: str | None = None) -> None:
        """Add an error, unless the key or a key above it already has one."""
        self.add([mask_texts(self.document.error(key, actual, expected, nearest), key, self.texts)])

    def add(self, errors: list[ProjectError]) -> None:
        """Add the errors of one check; later errors at their keys are dropped."""
        new_errors = [error for error in errors if not self._has_error(error.key or "")]
        self.errors += new_errors
        self._keys_with_errors |= {error.key for error in new_errors if error.key}

    def _has_error(self, key: str) -> bool:
        parts = key.split(".")
        return any(".".join(parts[: end + 1]) in self._keys_with_errors for end in range(len(parts)))


def read_settings(folder: Path, env: str | None, secrets: Secrets) -> Checked[Settings]:
    """Read the settings of an environment; None: ``platform.yaml`` alone. A missing file has all defaults."""
    defaults = {name: default_place(name, env) for name in STATE_AND_LAKE} if env else {}
    document = settings_document(folder, env)
    return check_file(Checked(document), Settings, secrets, {}, lambda value: defaults | value)


def settings_document(folder: Path, env: str | None) -> ProjectDocument:
    """Return the files of an environment's settings as plain values; None: ``platform.yaml`` alone."""
    path = folder / SETTINGS
    base = _document(path, path.name) if path.exists() else ProjectDocument(path.name)
    if env is None:
        return base
    own = settings_file(env)
    return merge_documents(base, _document(folder / own, own))


def read_dataflow(
    path: Path,
    file: str,
    secrets: Secrets,
    complete: Complete = dict,
) -> Checked[Dataflow]:
    """Read one YAML file of ``dataflows``.

    Args:
        path: the path of the file.
        file: the path relative to the project folder, for errors.
        secrets: look references up.
        complete: adds the values that the dataflow takes from the settings.
    """
    checked: Checked[Dataflow] = Checked(_document(path, file), name=path.stem)
    if checked.document.has(("name",)):
        checked.refuse(("name",), "a name", f"no such key: the name is the file's, {path.stem}")
    if not NAME.fullmatch(path.stem):
        nearest = valid_name(path.stem)
        checked.refuse((), f"the file name {path.name}", NAME_IN_WORDS, nearest and f"{nearest}.yaml")
    unwritten = {"name": path.stem}
    return check_file(checked, Dataflow, secrets, unwritten, complete)


def _document(path: Path, file: str) -> ProjectDocument:
    try:
        return ProjectDocument.read(file, path.read_bytes())
    except OSError as error:
        document = ProjectDocument(file)
        document.refuse(1, f"a file that cannot be read ({error.strerror})", "a readable file")
        return document


def check_file(
    checked: Checked[M],
    model: type[M],
    secrets: Secrets,
    unwritten: Mapping[str, Any],
    complete: Complete = dict,
) -> Checked[M]:
    """Check one file, or a dataflow of one, by itself.

    ``unwritten`` are the model's fields that no user writes; ``complete`` adds values from other files.
    """
    document = checked.document
    checked.add(document.errors)
    if document.readable:
        values = resolve_values(document, model, secrets)
        checked.value, checked.texts = complete(values.value), values.texts
        checked.add(literal_secrets(document) + values.errors)
        _validate(checked, model, unwritten)
    return checked


def _validate(checked: Checked[M], model: type[M], unwritten: Mapping[str, Any]) -> None:
    try:
        value = model.model_validate({**checked.value, **unwritten})
    except ValidationError as error:
        checked.add(translate_errors(error, checked.document, model, checked.texts, set(unwritten)))
    except ConfigurationError as error:
        key, project_error = translate_escaped(error, checked.document, checked.value, checked.texts)
        checked.add([project_error])
        if key:
            # pydantic stopped at this key: put a value there that no field accepts, to find the other errors.
            value_at(checked.value, key[:-1])[key[-1]] = ...
            _validate(checked, model, unwritten)
    else:
        checked.model = hide_texts(value, checked.texts)
