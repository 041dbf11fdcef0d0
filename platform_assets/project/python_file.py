"""A Python file of ``dataflows``: each incremental asset in its namespace is a dataflow.

See docs/how-to/incremental-assets.md.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import shorten_to_line
from partitions.spelling import nearest_name
from platform_assets.asset_keys import ASSET_KEYS, SOURCE_KEYS
from platform_assets.incremental_asset import AssetDefinition, IncrementalAsset
from platform_assets.project.checked_file import (
    NAME,
    NAME_IN_WORDS,
    Checked,
    Complete,
    check_file,
    valid_name,
)
from platform_assets.project.document import Key, ProjectDocument
from platform_assets.project.python_calls import asset_names, key_positions
from platform_assets.project.python_values import function_name, plain, schema_text
from platform_assets.project.references import Secrets
from platform_assets.project.yaml_text import TextPosition
from resources.user_functions import USERS_ERRORS
from resources.user_modules import load_dataflows_file

_FUNCTION_KEYS = ("highest", "transform")
"""The keys whose value is a function or its name."""


def read_python_file(path: Path, file: str, secrets: Secrets, complete: Complete) -> list[Checked[Dataflow]]:
    """Read the dataflows of a Python file; a file that cannot be used stands for those that it writes.

    Args:
        path: the path of the file.
        file: the path relative to the project folder, for errors.
        secrets: look references up.
        complete: adds the values that a dataflow takes from the settings.
    """
    try:
        module = load_dataflows_file(path)
    except USERS_ERRORS as error:
        line, problem = _import_error(error, path, secrets.folder)
        return _broken(path, file, line, problem, "a module that can be imported")
    assets = dict(_assets_of(module))
    if not assets:
        expected = "one, or a file name that begins with _ for a module without dataflows"
        return _broken(path, file, 1, "no function with @incremental_asset", expected)
    return [
        _read_asset(_Named(name, asset.definition), file, secrets, complete) for name, asset in assets.items()
    ]


class _Named(NamedTuple):
    """An asset, and its name in the namespace of the project's file."""

    attribute: str
    definition: AssetDefinition


def _assets_of(module: ModuleType) -> Iterator[tuple[str, IncrementalAsset[Any]]]:
    """Yield the assets of a module by name, each once."""
    assets: list[IncrementalAsset[Any]] = []
    for name, value in vars(module).items():
        if isinstance(value, IncrementalAsset) and not any(value is asset for asset in assets):
            assets.append(value)
            yield name, value


def _read_asset(named: _Named, file: str, secrets: Secrets, complete: Complete) -> Checked[Dataflow]:
    definition = named.definition
    document = _document(named, file, secrets.folder)
    imported_by = file if document.file != file else None
    checked: Checked[Dataflow] = Checked(document, name=definition.name, imported_by=imported_by)
    if not NAME.fullmatch(definition.name):
        checked.refuse(("name",), f"the name {definition.name}", NAME_IN_WORDS, valid_name(definition.name))
    _refuse_unknown(checked, definition)
    _refuse_functions(checked, definition)
    return check_file(checked, Dataflow, secrets, {"name": definition.name}, complete)


def _document(named: _Named, file: str, folder: Path) -> ProjectDocument:
    """Return an asset as the document that its YAML file would be."""
    definition = named.definition
    position = _function_position(definition)
    document = ProjectDocument(
        _shown_path(Path(position.file), folder), inlined="source", first_line=position.line
    )
    source = {"type": "python", "function": _address(named, Path(file).stem)}
    description = inspect.getdoc(definition.function)
    values: dict[str, Any] = {"source": source} | ({"description": description} if description else {})
    for key, value in definition.keys.items():
        if key in SOURCE_KEYS:
            source[key] = _value(key, value)
        elif key in ASSET_KEYS and key != "name":
            values[key] = _value(key, value)
    document.value = values
    positions = key_positions(definition.call)
    document.positions = {_model_key(key): place for key, place in positions.items()}
    document.positions.setdefault(("source",), TextPosition(position.line, 1))
    if (written_in := _shown_path(Path(definition.call.file), folder)) != document.file:
        document.files = {_model_key(key): written_in for key in positions}
    return document


class _FunctionPosition(NamedTuple):
    file: str
    line: int


def _function_position(definition: AssetDefinition) -> _FunctionPosition:
    """Return where a function begins, with its decorators."""
    code = getattr(inspect.unwrap(definition.function), "__code__", definition.function.__code__)
    return _FunctionPosition(code.co_filename, code.co_firstlineno)


def _model_key(key: Key) -> Key:
    """Return the key in the model of a key of the decorator."""
    return ("source", *key) if key[0] in SOURCE_KEYS else key


def _value(key: str, value: Any) -> Any:
    try:
        return schema_text(value) if key == "schema" else plain(value)
    except TypeError:
        return value


def _address(named: _Named, stem: str) -> str:
    """Return the name by which a run finds the asset.

    It is that of the function if a module has the asset there, so that a package's function stays the same
    source wherever it is imported. Else it is the asset's name in the project's file.
    """
    function = named.definition.function
    name = function_name(function)
    module = sys.modules.get(function.__module__)
    own = getattr(module, function.__name__, None)
    is_there = isinstance(own, IncrementalAsset) and own.definition is named.definition
    return name if name is not None and is_there else f"dataflows.{stem}:{named.attribute}"


def _refuse_unknown(checked: Checked[Dataflow], definition: AssetDefinition) -> None:
    for key in definition.keys:
        if key not in ASSET_KEYS:
            expected = f"one of {', '.join(sorted(ASSET_KEYS))}"
            checked.refuse((key,), "an unknown keyword", expected, nearest_name(key, ASSET_KEYS))


def _refuse_functions(checked: Checked[Dataflow], definition: AssetDefinition) -> None:
    """Refuse functions that a run could not find by their names, and schemas that no table has."""
    for key in _FUNCTION_KEYS:
        value = definition.keys.get(key)
        if inspect.isfunction(value) and function_name(value) is None:
            expected = "a function at the top level of a module, which a run imports by its name"
            checked.refuse(_model_key((key,)), f"the function {value.__qualname__}", expected)
    try:
        schema_text(definition.keys.get("schema"))
    except TypeError as error:
        checked.refuse(("source", "schema"), str(error), "Arrow types that a table's columns have")


def _broken(path: Path, file: str, line: int, actual: str, expected: str) -> list[Checked[Dataflow]]:
    """Return the error of a file for each dataflow that it writes; for one of the file's name without any."""
    broken = []
    for name in dict.fromkeys(asset_names(path)) or [path.stem]:
        document = ProjectDocument(file)
        document.refuse(line, actual, expected)
        broken.append(Checked[Dataflow](document, name=name, errors=list(document.errors)))
    return broken


def _import_error(error: BaseException, path: Path, folder: Path) -> tuple[int, str]:
    """Return the line at which a file fails, and the error, with its place if that is elsewhere."""
    text = shorten_to_line(f"{type(error).__name__}: {error}".rstrip(": "))
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1, f"{type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 1 for frame in frames if frame.filename == str(path)]
    last = next((frame for frame in reversed(frames) if not frame.filename.startswith("<")), None)
    is_elsewhere = last is not None and last.filename != str(path) and bool(lines)
    if is_elsewhere and last is not None and not isinstance(error, ModuleNotFoundError):
        text += f" ({_shown_path(Path(last.filename), folder)}:{last.lineno})"
    return (lines or [1])[-1], text


def _shown_path(path: Path, folder: Path) -> str:
    """Return a path as errors show it: relative to the project if it lies there."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
