"""The identity guard: the three packages share one parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("layout", ["resources/__init__.py", "resources.py", "resources/data/readme.txt"])
def test_another_projects_package_is_refused_with_both_folders(tmp_path: Path, layout: str) -> None:
    foreign = tmp_path / layout
    foreign.parent.mkdir(parents=True, exist_ok=True)
    foreign.write_text("")
    # a folder without __init__ loses against a package, so it is imported only if Strandline's is not on the path
    error = _import([tmp_path, ROOT] if foreign.suffix == ".py" else [tmp_path, _without_resources(tmp_path)])
    assert "ImportError: expected the package 'resources' beside platform_assets in" in error
    assert f"found another of that name in {tmp_path}." in error
    assert "pip uninstall resources" in error


def test_the_checkout_itself_is_accepted() -> None:
    assert _import([ROOT]) == ""


def _import(path: list[Path]) -> str:
    code = f"import sys; sys.path[:0] = {[str(folder) for folder in path]}; import platform_assets"
    # -S: else the checkout, where it is installed, is on the path after all
    return subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd="/", check=False
    ).stderr


def _without_resources(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("partitions", "platform_assets"):
        (home / name).mkdir()
        (home / name / "__init__.py").write_text((ROOT / name / "__init__.py").read_text())
    return home
