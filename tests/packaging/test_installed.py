"""The wheel beside somebody's own code, in an environment that has no checkout."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.installed import DG_PROJECT, Installed

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


WORKSPACE = """\
load_from:
  - python_file: {relative_path: location/definitions.py, location_name: strandline}
  - python_file: {relative_path: own.py, location_name: own}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    installed_package = Installed(tmp_path_factory.mktemp("installed"))
    installed_package.write("resources/__init__.py", RESOURCES)
    installed_package.write("definitions.py", DEFINITIONS)
    installed_package.write(
        "own.py",
        "from dagster import Definitions\n\nfrom resources import WAREHOUSE\n\ndefs = Definitions()\n",
    )
    installed_package.write("loads/platform.yaml", "{}\n")
    installed_package.write("loads/dataflows/events.yaml", DATAFLOW)
    installed_package.write("loads/landing/a.ndjson", '{"id": 1}\n{"id": 2}\n')
    return installed_package


@pytest.mark.full
def test_definitions_merge_with_a_project_that_has_its_own_resources(installed: Installed) -> None:
    seen = json.loads(installed.call("python", "-c", LOOKS))
    assert seen["assets"] == ["bronze/events", "report", "watermark/events"]
    assert "load_events" in seen["jobs"]
    assert seen["resources"] == str(installed.folder / "resources/__init__.py")
    assert seen["ours"] == []


@pytest.mark.full
def test_every_definitions_file_that_the_documentation_shows_loads(installed: Installed) -> None:
    blocks = [
        text
        for page in ("own-project", "alerts")
        for text in re.findall(
            r"^```python\n(.*?)^```$", (ROOT / f"docs/how-to/{page}.md").read_text(), re.M | re.S
        )
    ]
    assert len(blocks) == 2
    for number, text in enumerate(blocks):
        installed.write(f"shown_{number}.py", text)
        names = f"import shown_{number} as shown; r = shown.defs.get_repository_def(); print(*r.job_names, *[s.name for s in r.sensor_defs])"
        said = installed.call(
            "env", "MAIL_PASSWORD=secret", str(installed.bin / "python"), "-c", names
        ).split()
        assert {"load_events", "events_files"} <= set(said)
    assert "email_on_run_failure" in said


@pytest.mark.full
def test_a_project_is_a_code_location_beside_others_of_the_workspace(installed: Installed) -> None:
    installed.json("init", "location")
    installed.write("workspace.yaml", WORKSPACE)
    said = installed.call("python", "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml")
    assert "Validation successful for code location own" in said
    assert "Validation successful for code location strandline" in said


DG = ("python", "-c", "from dagster_dg_cli.cli import main; main()")


@pytest.fixture(scope="module")
def component(installed: Installed) -> Path:
    """The folder of a component that ``dg`` has made."""
    for name, text in DG_PROJECT.items():
        installed.write(f"dg/{name}", text)
    words = ("strandline.StrandlineProject", "loads", "--kind", "column", "--name", "orders")
    installed.call(*DG, "scaffold", "defs", *words, folder="dg")
    return installed.folder / "dg/src/shop/defs/loads"


@pytest.mark.full
class TestAsAComponent:
    """``dg`` makes it, checks its YAML, and loads it beside a user's own definitions."""

    @pytest.mark.full
    def test_dg_finds_it(self, installed: Installed, component: Path) -> None:
        found = json.loads(installed.call(*DG, "list", "components", "--json", folder="dg"))
        assert "strandline.StrandlineProject" in [each["key"] for each in found["items"]]

    def test_dg_scaffold_makes_a_project_with_a_first_dataflow(self, component: Path) -> None:
        files = sorted(
            path.relative_to(component).as_posix() for path in component.rglob("*") if path.is_file()
        )
        assert files == [
            ".gitignore",
            "dataflows/orders.yaml",
            "defs.yaml",
            "platform.yaml",
            "tests/orders/first.yaml",
        ]

    @pytest.mark.full
    def test_its_yaml_is_checked(self, installed: Installed, component: Path) -> None:
        installed.call(*DG, "check", "yaml", folder="dg")
        text = (component / "defs.yaml").read_text()
        (component / "defs.yaml").write_text(text.replace("project:", "projct:"))
        with pytest.raises(AssertionError, match="projct"):
            installed.call(*DG, "check", "yaml", folder="dg")
        (component / "defs.yaml").write_text(text)

    def test_its_definitions_load_beside_the_user_s_own(self, installed: Installed, component: Path) -> None:
        listed = json.loads(installed.call(*DG, "list", "defs", "--json", folder="dg"))
        assert {each["asset_key"] for each in listed["assets"]} == {
            "bronze/orders",
            "watermark/orders",
            "report",
        }
        assert "load_orders" in [each["name"] for each in listed["jobs"]]


def test_the_command_checks_a_named_project_and_the_working_folder(installed: Installed) -> None:
    assert installed.json("validate", "--project", "loads") == {"errors": [], "warnings": []}
    assert installed.json("validate", folder="loads") == {"errors": [], "warnings": []}


def test_a_folder_without_a_project_is_refused_with_what_to_do(installed: Installed) -> None:
    with pytest.raises(AssertionError, match="strandline init DIR"):
        installed.json("validate")


@pytest.mark.full
def test_three_commands_lead_from_nothing_to_rows_in_a_table(installed: Installed) -> None:
    """The first one is the installation."""
    installed.write("exports/2026-01-01.csv", "id;name\n1;a\n2;b\n")
    installed.json("init", "own", "--from", "exports")
    (run,) = installed.json("run", "--all", "--project", "own")
    assert (run["dataflow"], run["status"], run["rows"]) == ("exports", "committed", 2)
    assert (installed.folder / "own/.strandline/lake/bronze/exports/_delta_log").is_dir()
    code = "import runpy; print(runpy.run_path('own/definitions.py')['defs'].get_repository_def().job_names)"
    assert "load_exports" in installed.call("python", "-c", code)
    assert installed.call("strandline", "test", folder="own").startswith("exports/first: passed\n")


@pytest.mark.full
def test_prepare_fetches_jars_and_makes_the_archive_of_a_new_machine(
    installed: Installed, tmp_path: Path
) -> None:
    installed.environment["XDG_CACHE_HOME"], before = str(tmp_path), installed.environment["XDG_CACHE_HOME"]
    try:
        prepared = installed.json("prepare", "--project", "loads")
        (archive,) = (tmp_path / "strandline").glob("spark-*.jsa")
        assert int(archive.with_suffix(".size").read_text()) == archive.stat().st_size
        assert prepared["problem"] is None
        assert any("delta-spark" in jar for jar in prepared["jars"])
        assert installed.json("prepare", "--project", "loads") == prepared
    finally:
        installed.environment["XDG_CACHE_HOME"] = before


@pytest.mark.full
@pytest.mark.parametrize("way", ["code location", "merged", "component"])
def test_a_job_of_each_way_into_dagster_loads_what_has_come(
    installed: Installed, component: Path, tmp_path: Path, way: str
) -> None:
    """As Dagster's own command runs it, in a new process with an instance of its own."""
    folders = {"code location": "alone", "merged": "loads", "component": "dg/src/shop/defs/loads"}
    folder = folders[way]
    if way == "code location":
        installed.json("init", folder)
    if way != "merged":
        installed.write(f"{folder}/dataflows/events.yaml", DATAFLOW)
    installed.write(f"{folder}/landing/{way}.ndjson", '{"id": 7}\n')
    definitions = {
        "code location": ("-f", "alone/definitions.py"),
        "merged": ("-f", "definitions.py"),
        "component": ("-m", "shop.definitions"),
    }
    for home in ("first", "second"):
        (tmp_path / home).mkdir()
        named = f"DAGSTER_HOME={tmp_path / home}"
        command = (str(installed.bin / "python"), "-m", "dagster", "job", "execute", "-j", "load_events")
        installed.call("env", named, *command, *definitions[way])
    tables = list((installed.folder / folder).rglob("bronze/events/_delta_log"))
    rows = DeltaTable(str(tables[0].parent)).to_pyarrow_table()["id"].to_pylist()
    assert (len(tables), sorted(rows)) == (1, [1, 2, 7] if way == "merged" else [7])
