"""The commands that pages for users of the wheel show, run with the wheel alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.installed import DG_PROJECT, Installed, shell_blocks

pytestmark = pytest.mark.full

S3 = """\
lake: {path: s3://bucket/lake, connection: land}
connections:
  land: {type: s3, endpoint: "http://127.0.0.1:1", region: us-east-1, access_key_id: {env: KEY}, secret_access_key: {env: SECRET}}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("shown"))


def run(installed: Installed, block: str, folder: str = ".") -> str:
    """Run the commands of a block one after the other, and return what they print."""
    done = subprocess.run(
        ["sh", "-ec", block],
        cwd=installed.folder / folder,
        env=installed.environment | {"KEY": "k", "SECRET": "s"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_own_project_leads_from_the_installed_wheel_to_a_table(installed: Installed) -> None:
    install, first_table = shell_blocks("docs/how-to/own-project.md")[0].split("\n", 1)
    assert install == "pip install strandline-*.whl"  # the environment has it already
    installed.write("exports/2026-01-01.csv", "id,name\n1,a\n2,b\n")
    assert "exports: committed, 2 rows of 1 file" in run(installed, first_table)
    run(installed, "strandline prepare --project shop")  # a checkout that was set up has all of it already
    assert "nothing to do" in run(installed, "strandline prepare --project shop")


def test_own_project_makes_a_component(installed: Installed) -> None:
    for name, text in DG_PROJECT.items():
        installed.write(f"dg/{name}", text)
    run(installed, shell_blocks("docs/how-to/own-project.md")[1], "dg")
    folder = installed.folder / "dg/src/shop/defs/loads"
    assert (folder / "defs.yaml").is_file()
    assert list((folder / "dataflows").glob("*.yaml"))


def test_s3_shows_the_log_store_of_a_server(installed: Installed) -> None:
    installed.json("init", "bucket")
    installed.write("bucket/platform.yaml", S3)
    (block,) = shell_blocks("docs/how-to/s3.md")
    jar, log_store = run(installed, block, "bucket").splitlines()
    assert Path(jar.split(" ")[1]).is_file()
    assert log_store == "spark.delta.logStore.s3a.impl strandline.ConditionalPutLogStore"


def test_deploy_starts_a_server_with_all_that_the_project_needs(installed: Installed) -> None:
    (block,) = [block for block in shell_blocks("deploy/README.md") if "spark-submit" in block]
    files = installed.json("init", "deployed", "--deploy")["files"]
    assert {"deploy/README.md", "deploy/dagster.yaml", "deploy/workspace.yaml"} <= set(files)
    _, submit = block.splitlines()
    settings = installed.folder / "deployed/spark.conf"
    run(installed, block.splitlines()[0], "deployed")
    assert "spark.jars.packages io.delta:" in settings.read_text()
    # --version ends spark-submit before it starts anything, after it has read its options and the file
    shown = submit.replace("https://…", "https://127.0.0.1:1").replace("spark-internal", "--version")
    run(installed, shown, "deployed")
