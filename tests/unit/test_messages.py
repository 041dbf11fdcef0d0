"""docs/reference/messages.md and docs/reference/state.md name every code that an error of the product may have, and no other."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from partitions.errors import StrandlineError, name_dataflow, strip_dataflow
from platform_assets.installation import ROOT

PACKAGES = ("partitions", "resources", "platform_assets")
DOCS = ROOT / "docs"
TAKES_CODE = ("code", "reason")
"""Arguments whose text becomes an error's code; a reason does if a file or a function is to blame."""
NO_ERRORS = frozenset({"due", "forced", "new", "grace", "failed", "grows"})
"""Reasons of work units."""


@cache
def codes() -> dict[str, str]:
    """Each code, with a place that gives it."""
    found: dict[str, str] = {}
    constants: dict[str, str] = {}
    trees = {
        file.relative_to(ROOT): ast.parse(file.read_text())
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
    }
    for tree in trees.values():
        constants |= dict(_constants(tree))
    for file, tree in trees.items():
        for node in ast.walk(tree):
            for code in _given(node, constants):
                found.setdefault(code, f"{file}:{getattr(node, 'lineno', 0)}")
    return {code: where for code, where in found.items() if code not in NO_ERRORS}


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=False):
                if (
                    isinstance(name, ast.Name)
                    and isinstance(value, ast.Constant)
                    and isinstance(value.value, str)
                ):
                    yield name.id, value.value


def _given(node: ast.AST, constants: dict[str, str]) -> Iterator[str]:
    """The codes that a piece of the code gives: a class its own, a call one of its arguments, a table of codes all."""
    match node:
        case ast.ClassDef():
            for line in node.body:
                match line:
                    case ast.Assign(targets=[ast.Name("code")], value=ast.Constant(str(code))):
                        yield code
                    case ast.AnnAssign(target=ast.Name("code"), value=ast.Constant(str(code))):
                        yield code
        case ast.Call(func=function):
            for keyword in node.keywords:
                if keyword.arg in TAKES_CODE:
                    match keyword.value:
                        case ast.Constant(str(code)):
                            yield code
                        case ast.Name(name) if name in constants:
                            yield constants[name]
            match function, node.args:
                case ast.Attribute(attr="_needs_decision"), [ast.Constant(str(code)), *_]:
                    yield code
                case ast.Name("_Failure"), [_, ast.Constant(str(code)), *_]:
                    yield code
        case ast.Assign(targets=[ast.Name("_CODES")], value=ast.Dict(values=values)):
            yield from (str(value.value) for value in values if isinstance(value, ast.Constant))


def documented(page: str) -> set[str]:
    """The codes in the first cells of a page's tables of codes, and those that it names in words."""
    text = (DOCS / page).read_text()
    found = set[str]()
    for table in re.findall(r"^\| code \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE):
        for line in table.splitlines():
            found |= set(re.findall(r"`([a-z_]+)`", line.split("|")[1]))
    return found


def test_every_code_is_documented_and_every_documented_code_is_in_the_code() -> None:
    written = documented("reference/messages.md") | documented("reference/state.md") | {"interrupted"}
    assert {code: where for code, where in codes().items() if code not in written} == {}
    assert written - set(codes()) == set()


def test_no_code_is_documented_on_both_pages() -> None:
    assert documented("reference/messages.md") & documented("reference/state.md") == set()


@pytest.mark.parametrize("section", [1, 2, 3, 4])
def test_a_code_stands_under_the_exit_code_of_its_error(section: int) -> None:
    text = (DOCS / "reference/messages.md").read_text()
    of_section = text.partition(f"## Exit code {section}")[2].partition("\n## ")[0]
    by_exit = defaultdict[int, set[str]](set)
    for error in _all_errors(StrandlineError):
        by_exit[error.exit_code].add(error.code)
    elsewhere = documented("reference/state.md")
    missing = {code for code in by_exit[section] - elsewhere if f"`{code}`" not in of_section}
    assert missing == set()


def _all_errors(of: type[StrandlineError]) -> Iterator[type[StrandlineError]]:
    yield of
    for below in of.__subclasses__():
        yield from _all_errors(below)


def test_no_message_names_its_dataflow_twice() -> None:
    """A message that carries another one's text gets its dataflow by name_dataflow, which names it once."""
    doubled = [
        f"{file}:{node.lineno}"
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.JoinedStr) and _names_dataflow(node) and _carries_a_message(node)
    ]
    assert doubled == []


def test_a_name_in_front_of_a_message_is_said_once() -> None:
    named = name_dataflow("events", "expected rows, found none")
    assert named == name_dataflow("events", named) == "dataflow events: expected rows, found none"
    assert strip_dataflow("events", named) == strip_dataflow("events", strip_dataflow("events", named))


def _names_dataflow(text: ast.JoinedStr) -> bool:
    first = text.values[0]
    if isinstance(first, ast.Constant):
        return str(first.value) == "dataflow "
    return False


def _carries_a_message(text: ast.JoinedStr) -> bool:
    """Whether a part right behind the dataflow's name is the text of another error."""
    behind = [part for part in text.values[2:] if not (isinstance(part, ast.Constant) and part.value == ": ")]
    if not behind or not isinstance(behind[0], ast.FormattedValue):
        return False
    return isinstance(behind[0].value, ast.Attribute) and behind[0].value.attr == "message"
