"""The build hook of the wheel: the three packages of the checkout become one, ``strandline``.

See docs/explanation/adr/0026-a-wheel-of-one-package.md. Imports of the three are rewritten by the syntax tree, so that
texts, comments and
line numbers stay as they are. An editable install is the checkout itself: nothing is rewritten for it.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "strandline"
PACKAGES = ("partitions", "resources", "platform_assets")
SHIPPED = frozenset({".py", ".typed", ".yaml", ".java", ".jar"})
OF_THE_CHECKOUT = ("platform_assets/platform.yaml", "platform_assets/dataflows")
"""The demo's project: who installs a wheel has a project of their own."""

PUBLIC = "platform_assets/public.py"
"""What ``import strandline`` gives."""

SCRIPT = f"{NAME}.platform_assets.cli.main:main"


COMPONENTS = "dagster_dg_cli.registry_modules"
"""Where ``dg`` looks for packages with components."""


class WheelHook(BuildHookInterface[Any]):
    """Puts the rewritten packages into the wheel, and names its commands."""

    _built_folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Rewrite the packages into a folder, from which the wheel is built."""
        if version == "editable":
            return
        self._built_folder = tempfile.mkdtemp(prefix="strandline-wheel-")
        package = write_package(Path(self.root), Path(self._built_folder))
        build_data["force_include"][str(package)] = NAME
        self.metadata.core.scripts[NAME] = SCRIPT
        self.metadata.core.entry_points[COMPONENTS] = {NAME: NAME}

    def finalize(self, *_: Any) -> None:
        """Remove the folder."""
        if self._built_folder is not None:
            shutil.rmtree(self._built_folder)


def write_package(root: Path, into: Path) -> Path:
    """Write the package ``strandline`` from the checkout at ``root`` into a folder; return its path."""
    package = into / NAME
    for path in sorted(path for name in PACKAGES for path in (root / name).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in SHIPPED or not path.is_file() or name.startswith(OF_THE_CHECKOUT):
            continue
        _copy(path, package / name)
    _copy(root / PUBLIC, package / "__init__.py")
    shutil.copyfile(root / "dagster.yaml", package / "dagster.yaml")
    shutil.copytree(root / "deploy", package / "deploy")
    (package / "py.typed").touch()
    return package


def _copy(path: Path, into: Path) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".py":
        into.write_text(rewritten(path.read_text(), str(path)))
    else:
        shutil.copyfile(path, into)


def rewritten(code: str, file: str = "") -> str:
    """Return code that imports the packages from ``strandline``.

    Raises:
        ValueError: for ``import package.module``, which would bind another name.
    """
    lines = code.splitlines(keepends=True)
    for node in ast.walk(ast.parse(code, file)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _root(node.module or "") in PACKAGES:
            _replace(lines, node, "from ", f"from {NAME}.")
        elif isinstance(node, ast.Import) and any(_root(alias.name) in PACKAGES for alias in node.names):
            if len(node.names) > 1 or "." in node.names[0].name:
                raise ValueError(
                    f"{file}:{node.lineno}: expected `from package import name`, or one package alone"
                )
            _replace(lines, node, "import ", f"from {NAME} import ")
    return "".join(lines)


def _root(module: str) -> str:
    return module.partition(".")[0]


def _replace(lines: list[str], node: ast.stmt, old: str, new: str) -> None:
    line = lines[node.lineno - 1]
    before, after = line[: node.col_offset], line[node.col_offset :]
    lines[node.lineno - 1] = before + new + after.removeprefix(old)
