"""The demo's servers: a database of weather, planes and airlines, and an HTTP API of airports.

Both listen on the ports that ``platform.yaml`` names. ``python -m scripts.sources COMMAND`` runs them with
the whole year for ``make ui``, as
long as COMMAND runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from urllib.parse import urlsplit

from platform_assets.installation import ROOT
from platform_assets.project import load_project
from platform_assets.project.project import Project
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from scripts.airports import Airports, answering
from scripts.fleet import Fleet
from scripts.postgres import running
from scripts.weather import NEW_YORK, Weather

ALL = datetime(2014, 1, 2, tzinfo=NEW_YORK)

_DATABASE, _API = "aviation", "directory"
_ROLE = "CREATE ROLE reader LOGIN; ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader"


@dataclass(frozen=True)
class Ports:
    """Ports of the loopback interface."""

    database: int
    api: int

    @classmethod
    def of(cls, project: Project) -> Self:
        """Return the ports that a project's connections name."""
        database = project.connection(_DATABASE, JdbcConnection)
        api = project.connection(_API, ApiConnection)
        return cls(int(database.libpq["port"]), urlsplit(api.base_url).port or 80)


@dataclass(frozen=True)
class Sources:
    """The running sources, which can be changed."""

    weather: Weather
    fleet: Fleet
    airports: Airports


@contextmanager
def serving(ports: Ports) -> Iterator[Sources]:
    """Run the database and the API, readable by all users of this machine.

    The database has no weather, planes or airlines yet.
    """
    for name in (
        "no_proxy",
        "NO_PROXY",
    ):  # of this process and its children: a proxy would look for the API elsewhere
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1"]))
    airports = Airports()
    with answering(airports, ports.api), running(ports.database, trusted=True) as server:
        server.ask("CREATE DATABASE {database}", database=_DATABASE)
        with server.session(_DATABASE) as session:
            session.execute(_ROLE)
        url = server.url(_DATABASE)
        yield Sources(Weather(url), Fleet(url), airports)


def main() -> int:
    """Run a command with the sources. The end of this process ends the command, and then the sources."""
    with serving(Ports.of(load_project(ROOT / "platform_assets"))) as sources:
        sources.weather.measure(ALL)
        sources.fleet.register(ALL)
        command = subprocess.Popen(sys.argv[1:])
        signal.signal(signal.SIGTERM, lambda *_: command.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command, too
        return command.wait()


if __name__ == "__main__":
    sys.exit(main())
