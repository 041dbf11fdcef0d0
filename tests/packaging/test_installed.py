"""The wheel beside somebody's own code, in an environment that has no checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

DATAFLOW = """\
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
"""

RESOURCES = 'WAREHOUSE = "a resource of the user\'s own"\n'

DEFINITIONS = """\
from dagster import AssetKey, Definitions, asset

from resources import WAREHOUSE
from strandline import build_definitions

@asset(deps=[AssetKey(["bronze", "events"])])
def report() -> None: ...

defs = Definitions.merge(
    build_definitions("loads", executor=None),
    Definitions(assets=[report], resources={"table": WAREHOUSE, "spark": WAREHOUSE, "watermark": WAREHOUSE}),
)
"""

LOOKS = """\
import json, sys
from definitions import defs
repository = defs.get_repository_def()
print(json.dumps({
    "assets": sorted(key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()),
    "jobs": sorted(repository.job_names),
    "resources": sys.modules["resources"].__file__,
    "ours": sorted({name.partition(".")[0] for name in sys.modules} & {"partitions", "platform_assets"}),
}))
"""


class Installed:
    """A virtual environment with the wheel, and a user's folder."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin, self.folder = folder / "venv/bin", folder / "shop"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        # The dependencies are those of this environment, so that nothing is fetched. Its own .pth files, the checkout's among them, are not read.
        packages = next((folder / "venv/lib").glob("python*/site-packages"))
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "-q"]
        subprocess.run([*pip, "--no-deps", "--no-index", "--ignore-installed", str(wheel)], check=True)
        self.write("resources/__init__.py", RESOURCES)
        self.write("definitions.py", DEFINITIONS)
        self.write("loads/platform.yaml", "{}\n")
        self.write("loads/dataflows/events.yaml", DATAFLOW)
        self.write("loads/landing/a.ndjson", '{"id": 1}\n{"id": 2}\n')
        cache = folder / "cache"
        cache.mkdir()
        (cache / "strandline").symlink_to(ROOT / ".strandline/cache")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STRANDLINE_PROJECT", "DAGSTER_HOME", "PYTHONPATH", "VIRTUAL_ENV"))
        } | {"XDG_CACHE_HOME": str(cache)}

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def call(self, *words: str, folder: str = ".") -> str:
        """Run a command of the environment in the user's folder, and return what it prints."""
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            cwd=self.folder / folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *words: str, folder: str = ".") -> Any:
        return json.loads(self.call("strandline", *words, "--json", folder=folder))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return Installed(folder, wheel)


def test_the_definitions_merge_with_those_of_a_project_that_has_a_package_named_resources(
    installed: Installed,
) -> None:
    seen = json.loads(installed.call("python", "-c", LOOKS))
    assert seen["assets"] == ["bronze/events", "report", "watermark/events"]
    assert "load_events" in seen["jobs"]
    assert seen["resources"] == str(installed.folder / "resources/__init__.py")
    assert seen["ours"] == []


def test_the_command_checks_the_project_that_is_named_and_the_one_in_the_working_folder(
    installed: Installed,
) -> None:
    assert installed.json("validate", "--project", "loads") == {"errors": []}
    assert installed.json("validate", folder="loads") == {"errors": []}


def test_a_folder_without_a_project_is_refused_with_what_to_do(installed: Installed) -> None:
    with pytest.raises(AssertionError, match="strandline init DIR"):
        installed.json("validate")


def test_three_commands_lead_from_nothing_to_rows_in_a_table(installed: Installed) -> None:
    """The first one is the installation."""
    installed.write("exports/2026-01-01.csv", "id;name\n1;a\n2;b\n")
    installed.json("init", "own", "--from", "exports")
    (run,) = installed.json("run", "--all", "--project", "own")
    assert (run["dataflow"], run["status"], run["rows"]) == ("exports", "committed", 2)
    assert (installed.folder / "own/.strandline/lake/bronze/exports/_delta_log").is_dir()
    code = "import runpy; print(runpy.run_path('own/definitions.py')['defs'].get_repository_def().job_names)"
    assert "load_exports" in installed.call("python", "-c", code)
