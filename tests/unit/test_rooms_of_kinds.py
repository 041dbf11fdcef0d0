"""Only the rooms of the kinds, and their registries, tell one kind of watermark from another.

``tests/unit/platform_assets/kinds/test_profiles.py`` holds the layer of Dagster to the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import partitions
import resources
from partitions.kinds import KINDS

_ROOT = Path(partitions.__file__).parents[1]
_NAMES = {definition.kind() for definition in KINDS}
_CLASSES = {definition.__name__ for definition in KINDS}
_ROOMS = ("resources/kinds/", *(f"partitions/{room}/" for room in (*_NAMES, "spark_stream")))
_OTHERS = {"resources/outcome.py"}
"""The JSON form of a run has a key of its own for the rows of a stream."""


def _tells_kinds_apart(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
            return any(isinstance(part, ast.Name) and part.id in _CLASSES for part in ast.walk(classes))
        case ast.Compare(left=ast.Name(id=name) | ast.Attribute(attr=name), comparators=[right]):
            constants = [part.value for part in ast.walk(right) if isinstance(part, ast.Constant)]
            return name in ("kind", "type") and any(value in _NAMES for value in constants)
    return False


def _modules() -> Iterator[tuple[str, str]]:
    for package in (partitions, resources):
        for module in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            yield module.relative_to(_ROOT).as_posix(), module.read_text()


def test_no_module_outside_the_rooms_of_kinds_tells_kinds_apart() -> None:
    offences = [
        f"{name}: {ast.unparse(node)}"
        for name, text in _modules()
        if not name.startswith(_ROOMS) and name not in _OTHERS
        for node in ast.walk(ast.parse(text))
        if _tells_kinds_apart(node)
    ]
    assert offences == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(dataflow.watermark, PathWatermark)",
        "isinstance(watermark, StreamWatermark | StructuredStream)",
        'dataflow.kind == "stream"',
        'watermark.type != "path"',
        'kind in ("path", "column")',
    ],
)
def test_each_way_to_tell_kinds_apart_is_noticed(line: str) -> None:
    assert any(map(_tells_kinds_apart, ast.walk(ast.parse(line))))
