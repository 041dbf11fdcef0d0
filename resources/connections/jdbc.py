"""Databases that are read through JDBC: address, user, driver.

Belongs here: the vocabulary of URLs and drivers. Does not belong here: SQL (``resources.dialects``) and
reading (``resources.sources.jdbc``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, unquote_plus

from partitions.errors import ConfigurationError
from resources.hiding import without_secrets
from resources.spark_runtime import MARIADB_PACKAGE, POSTGRESQL_PACKAGE

System = Literal["postgresql", "mariadb"]
TlsMode = Literal["trust", "verify-ca", "verify-full"]

EXPECTED_URL = "jdbc:postgresql://host:port/database or jdbc:mariadb://host:port/database"

_URL = re.compile(r"jdbc:(postgresql|mariadb|mysql):((?:[a-z]+:)?)//([^/?#\s]*)/([^?#\s]*)(?:\?(\S*))?")
_SYSTEMS: dict[str, System] = {"postgresql": "postgresql", "mariadb": "mariadb", "mysql": "mariadb"}
_SECRETS: dict[System, tuple[str, ...]] = {
    "postgresql": ("password", "sslpassword"),
    "mariadb": (
        "password",
        "keyStorePassword",
        "keyPassword",
        "trustStorePassword",
        "clientCertificateKeyStorePassword",
        "trustCertificateKeyStorePassword",
    ),
}
"""The drivers' secret parameters, which Spark gets as options. A Connect server passes them on in lower case: PostgreSQL's driver knows no other
spelling, and MariaDB's takes any."""
_LIKE_SECRET = re.compile(r"(?i)password|passwd|pwd|secret|token")
_NO_SECRETS = frozenset({"sslpasswordcallback", "passwordcharacterencoding", "disconnectonexpiredpasswords"})
_TRUST_STORES = ("truststore", "trustcertificatekeystoreurl")
_TLS_MODES: dict[str, TlsMode | None] = {
    "disable": None,
    "disabled": None,
    "trust": "trust",
    "required": "trust",
    "verify-ca": "verify-ca",
    "verify_ca": "verify-ca",
    "verify-full": "verify-full",
    "verify_full": "verify-full",
    "verify_identity": "verify-full",
}
"""By the values of ``sslMode`` that MariaDB's driver accepts."""
_COMMON = {
    "preferTimestampNTZ": "true",
    "fetchsize": "10000",  # PostgreSQL's driver would hold the whole answer in memory
}
_OPTIONS: dict[System, dict[str, str]] = {
    "postgresql": {
        "driver": "org.postgresql.Driver",
        # Else the zone is that of the machine that Spark happens to run on, and the form of bytes and floats is the role's.
        "sessionInitStatement": "SET TIME ZONE 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 3",
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
"""The driver's parameters where the URL sets none. They go into the URL, since a Connect server passes options to the driver in lower case."""


@dataclass(frozen=True)
class JdbcConnection:
    """A database and its user. No text of it shows a password.

    Attributes:
        system: the system whose SQL it speaks; MySQL counts as MariaDB.
        url: the JDBC URL, without user, password and other secrets.
        display_url: the address for people.
        user: None if the database needs none.
        secrets: options that must not be shown, such as the password.
    """

    system: System
    url: str = field(repr=False)
    display_url: str
    user: str | None = None
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str, user: str | None = None, password: str | None = None) -> JdbcConnection:
        """Parse a URL; the arguments override its user and password.

        Raises:
            ConfigurationError: another form, or parameters that cannot work. It never repeats the URL,
            which may contain a password.
        """
        match = _URL.fullmatch(url)
        if match is None or "@" in match[3]:
            raise ConfigurationError(f"expected {EXPECTED_URL}, found a URL of another form")
        system, mode, hosts, database = _SYSTEMS[match[1]], match[2], match[3], match[4]
        spelled = {name.lower(): name for name in _SECRETS[system]}
        other_parameters, secrets, users = list[str](), dict[str, str](), list[str]()
        for parameter in filter(None, (match[5] or "").split("&")):
            name, _, value = parameter.partition("=")
            if name.lower() in spelled:
                secrets[spelled[name.lower()]] = unquote_plus(value)
            elif name.lower() == "user":
                users.append(unquote_plus(value))
            elif _LIKE_SECRET.search(name) and name.lower() not in _NO_SECRETS:
                raise ConfigurationError(
                    f"expected only secrets that the driver knows in the URL: {', '.join(_SECRETS[system])}; found the parameter {name}"
                )
            else:
                other_parameters.append(parameter)
        if system == "mariadb":
            _check_tls(other_parameters)
            # Spark knows the dialect by the scheme jdbc:mysql only, and quotes columns as texts by any other.
            other_parameters.append("permitMysqlScheme")
        all_secrets = secrets | ({"password": password} if password is not None else {})
        address = f"jdbc:{'mysql' if system == 'mariadb' else system}:{mode}//{hosts}/{database}"
        return cls(
            system,
            f"{address}?{'&'.join(other_parameters)}" if other_parameters else address,
            f"{match[1]}://{hosts}/{database}",
            user if user is not None else (users[-1] if users else None),
            tuple(sorted(all_secrets.items())),
        )

    @property
    def package(self) -> str:
        """The driver's Maven coordinates."""
        return POSTGRESQL_PACKAGE if self.system == "postgresql" else MARIADB_PACKAGE

    @property
    def options(self) -> dict[str, str]:
        """The options of Spark's reader, including secrets. Spark shows none of them in a plan."""
        named = {"user": self.user} if self.user is not None else {}
        return {**_COMMON, **_OPTIONS[self.system], "url": self._driver_url, **named, **dict(self.secrets)}

    @property
    def _driver_url(self) -> str:
        address, _, query = self.url.partition("?")
        parameters = query.split("&") if query else []
        names = {parameter.partition("=")[0] for parameter in parameters}
        usual = [f"{name}={value}" for name, value in _PARAMETERS[self.system].items() if name not in names]
        return f"{address}?{'&'.join([*parameters, *usual])}"

    @property
    def libpq(self) -> dict[str, str]:
        """The same address in libpq's vocabulary, as far as both have the settings."""
        hosts, _, database = self.display_url.partition("://")[2].partition("/")
        servers = [_server(parameter) for parameter in hosts.split(",")]
        parameters = {
            name: unquote_plus(value)
            for name, _, value in (parameter.partition("=") for parameter in self._parameters)
        }
        schema = re.sub(r"([\\\s])", r"\\\1", parameters.get("currentSchema", ""))
        options = [parameters.get("options", ""), f"-c search_path={schema}" if schema else ""]
        settings = {
            "host": ",".join(host for host, _ in servers),
            "port": ",".join(port for _, port in servers),
            "dbname": unquote(database),
            "user": self.user,
            "password": dict(self.secrets).get("password"),
            "sslmode": parameters.get("sslmode") or ("require" if parameters.get("ssl") == "true" else None),
            "sslrootcert": parameters.get("sslrootcert"),
            "options": " ".join(filter(None, options)),
        }
        return {name: value for name, value in settings.items() if value}

    @property
    def session_variables(self) -> str | None:
        """The SET clause of MariaDB's driver at the start of a session; None if the URL has none."""
        return _lowered(self._parameters).get("sessionvariables", "").replace(";", ",") or None

    @property
    def _parameters(self) -> Sequence[str]:
        """The parameters of the URL. PostgreSQL's driver unescapes their values, MariaDB's does not."""
        return self.url.partition("?")[2].split("&")

    @property
    def mysql(self) -> tuple[list[tuple[str, int]], dict[str, Any]]:
        """The servers in order, and the rest of the address in PyMySQL's vocabulary."""
        hosts, _, database = self.display_url.partition("://")[2].partition("/")
        servers = [_server(server, "3306") for server in hosts.split(",")]
        password = dict(self.secrets).get("password")
        settings = {"database": unquote(database), "user": self.user, "password": password}
        return [(host, int(port)) for host, port in servers], {
            name: value for name, value in settings.items() if value is not None
        }

    @property
    def mysql_tls(self) -> tuple[TlsMode | None, str | None]:
        """The TLS mode of MariaDB's driver, and the file of trusted authorities; None: not set."""
        parameters = _lowered(self._parameters)
        return _tls_mode(parameters), parameters.get("serversslcert")

    def hide(self, text: str) -> str:
        """Return a text with the secrets of at least 4 letters replaced, whatever library put them there."""
        return without_secrets(text, [secret for _, secret in self.secrets], "***")

    def __str__(self) -> str:
        """Return the address, which contains no secret."""
        return self.display_url


def _lowered(parameters: Sequence[str]) -> dict[str, str]:
    """Return parameters by lower-case name, as MariaDB's driver reads them."""
    return {name.lower(): value for name, _, value in (parameter.partition("=") for parameter in parameters)}


def _tls_mode(parameters: Mapping[str, str]) -> TlsMode | None:
    if "sslmode" in parameters:
        return _TLS_MODES[parameters["sslmode"].lower()]
    if parameters.get("usessl", "false").lower() in ("false", "0"):
        return None
    if parameters.get("trustservercertificate") == "true":
        return "trust"
    return "verify-ca" if parameters.get("disablesslhostnameverification") == "true" else "verify-full"


def _check_tls(url_parameters: Sequence[str]) -> None:
    """Refuse TLS settings that Spark's driver and Python's do not both support.

    Raises:
        ConfigurationError: another ``sslMode``, or certificates in a form that only Java reads.
    """
    parameters = _lowered(url_parameters)
    mode = parameters.get("sslmode", "disable")
    if mode.lower() not in _TLS_MODES:
        raise ConfigurationError(
            f"expected sslMode disable, trust, verify-ca or verify-full in the URL, found {mode}"
        )
    store = next((name for name in _TRUST_STORES if name in parameters), None)
    if store and "serversslcert" not in parameters and _tls_mode(parameters) in ("verify-ca", "verify-full"):
        raise ConfigurationError(
            f"expected serverSslCert, a PEM file with the authority's certificate, in the URL, found {store} "
            "without it: Strandline plans without Java and cannot read Java's certificate stores"
        )


def _server(text: str, default: str = "5432") -> tuple[str, str]:
    """Return host and port, also from ``[::1]:5432``."""
    host, _, port = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "")
    return host.strip("[]") or "localhost", port or default
