"""A virtual environment with the wheel alone, as a user of the package has it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from platform_assets.installation import ROOT, cache_folder
from resources.spark_runtime import spark_home
from tests.support.environment import clean_environment

_MODULES = {
    "dagster": "dagster",
    "dagster-daemon": "dagster._daemon",
    "dagster-webserver": "dagster_webserver",
    "dg": "dagster_dg_cli",
}
"""Commands that come with the dependencies, by the module that runs each."""

DG_PROJECT = {
    "pyproject.toml": """\
[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
""",
    "src/shop/__init__.py": "",
    "src/shop/definitions.py": """\
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
""",
    "src/shop/defs/report.py": """\
from dagster import AssetKey, asset


@asset(deps=[AssetKey(["bronze", "orders"])])
def report() -> None: ...
""",
}
"""The files of an empty project of ``dg``."""


class Installed:
    """A virtual environment with the wheel, and a user's folder.

    Its dependencies are those of this environment, so that nothing is fetched.
    """

    def __init__(self, folder: Path) -> None:
        """Build the wheel, install it, and use an empty folder ``shop``."""
        self.bin, self.folder = folder / "venv/bin", folder / "shop"
        self.folder.mkdir()
        build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder)]
        subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
        (self.wheel,) = folder.glob("*.whl")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        # .pth files of this environment, the checkout's among them, are not read
        packages = next((folder / "venv/lib").glob("python*/site-packages"))
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "-q"]
        subprocess.run([*pip, "--no-deps", "--no-index", "--ignore-installed", str(self.wheel)], check=True)
        for name, module in _MODULES.items():
            run = f'-c "from {module}.cli import main; main()"' if name == "dg" else f"-m {module}"
            self._write_script(name, f'exec "{self.bin}/python" {run} "$@"')
        self._write_script(
            "spark-submit", f'SPARK_HOME="{spark_home()}" exec "{spark_home()}/bin/spark-submit" "$@"'
        )
        cache = folder / "cache"
        cache.mkdir()
        (cache / "strandline").symlink_to(cache_folder())
        self.environment = {
            name: value
            for name, value in clean_environment().items()
            if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        } | {
            "PATH": f"{self.bin}:{clean_environment()['PATH']}",
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": str(self.folder / "dg/src"),
            "DAGSTER_DG_CLI_CONFIG": str(folder / "dg.toml"),
        }

    def write(self, name: str, text: str) -> None:
        """Write a file of the user's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def call(self, *words: str, folder: str = ".") -> str:
        """Run a command of the environment in the user's folder, and return what it prints."""
        done = subprocess.run(
            [str(self.bin / words[0]) if words[0] != "env" else "env", *words[1:]],
            cwd=self.folder / folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *words: str, folder: str = ".") -> Any:
        """Run a ``strandline`` command, and return its JSON."""
        return json.loads(self.call("strandline", *words, "--json", folder=folder))

    def _write_script(self, name: str, line: str) -> None:
        script = self.bin / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)


def shell_blocks(page: str) -> list[str]:
    """Return the blocks of shell commands of a page, without comments and with continued lines joined.

    Args:
        page: the path of a Markdown file below the checkout.
    """
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    joined = (block.replace("\\\n", " ") for block in blocks)
    return [re.sub(r"(?m)\s+#.*$", "", block) for block in joined]
