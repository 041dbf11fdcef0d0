"""Databases that are read through JDBC: where one is, who asks, and which driver speaks to it.

Belongs here: the words of URLs and drivers. Does not belong here: SQL (``resources.dialects``) and reading (``resources.readers``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, unquote_plus

from partitions.errors import ConfigurationError
from resources.spark_runtime import MARIADB_PACKAGE, POSTGRESQL_PACKAGE

System = Literal["postgresql", "mariadb"]

WANTED = "jdbc:postgresql://host:port/database or jdbc:mariadb://host:port/database"

_URL = re.compile(r"jdbc:(postgresql|mariadb|mysql):((?:[a-z]+:)?)//([^/?#\s]*)/([^?#\s]*)(?:\?(\S*))?")
_SYSTEMS: dict[str, System] = {"postgresql": "postgresql", "mariadb": "mariadb", "mysql": "mariadb"}
_SECRET = re.compile(r"(?i)password|passwd|pwd|secret|token")
_SHORTEST_HIDDEN = 4
_COMMON = {
    "preferTimestampNTZ": "true",
    "fetchsize": "10000",  # PostgreSQL's driver would hold the whole answer in memory
}
_OPTIONS: dict[System, dict[str, str]] = {
    "postgresql": {
        "driver": "org.postgresql.Driver",
        # Else it is the zone of the machine that Spark happens to run on.
        "sessionInitStatement": "SET TIME ZONE 'UTC'",
    },
    "mariadb": {
        "driver": "org.mariadb.jdbc.Driver",
        "sessionInitStatement": "SET time_zone = '+00:00'",
    },
}
_PARAMETERS: dict[System, dict[str, str]] = {
    "postgresql": {
        "connectTimeout": "10",
        "socketTimeout": "3600",
        "tcpKeepAlive": "true",
        "ApplicationName": "strandline",
    },
    "mariadb": {"connectTimeout": "10000", "socketTimeout": "3600000", "tcpKeepAlive": "true"},
}
"""Of the driver, for what the URL does not say. They stand in the URL: a Connect server gives the names of options to the driver in lower case."""


@dataclass(frozen=True)
class JdbcConnection:
    """A database and who asks it. No text of it shows a password.

    Attributes:
        system: whose SQL it speaks; MySQL's is MariaDB's.
        url: without user, password and other secrets.
        shown: the address for people.
        user: None if the database wants none.
        secrets: options that must not be shown, the password among them.
    """

    system: System
    url: str = field(repr=False)
    shown: str
    user: str | None = None
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str, user: str | None = None, password: str | None = None) -> JdbcConnection:
        """Read a URL; what it says of user and password gives way to the arguments.

        Raises:
            ConfigurationError: for another form. Does not repeat the URL: it may hold a password.
        """
        match = _URL.fullmatch(url)
        if match is None or "@" in match[3]:
            raise ConfigurationError(f"expected {WANTED}, found a URL of another form")
        system, mode, hosts, database = _SYSTEMS[match[1]], match[2], match[3], match[4]
        named = [(each.partition("=")[0], each) for each in (match[5] or "").split("&") if each]
        secrets = {name: unquote_plus(each.partition("=")[2]) for name, each in named if _SECRET.search(name)}
        users = [unquote_plus(each.partition("=")[2]) for name, each in named if name == "user"]
        kept = [each for name, each in named if name != "user" and name not in secrets]
        if system == "mariadb":
            # Spark knows the dialect by the scheme jdbc:mysql only, and quotes columns as texts by any other.
            kept.append("permitMysqlScheme")
        given = secrets | ({"password": password} if password is not None else {})
        address = f"jdbc:{'mysql' if system == 'mariadb' else system}:{mode}//{hosts}/{database}"
        return cls(
            system,
            f"{address}?{'&'.join(kept)}" if kept else address,
            f"{match[1]}://{hosts}/{database}",
            user if user is not None else (users[-1] if users else None),
            tuple(sorted(given.items())),
        )

    @property
    def package(self) -> str:
        """The driver's Maven coordinates."""
        return POSTGRESQL_PACKAGE if self.system == "postgresql" else MARIADB_PACKAGE

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader, secrets among them. Spark shows none of them in a plan."""
        named = {"user": self.user} if self.user is not None else {}
        return {**_COMMON, **_OPTIONS[self.system], "url": self._driver_url, **named, **dict(self.secrets)}

    @property
    def _driver_url(self) -> str:
        address, _, query = self.url.partition("?")
        said = query.split("&") if query else []
        names = {each.partition("=")[0] for each in said}
        usual = [f"{name}={value}" for name, value in _PARAMETERS[self.system].items() if name not in names]
        return f"{address}?{'&'.join([*said, *usual])}"

    @property
    def libpq(self) -> dict[str, str]:
        """The same address in libpq's words, as far as both know them."""
        hosts, _, database = self.shown.partition("://")[2].partition("/")
        servers = [_server(each) for each in hosts.split(",")]
        parameters = dict(each.partition("=")[::2] for each in self.url.partition("?")[2].split("&"))
        settings = {
            "host": ",".join(host for host, _ in servers),
            "port": ",".join(port for _, port in servers),
            "dbname": unquote(database),
            "user": self.user,
            "password": dict(self.secrets).get("password"),
            "sslmode": parameters.get("sslmode") or ("require" if parameters.get("ssl") == "true" else None),
            "sslrootcert": parameters.get("sslrootcert"),
            "options": f"-c search_path={parameters['currentSchema']}"
            if "currentSchema" in parameters
            else None,
        }
        return {name: value for name, value in settings.items() if value}

    @property
    def mysql(self) -> tuple[list[tuple[str, int]], dict[str, Any]]:
        """The servers in their order, and the rest of the address in PyMySQL's words, as far as both know them."""
        hosts, _, database = self.shown.partition("://")[2].partition("/")
        servers = [_server(each, "3306") for each in hosts.split(",")]
        parameters = dict(each.partition("=")[::2] for each in self.url.partition("?")[2].split("&"))
        mode = parameters.get("sslMode", "trust" if parameters.get("useSsl") == "true" else "disable")
        verified: dict[str, Any] = {"ssl_verify_cert": True, "ssl_verify_identity": mode == "verify-full"}
        safe: dict[str, Any] = {} if mode == "disable" else {"ssl": {}} if mode == "trust" else verified
        ca = {"ssl_ca": parameters["serverSslCert"]} if safe and "serverSslCert" in parameters else {}
        password = dict(self.secrets).get("password")
        given = {"database": unquote(database), "user": self.user, "password": password, **safe, **ca}
        return [(host, int(port)) for host, port in servers], {
            name: value for name, value in given.items() if value is not None
        }

    def hide(self, text: str) -> str:
        """A text with all secrets replaced, whatever library put them there."""
        for _, secret in sorted(self.secrets, key=lambda named: len(named[1]), reverse=True):
            if len(secret) >= _SHORTEST_HIDDEN:
                text = text.replace(secret, "***")
        return text

    def __str__(self) -> str:
        """The address, which holds no secret."""
        return self.shown


def _server(text: str, default: str = "5432") -> tuple[str, str]:
    """Host and port, ``[::1]:5432`` too."""
    host, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "")
    return host.strip("[]") or "localhost", port or default
