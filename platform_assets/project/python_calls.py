"""Where the keys of a decorator's call stand in a Python file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from platform_assets.incremental_asset import CallPosition
from platform_assets.project.document import Key
from platform_assets.project.yaml_text import TextPosition

_DECORATOR = "incremental_asset"


def key_positions(call: CallPosition) -> Mapping[Key, TextPosition]:
    """Return the positions of the keywords of a call, and of the keys and items inside of them.

    What is not written in the call itself is missing, such as keys of ``**common``.
    """
    tree = _parse(Path(call.file))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and _is_at(node, call):
            return dict(_of_keywords(node))
    return {}


def asset_names(path: Path) -> list[str]:
    """Return the names of the dataflows that a file defines by decorators, without running it."""
    tree = _parse(path)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree else []
    return [
        _name_in(decorator) or function.name
        for function in functions
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] == _DECORATOR
    ]


def _parse(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _is_at(node: ast.Call, call: CallPosition) -> bool:
    position = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
    return position == (call.line, call.end_line, call.column, call.end_column)


def _of_keywords(call: ast.Call) -> Iterator[tuple[Key, TextPosition]]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield (keyword.arg,), _position(keyword)
            yield from _inside(keyword.value, (keyword.arg,))


def _inside(value: ast.expr, key: Key) -> Iterator[tuple[Key, TextPosition]]:
    if isinstance(value, ast.Dict):
        for name, item in zip(value.keys, value.values, strict=True):
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield (*key, name.value), _position(name)
                yield from _inside(item, (*key, name.value))
    if isinstance(value, ast.List | ast.Tuple):
        for index, item in enumerate(value.elts):
            yield (*key, index), _position(item)
            yield from _inside(item, (*key, index))


def _position(node: ast.expr | ast.keyword) -> TextPosition:
    return TextPosition(node.lineno, node.col_offset + 1)


def _name_in(call: ast.Call) -> str | None:
    """Return the text of the keyword ``name``."""
    for keyword in call.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return None
