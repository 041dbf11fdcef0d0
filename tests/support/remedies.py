"""The commands that the product's errors name, read from its source, and those that tests say they run.

Belongs here: reading code. An error names commands in its ``choices``, or as ``strandline …`` in its message.
The functions, constants and attributes that either is made of are followed.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple, TypeAlias

PACKAGES = ("partitions", "resources", "platform_assets")
_GROUPS = frozenset({"state", "files", "splits", "stream", "schema"})
_WITH_FLAGS = frozenset({"state", "delete", "run"})
_FLAGS = frozenset({"--replace", "--below", "--gone", "--deleted", "--forget", "--force"})
_COMMAND = re.compile(r"(?<!\w)strandline ([a-z][^`;:,.\n()]*)")
_HANDED_ON = {"resources/decisions/adopt.py": {"state_object_missing"}}
"""Codes that an error takes over from another one, by the file that makes it."""
_MOST_TEXTS = 64
_DEEPEST = 14
_ANSWERS = frozenset({"late", "loaded", "load", "skip", "delete", "keep"})


class Remedy(NamedTuple):
    """A command that an error of this code names."""

    code: str
    command: str


def command_of(words: Sequence[str]) -> str:
    """Return the name of a command, with those of its options that make another remedy of it."""
    name = list(words[: 2 if words[0] in _GROUPS else 1])
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in _FLAGS and words[0] in _WITH_FLAGS:
            name += [word, following] if following in _ANSWERS else [word]
    if name[-1] in _ANSWERS and "--replace" in name:  # the answer is the remedy
        name.remove("--replace")
    return " ".join(name)


def commands_of(text: str) -> Iterator[str]:
    """Yield the commands in a text."""
    if text.startswith("pip install"):
        yield "pip install"
    for found in _COMMAND.finditer(text):
        yield command_of(found[1].split())


class Bound(NamedTuple):
    """An argument of a call, with the arguments that the calling function has itself."""

    node: ast.expr
    arguments: Arguments


Arguments: TypeAlias = Mapping[str, Bound]


class Code:
    """The product's source, by name."""

    def __init__(self, root: Path) -> None:
        self.functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
        self.calls: dict[str, list[ast.Call]] = defaultdict(list)
        self.constants: dict[str, list[ast.expr]] = defaultdict(list)
        self.attributes: dict[str, list[ast.expr]] = defaultdict(list)
        self.classes: dict[str, ast.ClassDef] = {}
        self.nodes: list[ast.AST] = []
        self.file: dict[ast.AST, str] = {}
        self.function: dict[ast.AST, ast.FunctionDef | None] = {}
        self.class_around: dict[ast.AST, str] = {}
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                self._note(ast.parse(file.read_text()), str(file.relative_to(root)), None, "")

    def _note(self, node: ast.AST, file: str, function: ast.FunctionDef | None, class_: str) -> None:
        self.nodes.append(node)
        self.file[node], self.function[node], self.class_around[node] = file, function, class_
        match node:
            case ast.FunctionDef():
                self.functions[self.key(node)].append(node)
                function = node
            case ast.ClassDef():
                self.classes[node.name] = node
                class_ = node.name
            case ast.Call(func=ast.Name(name)):
                self.calls[name].append(node)
            case ast.Call(func=ast.Attribute(attr=name)):
                self.calls[f".{name}"].append(node)
            case ast.Assign(targets=[ast.Attribute(ast.Name("self"), attr)], value=value):
                self.attributes[attr].append(value)
            case (
                ast.Assign(targets=[ast.Name(name)], value=value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ) if function is None:
                self.constants[name].append(value)
        for child in ast.iter_child_nodes(node):
            self._note(child, file, function, class_)

    def key(self, function: ast.FunctionDef) -> str:
        """Return a function's name; a method's with a point before it."""
        is_method = self.class_around[function] and self.function[function] is None
        return f".{function.name}" if is_method else function.name

    def place(self, node: ast.AST) -> str:
        """Return the file and line of an expression."""
        return f"{self.file[node]}:{getattr(node, 'lineno', 0)}"

    @cached_property
    def codes(self) -> dict[str, str]:
        """Return the code of each class of errors."""
        return {name: code for name in self.classes if (code := self._code_of(name))}

    def _code_of(self, name: str) -> str | None:
        if name not in self.classes:
            return None
        for line in self.classes[name].body:
            match line:
                case ast.Assign([ast.Name("code")], ast.Constant(str(code))):
                    return code
                case ast.AnnAssign(ast.Name("code"), value=ast.Constant(str(code))):
                    return code
        bases = [base.id for base in self.classes[name].bases if isinstance(base, ast.Name)]
        inherited = (self._code_of(base) for base in bases if base != name)
        return next(filter(None, inherited), None)

    @cached_property
    def remedies(self) -> dict[Remedy, list[str]]:
        """Return each command that an error names, with the places that do."""
        places: dict[Remedy, set[str]] = defaultdict(set)
        for node in self.nodes:
            for code, texts in self._named(node):
                for command in {command for text in texts for command in commands_of(text)}:
                    places[Remedy(code, command)].add(self.place(node))
        return {remedy: sorted(of_remedy) for remedy, of_remedy in sorted(places.items())}

    @cached_property
    def unread(self) -> list[str]:
        """Return the places whose choices cannot be read from the source."""
        return [
            f"{self.place(node)}: {ast.unparse(choices)}"
            for node in self.nodes
            if self._error(node)
            and isinstance(node, ast.Call)
            and (choices := _keyword(node, "choices")) is not None
            and not (isinstance(choices, ast.Attribute) and choices.attr == "choices")  # another error's
            and isinstance(node.func, ast.Name)  # no class hands them on to its base
            and not any(self._commands(choices, arguments) for arguments in self._callers(node))
        ]

    def _error(self, node: ast.AST) -> str | None:
        """Return the class of errors that a call makes one of."""
        match node:
            case ast.Call(func=ast.Name("cls") | ast.Attribute(ast.Call(ast.Name("super")), "__init__")):
                name = self.class_around[node]
            case ast.Call(func=ast.Name(name)):
                pass
            case _:
                return None
        return name if name in self.codes else None

    def _commands(self, node: ast.expr, arguments: Arguments) -> set[str]:
        return {command for text in Texts(self).of(node, arguments) for command in commands_of(text)}

    def _named(self, node: ast.AST) -> Iterator[tuple[str, set[str]]]:
        if (error := self._error(node)) and isinstance(node, ast.Call):
            choices, message = _keyword(node, "choices"), Texts(self, self.file[node])
            for arguments in self._callers(node):
                texts = {text for part in node.args for text in message.of(part, arguments)}
                texts |= Texts(self).of(choices, arguments) if choices is not None else set()
                for code in self._codes_at(node, error, arguments):
                    yield code, texts
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            match dict(zip(keys, node.values, strict=True)):
                case {"code": ast.Constant(str(code)), "choices": choices}:
                    yield code, Texts(self).of(choices, {})

    def _codes_at(self, node: ast.Call, error: str, arguments: Arguments) -> set[str]:
        code = _keyword(node, "code")
        if code is None:
            return {self.codes[error]}
        texts = Texts(self, self.file[node]).of(code, arguments) or _HANDED_ON.get(self.file[node], set())
        return {text for text in texts if re.fullmatch(r"[a-z_]+", text)} or {self.codes[error]}

    def _callers(self, node: ast.Call, deep: int = 0) -> Iterator[Arguments]:
        """Yield the arguments of each call of the function around a call; none if it uses no text of them."""
        function = self.function[node]
        if function is None or deep > 2 or not _uses_text_of(function, node) or not self._calls_of(function):
            yield {}
            return
        for call in self._calls_of(function):
            for outer in self._callers(call, deep + 1):
                yield bind(function, call, outer)

    def _calls_of(self, function: ast.FunctionDef) -> list[ast.Call]:
        key = self.key(function)
        calls = self.calls[key]
        if not function.name.startswith("_"):
            return calls if len(self.functions[key]) == 1 else []
        return [call for call in calls if self.file[call] == self.file[function]]


class Texts:
    """The texts that an expression may be, or be made of; ``{}`` stands for a value that only a run knows."""

    def __init__(self, code: Code, file: str | None = None) -> None:
        """Follow functions of all files; or only those of one file."""
        self._code, self._file = code, file

    def of(self, node: ast.expr, arguments: Arguments, deep: int = 0) -> set[str]:
        """Return the texts."""
        if deep > _DEEPEST:
            return set()
        deeper = deep + 1
        match node:
            case ast.Constant(str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                return self._joined(parts, arguments, deeper)
            case ast.FormattedValue(value=value):
                return {text for text in self.of(value, arguments, deeper) if _is_telling(text)} or {"{}"}
            case ast.BinOp(left, ast.Add(), right):
                return self._joined([left, right], arguments, deeper)
            case ast.Name(name):
                return self._name(node, name, arguments, deeper)
            case ast.Attribute(ast.Name("self"), attr):
                file = self._code.file[node]
                values = [value for value in self._code.attributes[attr] if self._code.file[value] == file]
                return self._all(values, {}, deeper) | self._returned(f".{attr}", file, {}, deeper)
            case ast.Call():
                return self._call(node, arguments, deeper)
        return self._all(_parts(node), arguments, deeper)

    def _all(self, nodes: Iterable[ast.expr], arguments: Arguments, deep: int) -> set[str]:
        return {text for node in nodes for text in self.of(node, arguments, deep)}

    def _joined(self, parts: list[ast.expr], arguments: Arguments, deep: int) -> set[str]:
        options = [sorted(self.of(part, arguments, deep)) or ["{}"] for part in parts]
        return {"".join(pieces) for pieces in islice(product(*options), _MOST_TEXTS)}

    def _name(self, node: ast.Name, name: str, arguments: Arguments, deep: int) -> set[str]:
        if name in arguments:
            return self.of(arguments[name].node, arguments[name].arguments, deep)
        function = self._code.function[node]
        while function is not None:
            if values := list(_assigned(function, name)):
                return self._all(values, arguments, deep)
            if name in {argument.arg for argument in _parameters(function)}:
                return set()
            function = self._code.function[function]
        values, file = self._code.constants[name], self._code.file[node]
        return self._all([value for value in values if self._code.file[value] == file] or values, {}, deep)

    def _call(self, node: ast.Call, arguments: Arguments, deep: int) -> set[str]:
        match node.func:
            case ast.Name(name) if name in self._code.functions:
                return self._returned(name, self._code.file[node], arguments, deep, node)
            case ast.Attribute(attr=name) if f".{name}" in self._code.functions:
                return self._returned(f".{name}", self._code.file[node], arguments, deep, node)
            case ast.Attribute(value=value):
                return self._all([value, *node.args], arguments, deep)
        return self._all(node.args, arguments, deep)

    def _returned(
        self, name: str, file: str, arguments: Arguments, deep: int, call: ast.Call | None = None
    ) -> set[str]:
        all_functions = self._code.functions.get(name, [])
        functions = [function for function in all_functions if self._code.file[function] == file]
        if not functions and self._file is None and call is not None:
            functions = [function for function in all_functions if not function.decorator_list]
        texts = set[str]()
        for function in functions if len(functions) < 4 else []:
            bound = bind(function, call, arguments) if call else {}
            texts |= self._all(_returns(function), bound, deep)
        return texts


def bind(function: ast.FunctionDef, call: ast.Call, outer: Arguments) -> Arguments:
    """Return the arguments of a call, by the names of the function's parameters."""
    names = [argument.arg for argument in _parameters(function) if argument.arg not in ("self", "cls")]
    pairs = [*zip(names, call.args, strict=False), *((word.arg or "", word.value) for word in call.keywords)]
    return {name: Bound(value, outer) for name, value in pairs}


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in node.keywords if word.arg == name), None)


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _is_text(argument: ast.arg) -> bool:
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    return argument.arg not in ("name", "dataflow") and "str" in annotation


def _uses_text_of(function: ast.FunctionDef, node: ast.Call) -> bool:
    """Return whether a call in a function uses one of its parameters that may be a text."""
    names = _names_in(node)
    for _ in range(2):
        names |= {used for name in names for value in _assigned(function, name) for used in _names_in(value)}
    return any(argument.arg in names for argument in _parameters(function) if _is_text(argument))


def _names_in(node: ast.expr) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _is_telling(text: str) -> bool:
    """Return whether a formatted value is a part of a command."""
    return not text or text in _ANSWERS or text.lstrip().startswith("--") or "strandline " in text


@cache
def _returns(function: ast.FunctionDef) -> list[ast.expr]:
    lines = [line for line in ast.walk(function) if isinstance(line, ast.Return | ast.Yield)]
    return [line.value for line in lines if line.value is not None]


@cache
def _assignments(function: ast.FunctionDef) -> Mapping[str, list[ast.expr]]:
    values: dict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                values[name].append(value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=parts)):
                for target, value in zip(targets, parts, strict=False):
                    values[ast.unparse(target)].append(value)
            case (
                ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(name), value=value)
                | ast.NamedExpr(target=ast.Name(name), value=value)
                | ast.Call(func=ast.Attribute(value=ast.Name(name), attr="append" | "extend"), args=[value])
                | ast.For(target=ast.Name(name), iter=value)
                | ast.comprehension(target=ast.Name(name), iter=value)
            ):
                values[name].append(value)
    return values


def _assigned(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    return _assignments(function).get(name, [])


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return parts
        case ast.Subscript(value=ast.Name("Literal"), slice=words):
            return [words]
        case ast.Starred(value=value) | ast.NamedExpr(value=value) | ast.Subscript(value=value):
            return [value]
        case ast.GeneratorExp(elt=value) | ast.ListComp(elt=value):
            return [value]
    return []


def marked_remedies(tests: Path) -> dict[Remedy, list[str]]:
    """Return the remedies that tests say they follow, with their files and lines."""
    places: dict[Remedy, list[str]] = defaultdict(list)
    for file in sorted(tests.rglob("test_*.py")):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if ".mark.remedy(" in text else ():
            match node:
                case ast.Call(func=ast.Attribute(attr="remedy"), args=[ast.Constant(str(code)), *commands]):
                    for command in commands:
                        place = f"{file.relative_to(tests)}:{node.lineno}"
                        places[Remedy(code, ast.literal_eval(command))].append(place)
    return places
