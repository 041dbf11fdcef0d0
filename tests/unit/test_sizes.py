"""Modules, functions and classes of the product stay small enough to read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE, FUNCTION, CLASS = 400, 50, 20
"""The most lines of a module and of a function, without docstrings, and methods of a class, without properties."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _docstring(node: ast.Module | ast.ClassDef | Function) -> int:
    """Return the number of lines of a docstring."""
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def _is_property(function: Function) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in function.decorator_list)


def _too_large(name: str, text: str) -> Iterator[str]:
    module = ast.parse(text)
    documented = [node for node in ast.walk(module) if isinstance(node, ast.Module | ast.ClassDef | Function)]
    lines = len(text.splitlines()) - sum(map(_docstring, documented))
    if lines > MODULE:
        yield f"{name}: {lines} lines"
    for node in documented:
        if isinstance(node, Function):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - _docstring(node)
            if lines > FUNCTION:
                yield f"{name}: {node.name}: {lines} lines"
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, Function) and not _is_property(one)]
            if len(methods) > CLASS:
                yield f"{name}: {node.name}: {len(methods)} methods"


def test_no_module_function_or_class_of_the_product_is_too_large() -> None:
    paths = [
        path
        for layer in ("partitions", "resources", "platform_assets")
        for path in (ROOT / layer).rglob("*.py")
    ]
    assert len(paths) > 1000
    large = [
        found for path in sorted(paths) for found in _too_large(str(path.relative_to(ROOT)), path.read_text())
    ]
    assert not large, "give these parts with names of their own: " + "; ".join(large)


def test_docstrings_and_properties_do_not_count_as_size() -> None:
    body = "\n".join(f"        x = {number}" for number in range(FUNCTION - 1))
    prose = "\n".join("        Text." for _ in range(FUNCTION))
    text = f'class Small:\n    def method(self):\n        """Do.\n\n{prose}\n        """\n{body}\n'
    properties = "".join(f"    @property\n    def p{number}(self): ...\n" for number in range(CLASS))
    assert not list(_too_large("small.py", text + properties))
    longer = text.replace("        x = 0\n", "        x = 0\n        x = 0\n")
    assert list(_too_large("small.py", longer)) == [f"small.py: method: {FUNCTION + 1} lines"]
