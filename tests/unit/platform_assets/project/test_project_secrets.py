"""Secrets come from the environment only, and appear nowhere."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from partitions.errors import ConfigurationError
from platform_assets.project.env_reference import EnvRef, FromEnvironment, resolve_text
from resources.connections.places import Place

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

SECRET = "hunter2-and-more"
LAND = """\
connections:
  land:
    type: s3
    endpoint: http://127.0.0.1:8333
    region: {env: REGION}
    access_key_id: {env: KEY_ID}
    secret_access_key: {env: SECRET_KEY}
"""
S3_FLOW = """\
source: {type: files, path: "s3://bucket/in", connection: land, format: ndjson}
watermark: {type: path}
"""
ENVIRONMENT = {"REGION": "eu-west-1", "KEY_ID": "AKIA", "SECRET_KEY": SECRET}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("connections: {c: {type: s3, secret_access_key: X}}", "connections.c.secret_access_key"),
        ("connections: {c: {type: s3, session_token: X}}", "connections.c.session_token"),
        ("connections: {c: {type: s3, endpoint: 'http://user:X@h:1'}}", "connections.c.endpoint"),
        ("connections: {c: {type: jdbc, password: X}}", "connections.c.password"),
        ("connections: {c: {type: jdbc, password: [X]}}", "connections.c.password"),
        ("connections: {c: {type: jdbc, password: {value: X}}}", "connections.c.password"),
        ("connections: {c: {type: jdbc, url: 'jdbc:postgresql://u:X@h/db'}}", "connections.c.url"),
        (
            "connections: {c: {type: jdbc, url: 'jdbc:postgresql://h/db?user=u&password=X'}}",
            "connections.c.url",
        ),
        ("connections: {c: {type: jdbc, url: 'jdbc:sqlserver://h;password=X'}}", "connections.c.url"),
        ("connections: {c: {type: api, headers: {Authorization: X}}}", "connections.c.headers.Authorization"),
        ("connections: {c: {type: api, headers: {X-Api-Key: X}}}", "connections.c.headers.X-Api-Key"),
        ("connections: {c: {type: api, headers: {X-Auth-Token: X}}}", "connections.c.headers.X-Auth-Token"),
        ("connections: {c: {type: api, headers: {Cookie: X}}}", "connections.c.headers.Cookie"),
        ("connections: {c: {type: api, params: {api_key: X}}}", "connections.c.params.api_key"),
        ("connections: {c: {type: api, token: X}}", "connections.c.token"),
        ("connections: {c: {type: api, base_url: 'https://u:X@h'}}", "connections.c.base_url"),
        ("state: postgresql://user:X@host/db", "state"),
        ("lake: {path: 's3://id:X@bucket/lake'}", "lake.path"),
        ("spark: {remote: 'sc://host:1/;token=X'}", "spark.remote"),
        ("spark: {conf: {spark.hadoop.fs.s3a.secret.key: X}}", "spark.conf.spark.hadoop.fs.s3a.secret.key"),
        ("spark: {conf: {spark.ssl.keyPassword: X}}", "spark.conf.spark.ssl.keyPassword"),
    ],
)
def test_a_literal_secret_is_refused_and_not_shown(make: Make, text: str, key: str) -> None:
    project = make(
        platform=text.replace("X}", f"{SECRET}}}")
        .replace("X]", f"{SECRET}]")
        .replace("X@", f"{SECRET}@")
        .replace("X'", f"{SECRET}'")
    )
    assert (key, "a secret in plain text", "{env: NAME}, a variable of the environment") in [
        (error.key, error.actual, error.expected) for error in project.errors
    ]
    assert SECRET not in repr(project) + str([error.message for error in project.errors])


@pytest.mark.parametrize(
    "text",
    [
        "connections: {token: {type: s3, region: x}}",
        "connections: {c: {type: s3, access_key_id: AKIA, secret_access_key: {env: S}}}",
        "connections: {c: {type: s3, secret_access_key: }}",
        "spark: {conf: {spark.sql.shuffle.partitions: 4, spark.kubernetes.authenticate.serviceAccountName: x}}",
        "spark: {remote: 'sc://host:1/;user_id=me'}",
    ],
)
def test_names_that_only_look_like_secrets_are_fine(make: Make, text: str) -> None:
    assert make(platform=text).errors == []


def test_a_secret_among_a_readers_options_is_refused(make: Make) -> None:
    flow = "source: {type: files, path: x, format: csv, options: {password: hunter2, sep: ';'}}\nwatermark: {type: path}\n"
    (error,) = make(flow).errors
    assert (error.key, error.actual) == ("source.options.password", "a secret in plain text")


def test_a_wrong_value_beside_a_url_with_a_password_does_not_show_it(make: Make) -> None:
    errors = make(platform=f"lake: ftp://user:{SECRET}@host/x\n").errors
    assert errors
    assert SECRET not in str(errors)


def test_a_project_is_valid_without_its_secrets(make: Make) -> None:
    project = make(S3_FLOW, platform=LAND)
    assert project.errors == []


def test_a_connection_has_its_secrets_when_it_is_used(make: Make) -> None:
    project = make(S3_FLOW, platform=LAND, environment=ENVIRONMENT)
    place = project.source_place(project.dataflows["flow"])
    assert isinstance(place, Place)
    assert place.url == "s3://bucket/in"
    connection = place.connection
    assert connection is not None
    assert (
        connection.endpoint,
        connection.region,
        connection.access_key_id,
        connection.secret_access_key,
        connection.session_token,
    ) == (
        "http://127.0.0.1:8333",
        "eu-west-1",
        "AKIA",
        SECRET,
        None,
    )
    assert SECRET not in repr(place) + repr(project) + str(project)


@pytest.mark.parametrize("environment", [{}, {**ENVIRONMENT, "SECRET_KEY": ""}])
def test_an_unset_secret_is_named_at_its_use(make: Make, environment: dict[str, str]) -> None:
    project = make(S3_FLOW, platform=LAND, environment={"REGION": "x", "KEY_ID": "y"} | environment)
    with pytest.raises(
        ConfigurationError, match=r"connections\.land\.secret_access_key: .* variable SECRET_KEY"
    ):
        project.source_place(project.dataflows["flow"])


def test_the_settings_show_variables_and_not_their_texts(make: Make) -> None:
    project = make(
        platform="spark: {conf: {spark.authenticate.secret: {env: S}, a: b}}\nlake: {env: LAKE}\n",
        environment={"S": SECRET, "LAKE": "/somewhere/else"},
    )
    assert project.errors == []
    assert project.spark_settings.conf["spark.authenticate.secret"] == SECRET
    assert project.lake.url == "/somewhere/else"
    shown = (
        repr(project)
        + str(project.settings)
        + repr(project.spark_settings)
        + str(project.spark_settings.conf)
    )
    assert SECRET not in shown
    assert "/somewhere/else" not in repr(project)
    assert "{env: S}" in shown


def test_a_dataflow_shows_variables_and_not_their_texts(make: Make) -> None:
    project = make(
        "source: {type: files, path: {env: P}, format: csv, options: {sep: {env: SEP}}, extensions: [.csv, {env: E}]}\n"
        "watermark: {type: path, settle: {env: T}}\nowners: [{env: O}]\n",
        environment={"P": "/landing-place", "SEP": ";;;", "E": ".secretly", "T": "PT2S", "O": "team:hidden"},
    )
    assert project.errors == []
    flow = project.dataflows["flow"]
    assert (flow.files.path, flow.files.options["sep"], flow.files.endings) == (
        "/landing-place",
        ";;;",
        (".csv", ".secretly"),
    )
    assert flow.owners == ("team:hidden",)
    assert flow.path.settle.total_seconds() == 2
    for text in ("/landing-place", ";;;", ".secretly", "team:hidden"):
        assert text not in repr(project)


def test_errors_about_texts_of_the_environment_name_the_variable(make: Make) -> None:
    project = make(
        "source: {type: files, path: x, format: {env: F}}\n"
        "watermark: {type: path, partition_filter: {lookback: 1, prefix_template: {env: T}}}\n"
        "target: {table: {env: TABLE}}\nowners: [{env: O}]\n",
        environment={"F": "csvv-x", "T": "day=%Q-x", "TABLE": "nolayer-x", "O": "nobody-x"},
    )
    assert [error.actual for error in project.errors] == ["{env: F}", "%Q", "{env: TABLE}", "{env: O}"]
    for text in ("csvv-x", "day=%Q-x", "nolayer-x", "nobody-x"):
        assert text not in str([error.message for error in project.errors])


@pytest.mark.parametrize("environment", [{}, {"LANDING": ""}])
def test_an_unset_variable_is_an_error_with_its_line(make: Make, environment: dict[str, str]) -> None:
    flow = "watermark: {type: path}\nsource:\n  type: files\n  format: csv\n  path: {env: LANDING}\n"
    (error,) = make(flow, environment=environment).errors
    assert (error.line, error.key, error.actual, error.expected) == (
        5,
        "source.path",
        "{env: LANDING}",
        "the environment variable LANDING to be set and not empty",
    )


def test_a_mapping_with_a_key_env_is_a_mapping_where_one_is_expected(make: Make) -> None:
    flow = "source: {type: files, path: x, format: csv}\nwatermark: {type: path}\ntags: {env: production}\n"
    project = make(flow)
    assert project.errors == []
    assert project.dataflows["flow"].tags == {"env": "production"}


def test_a_number_does_not_come_from_the_environment(make: Make) -> None:
    flow = "source: {type: files, path: x, format: csv}\nwatermark: {type: path, max_slices: {env: N}}\n"
    (error,) = make(flow, environment={"N": "5"}).errors
    assert (error.key, error.actual, error.expected) == ("watermark.max_slices", "{env: N}", "a whole number")


def test_a_text_with_a_secret_from_elsewhere_can_be_cleaned(make: Make) -> None:
    project = make(S3_FLOW, platform=LAND, environment=ENVIRONMENT)
    assert project.hide(f"403 for key {SECRET} in eu-west-1") == "403 for key {env: SECRET_KEY} in eu-west-1"


def test_a_text_from_the_environment_is_a_text_whose_repr_hides_it() -> None:
    text = FromEnvironment("value", "NAME")
    assert (text, f"{text}", repr(text), text == "value") == ("value", "value", "{env: NAME}", True)
    again = pickle.loads(pickle.dumps(text))
    assert (again, repr(again)) == ("value", "{env: NAME}")


def test_a_reference_is_used_by_looking_it_up() -> None:
    assert resolve_text(None, "x", {}) is None
    assert resolve_text("plain", "x", {}) == "plain"
    assert resolve_text(EnvRef("A"), "x", {"A": "b"}) == "b"
