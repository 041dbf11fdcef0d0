"""Refuse names and docstrings that do not say what a thing is: ``python scripts/check_words.py [FOLDER…]``, part of ``make lint``.

Checked in the product's three packages (or in the folders that are named):

- a variable, parameter, field, function or alias that is a bare participle, pronoun or adverb (``found``, ``each``, ``there``);
- a class name that two modules define;
- a docstring whose first line has more than 100 letters;
- a function's docstring that opens with a clause ("Whether", "Of two rows") in place of an imperative ("Return", "Write").

The exit code is 1 if one is found; each line names file, line and reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("partitions", "resources", "platform_assets")
LONGEST_FIRST_LINE = 100
BARE_WORDS = frozenset(
    [
        "asked",
        "begun",
        "each",
        "found",
        "given",
        "gone",
        "got",
        "held",
        "here",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "mine",
        "one",
        "ours",
        "said",
        "seen",
        "shown",
        "taken",
        "theirs",
        "there",
        "these",
        "those",
        "told",
        "wanted",
    ]
)
ALLOWED = frozenset(
    {
        ("resources/kinds/path/sweep.py", "begun"),  # a key of the stored note
        ("resources/kinds/spark_stream/query.py", "left"),  # of a join's two sides
    }
)
"""Names that something stored or the field fixes, by their modules: at most 15."""
CLAUSE = re.compile(
    r"(All|An?|As|Each|How|If|In|Its?|No|Not|Of|On|One|Such|That|The|There|Those|What|When|Where|Whether|Which|With|Without)\b"
)


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of everything that a module binds."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
            ):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case (
                ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name))
            ):
                yield node.lineno, name
            case _:
                pass


def docstring_faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and fault of each docstring whose first line is too long or opens with a clause."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        line = node.body[0].lineno if node.body else 1
        if len(first) > LONGEST_FIRST_LINE:
            yield (
                line,
                f"the docstring's first line has {len(first)} letters, more than {LONGEST_FIRST_LINE}: {first}",
            )
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and not is_property(node) and CLAUSE.match(first):
            yield line, f"the docstring opens without an imperative: {first}"


def is_property(node: ast.AST) -> bool:
    """Return whether a function is read as an attribute: a noun phrase describes it."""
    decorators = getattr(node, "decorator_list", [])
    return any(
        ast.unparse(decorator).rpartition(".")[2] in {"property", "cached_property"}
        for decorator in decorators
    )


def main(folders: list[str]) -> int:
    """Print each fault of the folders' modules; return 1 if there is one, else 0."""
    faults: list[str] = []
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in folders or PACKAGES for path in Path(folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        for line, name in bound_names(tree):
            if name.strip("_") in BARE_WORDS and (path.as_posix(), name) not in ALLOWED:
                faults.append(f"{path}:{line}: the name {name} does not say what it holds")
        faults += [f"{path}:{line}: {fault}" for line, fault in docstring_faults(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{path}:{node.lineno}")
    faults += [
        f"{places[-1]}: class {name} has the name of the one in {places[0]}"
        for name, places in sorted(classes.items())
        if len(places) > 1
    ]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
