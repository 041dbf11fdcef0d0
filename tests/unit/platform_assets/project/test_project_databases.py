"""A state in PostgreSQL, as the settings say it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from platform_assets.platform import build_platform
from resources.connections.postgres import Database

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

SECRET = "hunter2-and-more"
URL = f"postgresql://me:{SECRET}@host:5433/db?schema=mine"
PLATFORMS = ["state: {env: STATE}\n", "state: {path: {env: STATE}}\n"]


@pytest.mark.parametrize(
    "text",
    ["state: postgresql://host/db\n", "state: {path: postgresql://host/db}\n", "state: {env: STATE}\n"],
)
def test_state_may_be_a_database(make: Make, text: str) -> None:
    project = make(platform=text, environment={"STATE": "postgresql://host/db"})
    assert project.errors == []
    assert project.state == Database.parse("postgresql://host/db")


@pytest.mark.parametrize("text", PLATFORMS)
def test_its_password_comes_from_the_environment_and_is_shown_nowhere(make: Make, text: str) -> None:
    project = make(platform=text, environment={"STATE": URL})
    assert project.errors == []
    assert project.state == Database.parse(URL)
    assert SECRET not in f"{project!r} {project} {project.settings!r} {project.state!r} {project.state}"
    assert project.hide(f"no: {SECRET}") == "no: ***"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@host/db",
        f"postgresql://:{SECRET}@host/db",
        f"postgresql://host/db?user=me&password={SECRET}",
        f"postgresql://host/db?sslpassword={SECRET}",
    ],
)
@pytest.mark.parametrize("form", ["state: '{}'\n", "state: {{path: '{}'}}\n"])
def test_a_literal_password_is_refused_and_not_shown(make: Make, form: str, url: str) -> None:
    (error,) = make(platform=form.format(url)).errors
    assert error.actual == "a secret in plain text"
    assert SECRET not in error.message


@pytest.mark.parametrize(
    ("text", "key", "found", "expected"),
    [
        (
            "state: postgresql://me:ses/same@host/db\n",
            "state",
            "an address of another form; write / ? @ in a password as %2F %3F %40",
            "postgresql://host/database",
        ),
        ("state: {path: postgresql://host/db?shema=x}\n", "state.path", "the parameter shema, which libpq does not know", "postgresql://host/database"),
        (
            "state: {path: postgresql://host/db, connection: land}\nconnections: {land: {type: s3}}\n",
            "state.connection",
            "the connection land with a database",
            "no connection: libpq's PG* variables complete the address",
        ),
        ("lake: postgresql://host/db\n", "lake", "postgresql://host/db", "a folder or s3://bucket/prefix"),
        ("state: mysql://host/db\n", "state", "mysql://host/db", "a folder, s3://bucket/prefix or postgresql://host/database"),
    ],
)  # fmt: skip
def test_an_invalid_address_of_a_database_is_refused(
    make: Make, text: str, key: str, found: str, expected: str
) -> None:
    (error,) = make(platform=text).errors
    assert (error.key, error.actual, error.expected) == (key, found, expected)


def test_a_misspelt_scheme_gets_the_right_one_as_a_hint(make: Make) -> None:
    (error,) = make(platform="state: postgressql://host/db\n").errors
    assert error.nearest == "postgresql"


def test_a_wrong_address_from_the_environment_is_not_shown(make: Make) -> None:
    (error,) = make(
        platform="state: {env: STATE}\n", environment={"STATE": f"postgresql://me:{SECRET}/db"}
    ).errors
    assert SECRET not in error.message


def test_a_project_with_another_state_never_imports_the_driver(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("state: ./state\n")
    code = (
        "import sys; from pathlib import Path; from platform_assets.project import load_project\n"
        "from platform_assets.platform import build_platform\n"
        f"print(build_platform(load_project(Path({str(tmp_path)!r}))).log.newest('flow'), 'psycopg' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "False"]


def test_nothing_is_opened_before_the_log_is_asked(make: Make) -> None:
    project = make(platform="state: postgresql://no-such-host.invalid/db\n")
    assert build_platform(project).log is not None
