"""Environments: platform.NAME.yaml over platform.yaml, chosen by name, and sharing neither state nor lake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from partitions.errors import ConfigurationError
from platform_assets.cli.main import strandline
from platform_assets.dagster_home import project_home
from platform_assets.platform import build_engine
from platform_assets.project import Project, load_project
from tests.support.projects import FILES

BASE = """\
format: iceberg
spark: {conf: {spark.driver.memory: 2g, spark.ui.enabled: false}}
alerts: {webhook: {env: HOOK}, on: [failed]}
connections:
  erp: {type: jdbc, url: "jdbc:postgresql://base/erp", user: reader, password: {env: BASE_PASSWORD}}
  land: {type: s3, region: eu-west-1, endpoint: "http://127.0.0.1:1"}
"""
DEV = """\
# the settings of dev
format: delta
spark: {conf: {spark.driver.memory: 1g}}
alerts: null
connections:
  erp: {url: "jdbc:postgresql://dev/erp", password: {env: DEV_PASSWORD}}
  land: {type: api, base_url: "https://dev.example"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/flow.yaml").write_text(FILES)
    return tmp_path


def write(folder: Path, base: str = "", **environments: str) -> None:
    (folder / "platform.yaml").write_text(base)
    for name, text in environments.items():
        (folder / f"platform.{name}.yaml").write_text(text)


def load(folder: Path, env: str | None = None, **variables: str) -> Project:
    return load_project(folder, env=env, environment=variables)


def errors(folder: Path, env: str | None = None, **variables: str) -> list[str]:
    return [str(error) for error in load(folder, env, **variables).errors]


def test_mappings_are_merged_and_all_else_is_replaced(folder: Path) -> None:
    write(folder, BASE, dev=DEV)
    settings = load(folder, "dev").settings
    assert settings.format == "delta"
    assert settings.spark.conf == {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    assert settings.alerts is None
    assert repr(settings.connections["erp"].address()) == (
        "{'url': 'jdbc:postgresql://dev/erp', 'user': 'reader', 'password': {env: DEV_PASSWORD}}"
    )
    assert settings.connections["land"].type == "api"
    assert load(folder).settings.format == "iceberg"


def test_a_list_is_replaced_as_a_whole(folder: Path) -> None:
    write(folder, BASE, dev="alerts: {on: [late]}\n")
    alerts = load(folder, "dev").settings.alerts
    assert alerts is not None
    assert (alerts.on, repr(alerts.webhook)) == (("late",), "{env: HOOK}")


def test_the_name_comes_from_the_call_else_from_the_variable(folder: Path) -> None:
    write(folder, dev="format: parquet\n", prod="format: iceberg\n")
    assert load(folder).env is None
    assert load(folder, STRANDLINE_ENV="dev").settings.format == "parquet"
    assert load(folder, "prod", STRANDLINE_ENV="dev").settings.format == "iceberg"
    assert load(folder, "", STRANDLINE_ENV="dev").env is None


@pytest.mark.parametrize(
    ("env", "variables", "how"),
    [("prd", {}, "--env prd"), (None, {"STRANDLINE_ENV": "prd"}, "STRANDLINE_ENV=prd")],
)
def test_an_unknown_name_is_refused_with_the_names_that_there_are(
    folder: Path, env: str | None, variables: dict[str, str], how: str
) -> None:
    write(folder, dev="", prod="")
    with pytest.raises(ConfigurationError) as refused:
        load(folder, env, **variables)
    assert refused.value.message == (
        f"{how}: expected one of the environments of project {folder}: dev, prod; found no platform.prd.yaml (did you mean prod?)"
    )


def test_an_error_names_the_file_and_line_that_it_stands_in(folder: Path) -> None:
    write(folder, "format: delta\nsensors: {intervl: PT5S}\n", dev="# dev\nformat: detla\nstate: gs://x/y\n")
    assert errors(folder, "dev") == [
        "platform.dev.yaml:2: format: found detla, expected delta, iceberg or parquet (did you mean delta?)",
        (
            "platform.dev.yaml:3: state: found gs://x/y, expected a folder, s3://bucket/prefix or postgresql://host/database (other object"
            " stores are not supported yet, see ROADMAP.md)"
        ),
        "platform.yaml:2: sensors.intervl: found an unknown key, expected one of interval (did you mean interval?)",
    ]


def test_a_secret_in_plain_text_is_refused_in_the_file_of_an_environment(folder: Path) -> None:
    write(folder, BASE, dev="connections: {erp: {password: hunter2}}\n")
    assert errors(folder, "dev") == [
        "platform.dev.yaml:1: connections.erp.password: found a secret in plain text, expected {env: NAME}, {file: PATH} or {function: MODULE:NAME}"
    ]


def test_an_unset_variable_names_the_file_that_it_stands_in(folder: Path) -> None:
    """That of the environment for its own keys, platform.yaml for the others."""
    write(folder, BASE, dev=DEV)
    project = load(folder, "dev")
    with pytest.raises(ConfigurationError, match=r"^platform\.dev\.yaml: connections\.erp\.password: "):
        project.open_connection("erp")
    with pytest.raises(ConfigurationError, match=r"^platform\.yaml: connections\.erp\.password: "):
        load(folder).open_connection("erp")
    assert (project.file_of("spark.conf"), project.file_of("format"), project.file_of("state")) == (
        "platform.yaml",
        "platform.dev.yaml",
        "platform.yaml",
    )


def test_each_environment_has_its_own_default_places_and_runs(folder: Path) -> None:
    write(folder, dev="", prod="")
    places = {
        name: (load(folder, name).state, load(folder, name).lake.local, project_home(folder, name or None))
        for name in ("", "dev", "prod")
    }
    top = folder / ".strandline"
    assert [lake for _, lake, _ in places.values()] == [top / "lake", top / "dev/lake", top / "prod/lake"]
    assert [home for *_, home in places.values()] == [
        top / "dagster",
        top / "dev/dagster",
        top / "prod/dagster",
    ]
    assert len({str(state) for state, *_ in places.values()}) == 3
    assert errors(folder, "dev") == []
    warehouse = build_engine(load(folder, "dev")).conf["spark.sql.warehouse.dir"]
    assert warehouse == str(top / "dev/warehouse")


@pytest.mark.parametrize(
    ("base", "dev", "prod", "found"),
    [
        (
            "state: ./here\n",
            "",
            "state: ./there\n",
            "platform.yaml:1: state: found ./here, which is the state of platform.yaml without an environment (./here)",
        ),
        (
            "",
            "lake: s3://b/lake/\n",
            "lake: s3://b/lake\n",
            "platform.dev.yaml:1: lake: found s3://b/lake/, which is the lake of environment prod (s3://b/lake)",
        ),
        (
            "",
            "lake: {path: s3://b/lake/dev}\n",
            "lake: s3://b/lake\n",
            "platform.dev.yaml:1: lake.path: found s3://b/lake/dev, which lies inside the lake of environment prod (s3://b/lake)",
        ),
        (
            "",
            "state: postgresql://h:5432/db\n",
            "state: postgresql://h/db?sslmode=require\n",
            "platform.dev.yaml:1: state: found postgresql://h:5432/db, which is the state of environment prod (postgresql://h/db?sslmode=require)",
        ),
        (
            "",
            "state: .strandline/prod/../prod/state\n",
            "",
            "platform.dev.yaml:1: state: found .strandline/prod/../prod/state, which is the state of environment prod (./.strandline/prod/state)",
        ),
    ],
    ids=["of the base", "a bucket", "one inside the other", "a database", "a folder by another name"],
)
def test_a_place_of_another_environment_is_refused_by_name(
    folder: Path, base: str, dev: str, prod: str, found: str
) -> None:
    write(folder, base, dev=dev, prod=prod)
    (error,) = errors(folder, "dev")
    assert error.startswith(f"{found}, expected a place of its own for each, ")
    with pytest.raises(ConfigurationError):
        _ = load(folder, "dev").settings


@pytest.mark.parametrize(
    "settings",
    [
        "state: {env: STATE}\nlake: {env: LAKE}\n",
        'state: "postgresql://"\nlake: {env: LAKE}\n',
    ],
)
def test_places_that_only_the_machine_tells_are_not_compared(folder: Path, settings: str) -> None:
    write(folder, settings, dev="", prod="")
    assert errors(folder, "dev", STATE=str(folder / "s"), LAKE=str(folder / "l")) == []


def test_one_bucket_at_two_endpoints_is_two_places(folder: Path) -> None:
    lake = "lake: {path: s3://b/lake, connection: land}\nconnections: {land: {type: s3, region: r, endpoint: URL}}\n"
    write(
        folder,
        dev=lake.replace("URL", '"http://127.0.0.1:1"'),
        prod=lake.replace("URL", '"http://127.0.0.1:2"'),
    )
    assert errors(folder, "dev") == []


CONNECTIONS = """
connections:
  a: {type: s3, region: r, endpoint: "http://minio:9000"}
  b: {type: s3, region: r, endpoint: "http://MINIO:9000/"}
  c: {type: s3, region: r, endpoint: {env: ENDPOINT}}
  d: {type: s3, region: r, endpoint: "http://localhost:9000"}
  e: {type: s3, region: r, endpoint: "http://127.0.0.1:9000"}
  f: {type: s3, region: eu-central-1}
  g: {type: s3, region: r, endpoint: "https://s3.eu-central-1.amazonaws.com"}
"""
VARIABLES = {"ENDPOINT": "http://minio:9000", "STATE": "./place", "PGHOST": "h", "PGDATABASE": "db"}


@pytest.mark.parametrize(
    ("dev", "prod"),
    [
        ("lake: {path: s3://b/l, connection: a}", "lake: {path: s3://b/l, connection: b}"),
        ("lake: {path: s3://b/l, connection: c}", "lake: {path: s3://b/l, connection: a}"),
        ("lake: {path: s3://b/l, connection: d}", "lake: {path: s3://b/l, connection: e}"),
        ("lake: {path: s3://b/l, connection: f}", "lake: s3://b/l"),
        ("lake: {path: s3://b/l, connection: g}", "lake: {path: s3://b/l, connection: f}"),
        ("lake: s3://b//l", "lake: s3://b/l"),
        ("lake: s3://b/x/../l/./", "lake: s3://b/l"),
        ("lake: {env: STATE}", "lake: ./place"),
        ("state: {env: STATE}", "lake: ./place"),
        ("state: ./place/inside", "lake: ./place"),
        ("state: file://place", "state: ./place"),
        ("state: postgresql://u@H/db", "state: postgres://v@h:5432/db"),
        ("state: postgresql://u@localhost/db", "state: postgresql://u@127.0.0.1/db"),
        ("state: postgresql:///db?host=h", "state: postgresql://h/db"),
        ("state: postgresql://h,h2/db", "state: postgresql://h2/db"),
        ("state: postgresql://db@h", "state: postgresql://h/db"),
        ('state: "postgresql://"', "state: postgresql://h/db"),
    ],
)
def test_another_spelling_of_a_place_of_another_environment_is_refused(
    folder: Path, dev: str, prod: str
) -> None:
    write(folder, CONNECTIONS, dev=dev, prod=prod)
    (error,) = errors(folder, "dev", **VARIABLES)
    assert " of environment prod (" in error
    assert error.endswith("environments share neither state nor lake")


@pytest.mark.parametrize(
    ("dev", "prod"),
    [
        ("lake: {path: s3://b/l, connection: a}", "lake: {path: s3://b/l, connection: d}"),
        ("lake: {path: s3://b/l, connection: a}", "lake: s3://b/l"),
        ("lake: s3://b/l", "lake: s3://b/l2"),
        ("lake: {env: STATE}", "lake: {env: STATE}"),
        ("state: postgresql://h/db?schema=dev", "state: postgresql://h/db?schema=prod"),
        ("state: postgresql://h/db", "state: postgresql://h:5433/db"),
        ('state: "postgresql://"', 'state: "postgresql://"'),
        ("state: ./place", "state: ./place2"),
    ],
)
def test_places_beside_each_other_are_no_shared_ones(folder: Path, dev: str, prod: str) -> None:
    write(folder, CONNECTIONS, dev=dev, prod=prod)
    assert errors(folder, "dev", **VARIABLES) == []


def test_an_address_that_a_variable_holds_is_not_shown_by_the_error_about_it(folder: Path) -> None:
    write(folder, "", dev="state: {env: STATE}", prod="state: ./place")
    (error,) = errors(folder, "dev", STATE="./place/../place")
    assert error.startswith(
        "platform.dev.yaml:1: state: found {env: STATE}, which is the state of environment prod"
    )


@pytest.mark.parametrize(
    ("base", "dev", "prod", "remedy"),
    [
        ("lake: ./lake\n", "", "lake: ./prod\n", "such as ./.strandline/dev/lake, in platform.dev.yaml"),
        (
            "lake: ./lake\n",
            "lake: ./prod\n",
            "lake: ./prod\n",
            "in platform.dev.yaml or platform.prod.yaml, whichever is wrong",
        ),
    ],
)
def test_the_error_about_a_shared_place_names_the_file_to_correct(
    folder: Path, base: str, dev: str, prod: str, remedy: str
) -> None:
    """Neither environment is told to leave its tables: the mistake may be in the other one's file."""
    write(folder, base, dev=dev, prod=prod)
    (error,) = errors(folder, "dev")
    assert error.endswith(
        f"expected a place of its own for each, {remedy}: environments share neither state nor lake"
    )


def test_a_name_or_an_ending_that_no_environment_has_is_refused(folder: Path) -> None:
    write(folder, Prod="", dev="")
    (folder / "platform.test.yml").write_text("")
    assert errors(folder, "dev") == [
        "platform.Prod.yaml:1: found the environment 'Prod', expected a small letter, then small letters, digits, _ and -",
        "platform.test.yml:1: found the ending .yml, expected the ending .yaml (did you mean platform.test.yaml?)",
    ]


def validate(folder: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(strandline, ["validate", "--project", str(folder), *words], env={})
    return result.exit_code, result.stdout


def test_validate_checks_all_environments_and_says_which_has_an_error(folder: Path) -> None:
    (folder / "dataflows/flow.yaml").write_text(
        "source: {type: jdbc, connection: erp, table: t}\nwatermark: {type: column, columns: [at]}\n"
    )
    connection = 'connections: {erp: {type: jdbc, url: "jdbc:postgresql://h/db", password: {env: UNSET}}}\n'
    write(folder, dev=connection, prod=f"{connection}state: {{env: UNSET_HERE}}\n")
    assert validate(folder) == (0, f"{folder}: 0 dataflows, no errors; environments: dev, prod\n")
    (folder / "platform.prod.yaml").write_text("format: iceberg\n")
    code, output = validate(folder)
    assert code == 2
    assert output.splitlines()[0] == (
        "dataflows/flow.yaml:1: source.connection: found erp, expected one of the connections of platform.yaml: none: platform.yaml has"
        " no connections (environment prod)"
    )
    document = json.loads(validate(folder, "--json")[1])
    assert [error["environments"] for error in document["errors"]] == [["prod"]]


def test_a_variable_that_the_chosen_environment_needs_is_an_error(folder: Path) -> None:
    write(folder, prod="state: {env: UNSET_HERE}\n")
    assert validate(folder)[0] == 0
    assert validate(folder, "--env", "prod")[0] == 2


def test_commands_to_copy_carry_the_environment(folder: Path) -> None:
    write(folder, dev="")
    result = CliRunner().invoke(
        strandline, ["run", "nothing", "--project", str(folder), "--env", "dev"], env={}
    )
    assert f"strandline list --project {folder} --env dev" in result.output
