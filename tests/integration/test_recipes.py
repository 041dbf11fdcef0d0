"""docs/how-to/recipes.md from top to bottom, as somebody does who copies it block by block."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs/how-to/recipes.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.yaml)\n")


@pytest.mark.full
def test_every_block_of_the_recipes_works_in_order(tmp_path: Path, engine: SparkEngine) -> None:
    blocks = _BLOCK.findall(PAGE.read_text())
    assert {language for language, _ in blocks} == {"sh", "python", "yaml"}
    commands = tmp_path / "bin"
    commands.mkdir()
    strandline = commands / "strandline"
    strandline.write_text(f'#!/bin/sh\nexec {sys.executable} -m platform_assets.cli "$@"\n')
    strandline.chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    environment = clean_environment() | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT),
        "STRANDLINE_SPARK_REMOTE": engine.remote or "",
    }
    for language, text in blocks:
        if language == "yaml":
            named = _FILE.match(text)
            assert named is not None, text
            (here / named[1]).write_text(text)
            continue
        words = ["sh", "-e", "-c", text] if language == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(
            words, cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
