"""Connections that code passes to ``build_definitions``: they replace those of platform.yaml, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dagster import EnvVar
from dagster_aws.s3 import S3Resource

from partitions.errors import ConfigurationError
from platform_assets.platform import engine_of_project, spark_conf
from platform_assets.project import Project, load_project
from platform_assets.project.passed_connections import with_connections
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import S3Connection
from resources.spark_runtime import DELTA_PACKAGE, HADOOP_AWS_PACKAGE, POSTGRESQL_PACKAGE

SETTINGS = """
lake: {path: s3://bucket/lake, connection: minio}
connections:
  minio: {type: dagster}
  land: {type: s3, endpoint: "http://written:1"}
  erp: {type: jdbc, url: "jdbc:postgresql://written/erp"}
"""
EVENTS = """
source: {type: files, path: "s3://bucket/landing", connection: minio, format: ndjson}
watermark: {type: path}
"""


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    variables: dict[str, str] = getattr(request, "param", {})
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "platform.yaml").write_text(SETTINGS)
    (tmp_path / "dataflows/events.yaml").write_text(EVENTS)
    loaded = load_project(tmp_path, environment=variables)
    assert loaded.errors == []
    return loaded


def s3(project: Project, name: str = "minio") -> S3Connection:
    return project.connection(name, S3Connection)


def test_an_s3_resource_says_how_a_connection_of_type_dagster_is_reached(project: Project) -> None:
    resource = S3Resource(
        endpoint_url="http://passed:9000",
        region_name="eu-central-1",
        aws_access_key_id="AKIA",
        aws_secret_access_key="hidden-secret",
        aws_session_token="hidden-token",
    )
    passed = with_connections(project, {"minio": resource})
    expected = S3Connection("http://passed:9000", "eu-central-1", "AKIA", "hidden-secret", "hidden-token")
    assert s3(passed) == expected
    assert passed.lake.connection == expected
    (events,) = passed.named([])
    assert getattr(passed.source_place(events), "connection", None) == expected


def test_what_is_passed_replaces_the_whole_connection_of_the_same_name(project: Project) -> None:
    passed = with_connections(project, {"land": S3Resource(region_name="eu-west-1")})
    assert s3(passed, "land") == S3Connection(region="eu-west-1")
    assert s3(project, "land") == S3Connection("http://written:1")


@pytest.mark.parametrize("project", [{"KEY": "k", "SECRET": "first-secret"}], indirect=True)
def test_an_env_var_is_looked_up_at_each_use(project: Project) -> None:
    resource = S3Resource(aws_access_key_id=EnvVar("KEY"), aws_secret_access_key=EnvVar("SECRET"))
    passed = with_connections(project, {"minio": resource})
    connection = s3(passed)
    assert connection.secret_access_key == "first-secret"
    variables: Any = project._secrets.variables
    variables["SECRET"] = "second-secret"
    assert connection.look_up is not None
    assert connection.look_up().secret_access_key == "second-secret"
    assert passed.hide("no first-secret, no second-secret") == "no {env: SECRET}, no {env: SECRET}"


def test_an_env_var_that_is_not_set_is_named_with_the_place_that_passes_it(project: Project) -> None:
    passed = with_connections(project, {"minio": S3Resource(aws_access_key_id=EnvVar("NO_KEY"))})
    with pytest.raises(ConfigurationError) as refused:
        s3(passed)
    assert refused.value.message == (
        "build_definitions: connections.minio.access_key_id: expected the environment variable NO_KEY to be set, found it"
        " unset or empty: set it, or correct {env: NO_KEY} there"
    )


@pytest.mark.parametrize("project", [{"PASSWORD": "from the variable"}], indirect=True)
def test_a_mapping_has_the_keys_of_a_connection_in_platform_yaml(project: Project) -> None:
    passed = with_connections(
        project,
        {
            "erp": {"url": "jdbc:postgresql://passed/erp", "user": "reader", "password": EnvVar("PASSWORD")},
            "minio": {"type": "s3", "endpoint": "http://passed:1"},
        },
    )
    expected = JdbcConnection.parse("jdbc:postgresql://passed/erp", "reader", "from the variable")
    assert passed.connection("erp", JdbcConnection) == expected
    assert s3(passed) == S3Connection("http://passed:1")


def test_a_secret_in_plain_text_appears_in_no_message(project: Project) -> None:
    passed = with_connections(
        project,
        {
            "minio": S3Resource(aws_secret_access_key="hidden-secret"),
            "erp": {"url": "jdbc:postgresql://h/erp", "password": "hidden-password"},
        },
    )
    hidden = passed.hide("tried hidden-secret and hidden-password")
    assert hidden == (
        "tried {secret_access_key of the passed connection minio} and {password of the passed connection erp}"
    )
    assert "hidden" not in repr(passed)


@pytest.mark.parametrize(
    ("connections", "message"),
    [
        (
            {"mino": S3Resource()},
            "found 'mino' (did you mean minio?). Add it there: `connections: {mino: {type: dagster}}`",
        ),
        (
            {"erp": S3Resource()},
            "expected a connection of type jdbc, as platform.yaml says, found one of type s3",
        ),
        ({"minio": "s3://bucket"}, "expected an S3Resource, or a mapping with the keys of a connection"),
        ({"minio": {"endpoint": "http://h:1"}}, "expected a mapping with the key type, such as s3 or jdbc"),
        ({"erp": {"passwort": "hidden-secret"}}, "found url: Field required; passwort: Extra inputs are not"),
        ({"minio": S3Resource(verify=False)}, "expected an S3Resource without verify=False"),
        ({"minio": S3Resource(use_unsigned_session=True)}, "without use_unsigned_session=True"),
        (
            {"minio": S3Resource(use_ssl=False)},
            "the scheme of endpoint_url says whether requests are encrypted",
        ),
        (
            {"minio": S3Resource(profile_name="one", aws_secret_access_key="hidden-secret")},
            "expected a profile, or access_key_id and secret_access_key, found both",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    project: Project, connections: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        with_connections(project, connections)
    assert message in refused.value.message
    assert "hidden" not in refused.value.message


def test_a_command_says_which_connection_it_lacks(project: Project) -> None:
    with pytest.raises(ConfigurationError) as refused:
        _ = project.lake
    assert refused.value.message.startswith("connections.minio: expected its settings, found type: dagster")
    assert "connections={'minio': ...}" in refused.value.message


class TestProfile:
    """A profile of the AWS configuration, in platform.yaml and of an ``S3Resource``."""

    @pytest.fixture(autouse=True)
    def aws(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        config = "[profile lake]\nregion = eu-north-1\naws_access_key_id = AKPROFILE\naws_secret_access_key = hidden-profile\n"
        (tmp_path / "aws").write_text(f"{config}[profile empty]\nregion = eu-north-1\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        from resources.connections.aws_profile import _session

        _session.cache_clear()

    def test_gives_keys_and_region(self, project: Project) -> None:
        passed = with_connections(project, {"minio": S3Resource(profile_name="lake")})
        assert s3(passed) == S3Connection(None, "eu-north-1", "AKPROFILE", "hidden-profile")
        assert passed.hide("got hidden-profile") == "got {profile}"

    @pytest.mark.parametrize("name", ["unknown", "empty"])
    def test_without_credentials_is_refused_with_the_command_that_makes_them(
        self, project: Project, name: str
    ) -> None:
        with pytest.raises(ConfigurationError) as refused:
            s3(with_connections(project, {"minio": {"type": "s3", "profile": name}}))
        assert f"connections.minio.profile: expected the AWS profile {name} with credentials" in str(
            refused.value
        )
        assert f"aws configure --profile {name}" in str(refused.value)


def test_the_jars_of_a_project_do_not_depend_on_settings_that_code_passes(project: Project) -> None:
    assert {DELTA_PACKAGE, HADOOP_AWS_PACKAGE} <= set(engine_of_project(project).packages)


def test_the_settings_of_a_spark_have_the_driver_of_a_passed_database(project: Project) -> None:
    (project.folder / "platform.yaml").write_text(
        SETTINGS.replace("erp: {type: jdbc,", "erp: {type: dagster} #")
    )
    (project.folder / "dataflows/rows.yaml").write_text(
        "source: {type: jdbc, connection: erp, table: public.t}\nwatermark: {type: column, columns: [id]}\n"
    )
    erp = {"type": "jdbc", "url": "jdbc:postgresql://h/erp"}
    assert POSTGRESQL_PACKAGE not in spark_conf(project.folder)["spark.jars.packages"]
    assert POSTGRESQL_PACKAGE in spark_conf(project.folder, {"erp": erp})["spark.jars.packages"]
