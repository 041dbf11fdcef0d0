"""A package that only some projects need is named, with the command that installs it, where it is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from partitions.errors import ConfigurationError
from platform_assets.project import load_project
from resources import drivers
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.sources.files.workbook import find_sheets
from resources.sources.jdbc.client import client


@pytest.fixture(autouse=True)
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the extras are not installed."""
    monkeypatch.setattr(drivers, "find_spec", lambda module: None)


def open_database(url: str) -> None:
    with client(JdbcConnection.parse(url=url, user="u", password="secret")):
        pass


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (
            lambda: Database.parse("postgresql://h/d"),
            "PostgreSQL: expected the Python package psycopg, found none. Install it: pip install 'strandline[postgres]'",
        ),
        (
            lambda: open_database("jdbc:postgresql://h/d"),
            "PostgreSQL: expected the Python package psycopg, found none. Install it: pip install 'strandline[postgres]'",
        ),
        (
            lambda: open_database("jdbc:mariadb://h/d"),
            "MariaDB and MySQL: expected the Python package pymysql, found none. Install it: pip install 'strandline[mysql]'",
        ),
        (
            lambda: find_sheets(Place.parse(str(Path(__file__).parent), Path()), Path(__file__).name),
            "Excel and OpenDocument files: expected the Python package python-calamine, found none. Install it: pip install 'strandline[excel]'",
        ),
    ],
    ids=["state", "PostgreSQL", "MariaDB", "Excel"],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    use: Callable[[], object], text: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        use()
    assert caught.value.message == text


def test_a_project_without_them_loads(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/a.yaml").write_text(
        "source: {type: files, path: ./a, format: ndjson}\nwatermark: {type: path}\ntarget: {load: append}\n"
    )
    assert load_project(tmp_path).errors == []


def test_a_project_says_what_its_state_needs(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("state: postgresql://h/d\n")
    with pytest.raises(ConfigurationError, match=r"pip install 'strandline\[postgres\]'"):
        load_project(tmp_path)


def test_a_project_loads_although_another_environment_needs_one(tmp_path: Path) -> None:
    for name in ("platform.yaml", "platform.dev.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "platform.prod.yaml").write_text("state: postgresql://h/d\n")
    assert load_project(tmp_path, env="dev").errors == []
