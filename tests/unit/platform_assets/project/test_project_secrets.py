"""Secrets come from the environment, a file or a function only, and appear nowhere."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from partitions.errors import ConfigurationError
from platform_assets.project.references import EnvRef, ReferencedText, Secrets, reference_of
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place

if TYPE_CHECKING:
    from platform_assets.project import Project
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
    assert (key, "a secret in plain text", "{env: NAME}, {file: PATH} or {function: MODULE:NAME}") in [
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
    text = ReferencedText("value", "{env: NAME}")
    assert (text, f"{text}", repr(text), text == "value") == ("value", "value", "{env: NAME}", True)
    again = pickle.loads(pickle.dumps(text))
    assert (again, repr(again)) == ("value", "{env: NAME}")


def test_a_reference_is_used_by_looking_it_up(tmp_path: Path) -> None:
    secrets = Secrets({"A": "b"}, tmp_path)
    assert secrets.resolve(None, "x") is None
    assert secrets.resolve("plain", "x") == "plain"
    assert secrets.resolve(EnvRef("A"), "x") == "b"


ERP = """\
connections:
  erp: {type: jdbc, url: "jdbc:postgresql://h/db", user: me, password: PASSWORD}
"""


def password(project: Project) -> str:
    return dict(project.connection("erp", JdbcConnection).secrets)["password"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f"{SECRET}\n", SECRET),
        (f"{SECRET}\r\n", SECRET),
        (f" {SECRET}\n\n", f" {SECRET}\n"),
        (SECRET, SECRET),
    ],
)
def test_a_file_is_read_when_it_is_used_without_the_newline_at_its_end(
    make: Make, tmp_path: Path, content: str, text: str
) -> None:
    project = make(platform=ERP.replace("PASSWORD", "{file: secrets/erp}"))
    assert project.errors == []
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/erp").write_text(content, newline="")
    assert password(project) == text


def test_a_rotated_secret_counts_at_the_next_look_and_both_values_are_hidden(
    make: Make, tmp_path: Path
) -> None:
    project = make(platform=ERP.replace("PASSWORD", "{file: erp}"))
    for value in (SECRET, "another-secret"):
        (tmp_path / "erp").write_text(value)
        assert password(project) == value
    assert project.hide(f"{SECRET} and another-secret") == "{file: erp} and {file: erp}"
    assert SECRET not in repr(project)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "found No such file or directory"),
        (b"", "found an empty file"),
        (b"\n", "found an empty file"),
        (b"\xff", "found bytes that are not UTF-8"),
    ],
)
def test_a_file_without_a_text_is_named_at_its_use(
    make: Make, tmp_path: Path, content: bytes | None, why: str
) -> None:
    project = make(platform=ERP.replace("PASSWORD", "{file: erp}"))
    if content is not None:
        (tmp_path / "erp").write_bytes(content)
    with pytest.raises(ConfigurationError) as refused:
        password(project)
    assert refused.value.message == (
        f"platform.yaml: connections.erp.password: expected a file erp with a text, {why}: set it, or correct {{file: erp}} there"
    )


FUNCTION = '{function: "vault_x:secret", name: prod/erp}'


def vault(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    (folder / "vault_x.py").write_text(f"def secret(name):\n    {body}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "vault_x", raising=False)


def test_a_function_is_asked_when_it_is_used_and_again_after_30_seconds(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = "import pathlib; file = pathlib.Path(__file__).with_name('calls'); file.write_text(file.read_text() + 'x'); return name + file.read_text()"
    vault(tmp_path, monkeypatch, counting)
    (tmp_path / "calls").write_text("")
    now = [0.0]
    project = make(platform=ERP.replace("PASSWORD", FUNCTION))
    assert (project.errors, (tmp_path / "calls").read_text()) == ([], "")
    secrets = Secrets({}, tmp_path, clock=lambda: now[0])
    reference = reference_of({"function": "vault_x:secret", "name": "prod/erp"})
    assert reference is not None
    texts = []
    for seconds in (0, 29, 31, 60, 62):
        now[0] = seconds
        texts.append(secrets.look_up(reference))
    assert texts == ["prod/erpx", "prod/erpx", "prod/erpxx", "prod/erpxx", "prod/erpxxx"]
    assert password(project) == "prod/erpxxxx"
    hidden = project.hide("refused prod/erpxxxx")
    assert hidden == "refused {function: vault_x:secret, name: prod/erp}"
    assert (tmp_path / "calls").read_text() == "xxxx"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise PermissionError('not allowed')", "found an error: PermissionError: not allowed ("),
        ("return None", "found a NoneType"),
        ("return ''", "found an empty text"),
    ],
)
def test_a_function_without_a_text_is_named_at_its_use(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    vault(tmp_path, monkeypatch, body)
    with pytest.raises(ConfigurationError) as refused:
        password(make(platform=ERP.replace("PASSWORD", FUNCTION)))
    start = "platform.yaml: connections.erp.password: expected a text of the function vault_x:secret, "
    assert refused.value.message.startswith(start + why)


def test_a_function_that_does_not_exist_is_named_at_its_use(make: Make) -> None:
    project = make(platform=ERP.replace("PASSWORD", '{function: "no_such_module:secret"}'))
    with pytest.raises(
        ConfigurationError, match=r"connections\.erp\.password: function: expected a function at no_such"
    ):
        password(project)


def test_state_and_lake_take_a_file_and_no_function(make: Make, tmp_path: Path) -> None:
    (tmp_path / "where").write_text("./elsewhere\n")
    project = make(platform=f"state: {{file: where}}\nlake: {FUNCTION}\nformat: {{file: nowhere}}\n")
    assert [str(error) for error in project.errors] == [
        (
            "platform.yaml:2: lake: found {function: vault_x:secret, name: prod/erp}, expected {env: NAME} or {file: PATH}: a function is"
            " asked for connections and alerts only"
        ),
        (
            "platform.yaml:3: format: found {file: nowhere}, expected a file nowhere with a text (No such file or directory)"
        ),
    ]


def test_the_keys_of_a_bucket_are_looked_up_at_each_use(make: Make, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("one")
    project = make(
        platform="lake: {path: s3://bucket/lake, connection: land}\n"
        "connections: {land: {type: s3, region: r, access_key_id: k, secret_access_key: {file: key}}}\n"
    )
    lake = project.lake.child("bronze/flow")
    first_store = lake.store
    assert lake.store is first_store
    (tmp_path / "key").write_text("two")
    assert lake.spark_conf["fs.s3a.bucket.bucket.secret.key"] == "two"
    assert lake.storage_options["aws_secret_access_key"] == "two"
    assert lake.pyiceberg_options["s3.secret-access-key"] == "two"
    assert lake.store is not first_store


@pytest.mark.parametrize(
    "value",
    ["{file: a, env: b}", "{env: }", "{function: no_colon}", "{function: 'm:f', list: [1]}", "{vault: x}"],
)
def test_another_mapping_is_no_reference(make: Make, value: str) -> None:
    (error,) = make(platform=ERP.replace("PASSWORD", value)).errors
    assert error.key is not None
    assert error.key.startswith("connections.erp.password")
    assert "{env: NAME}, {file: PATH} or {function: MODULE:NAME}" in error.expected


def test_the_webhook_of_alerts_may_be_a_file(make: Make, tmp_path: Path) -> None:
    project = make(platform="alerts: {webhook: {file: hook}}\n")
    (tmp_path / "hook").write_text("https://hooks.example/T0/secret-part\n")
    alerts = project.settings.alerts
    assert alerts is not None
    assert project.webhook(alerts.webhook).host == "hooks.example"
    assert project.hide("POST https://hooks.example/T0/secret-part") == "POST {file: hook}"
