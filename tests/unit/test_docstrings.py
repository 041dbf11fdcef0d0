"""Docstrings name only what the code has: parameters, attributes, errors, functions, classes and modules."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_ENTRY = re.compile(r"    (\*{0,2}\w+(?:, [\w.]+)*):(?: |$)")
_REFERENCE = re.compile(r":(?:class|meth|func|data|attr|mod):`~?([\w.]+)`")
_PATH = re.compile(r"``((?:partitions|resources|platform_assets)(?:\.\w+)+)``")

Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _modules() -> Mapping[str, ast.Module]:
    """The syntax trees of all modules, by dotted name."""
    paths = [
        path
        for room in ("partitions", "resources", "platform_assets")
        for path in sorted((ROOT / room).rglob("*.py"))
    ]
    return {_module_name(path): ast.parse(path.read_text()) for path in paths}


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def _nodes(module: str) -> Sequence[ast.AST]:
    return list(ast.walk(_modules()[module]))


@cache
def _names(module: str) -> frozenset[str]:
    """All names that a module defines, uses or imports."""
    names: set[str] = set()
    for node in _nodes(module):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.rpartition(".")[2])
    return frozenset(names)


@cache
def _all_names() -> frozenset[str]:
    return frozenset().union(*map(_names, _modules()))


def _documented(module: str) -> Iterator[tuple[Node, str]]:
    """Yield what has a docstring in a module, with the docstring."""
    for node in _nodes(module):
        if isinstance(node, Node) and (text := ast.get_docstring(node)) is not None:
            yield node, text


def _entries(text: str, title: str) -> list[str]:
    """Return the names in a section of a docstring."""
    section = re.search(rf"(?m)^{title}:\n((?:    .*\n?|\n)+)", text)
    lines = section[1].splitlines() if section else []
    names = [name for line in lines if (entry := _ENTRY.match(line)) for name in entry[1].split(", ")]
    return [name.lstrip("*") for name in names if name != "None"]


def _missing_parameters(module: str) -> Iterator[str]:
    for node, text in _documented(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
            yield from (f"{node.name}: {name}" for name in _entries(text, "Args") if name not in parameters)


def _missing_attributes(module: str) -> Iterator[str]:
    for node, text in _documented(module):
        if isinstance(node, ast.ClassDef):
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            names |= _names(module) if node.bases else set()
            yield from (f"{node.name}: {name}" for name in _entries(text, "Attributes") if name not in names)


def _missing_errors(module: str) -> Iterator[str]:
    classes = _all_names() | set(dir(builtins))
    for node, text in _documented(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [name for name in _entries(text, "Raises") if name.rpartition(".")[2][:1].isupper()]
            yield from (f"{node.name}: {name}" for name in names if name.rpartition(".")[2] not in classes)


def _missing_references(module: str) -> Iterator[str]:
    for part in _nodes(module):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            for name in (*_REFERENCE.findall(part.value), *_PATH.findall(part.value)):
                if not _exists(name):
                    yield name


def _exists(name: str) -> bool:
    if any(module == name or module.startswith(f"{name}.") for module in _modules()):
        return True
    owner, _, last = name.rpartition(".")
    while owner and owner not in _modules():
        owner = owner.rpartition(".")[0]
    return last in (_names(owner) if owner else _all_names())


@pytest.mark.parametrize(
    "find", [_missing_parameters, _missing_attributes, _missing_errors, _missing_references]
)
def test_docstrings_name_nothing_that_is_not_there(find: Callable[[str], Iterator[str]]) -> None:
    assert {f"{module}: {name}" for module in _modules() for name in find(module)} == set()
