"""What is shipped: the wheel's contents, and a lock that installs the same everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.wheel import rewritten

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"partitions", "resources", "platform_assets"}
OF_THE_CHECKOUT = ("platform_assets/dataflows/", "platform_assets/platform.yaml")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in a wheel that is built now; the back end is in the lock, so no network is used."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = out.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_the_wheel_owns_no_top_level_name_but_its_own(shipped: list[str]) -> None:
    top = {name.split("/")[0] for name in shipped}
    assert {name for name in top if not name.endswith(".dist-info")} == {"strandline"}


def test_the_wheel_has_every_file_of_the_packages_but_the_demo_s_project(shipped: list[str]) -> None:
    here = {
        f"strandline/{path.relative_to(ROOT).as_posix()}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and path.suffix in {".py", ".typed", ".yaml", ".java", ".jar"}
        and not path.relative_to(ROOT).as_posix().startswith(OF_THE_CHECKOUT)
    }
    assert here - set(shipped) == set()
    assert [
        name for name in shipped if name.startswith(tuple(f"strandline/{demo}" for demo in OF_THE_CHECKOUT))
    ] == []


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (
            "from resources.spark.engine import SparkEngine\n",
            "from strandline.resources.spark.engine import SparkEngine\n",
        ),
        (
            "if x:\n    from resources import a as b  # why\n",
            "if x:\n    from strandline.resources import a as b  # why\n",
        ),
        ("import partitions\n", "from strandline import partitions\n"),
        ("import partitions as p\n", "from strandline import partitions as p\n"),
        (
            "from .partitions import a\nimport resources_of\n",
            "from .partitions import a\nimport resources_of\n",
        ),
        ('text = "from resources import a"\n', 'text = "from resources import a"\n'),
        ("from partitions import (\n    a,\n)\n", "from strandline.partitions import (\n    a,\n)\n"),
    ],
)
def test_imports_are_rewritten_and_nothing_else(code: str, wanted: str) -> None:
    assert rewritten(code) == wanted


@pytest.mark.parametrize("code", ["import resources.spark.engine\n", "import os, partitions\n"])
def test_an_import_that_cannot_be_rewritten_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        rewritten(code)


def test_the_wheel_has_the_licence(shipped: list[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in shipped)


def locked() -> dict[str, tuple[list[str], str]]:
    """Name to its versions (one per marker) and its whole text in the lock."""
    found: dict[str, tuple[list[str], str]] = {}
    for block in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text()):
        if match := re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ \\;]+)", block):
            versions, text = found.get(canonicalize_name(match[1]), ([], ""))
            found[canonicalize_name(match[1])] = ([*versions, match[2]], text + block)
    return found


def test_the_lock_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert (
        re.findall(r"://|^\s*(?:-i|-f|--index-url|--extra-index-url|--find-links)\b", text, re.MULTILINE)
        == []
    )


def test_every_requirement_of_the_lock_has_a_hash() -> None:
    lines = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if re.match(r"[^\s#]", line)
    ]
    assert lines
    assert [line for line in lines if "==" not in line] == []
    assert [name for name, (_, text) in locked().items() if "--hash=sha256:" not in text] == []


def test_the_lock_has_every_direct_dependency_in_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    pins = locked()
    for requirement in map(Requirement, wanted):
        if requirement.name == project["name"]:
            continue
        versions = pins[canonicalize_name(requirement.name)][0]
        assert any(requirement.specifier.contains(version) for version in versions), (
            f"make lock: {requirement}, locked {versions}"
        )
