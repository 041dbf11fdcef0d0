"""The address of a PostgreSQL database, as libpq writes it, and Strandline's schema in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from urllib.parse import quote, unquote

from partitions.errors import ConfigurationError
from resources.drivers import require_driver
from resources.hiding import SHORTEST, without_secrets

SCHEMES = ("postgresql", "postgres")
"""The schemes of a database's address."""

EXPECTED_ADDRESS = "postgresql://host/database"

_SCHEMA = "strandline"
_LONGEST_NAME = 63
"""The shortest password to hide: a shorter one would match in many words."""


class AddressError(ConfigurationError):
    """An address that is refused. Its text never repeats the address, which may contain a password.

    Attributes:
        actual: the offending part, in words.
        expected: in words.
    """

    def __init__(self, actual: str, expected: str = EXPECTED_ADDRESS) -> None:
        """Keep the parts for the error of a project file."""
        super().__init__(f"expected {expected}, found {actual}")
        self.actual, self.expected = actual, expected


@dataclass(frozen=True)
class Database:
    """A database, and the schema in it for a project's log. No text of it shows a password.

    Attributes:
        url: libpq's, without our parameter ``schema``. The PG* variables fill in missing parts.
        schema: schema of this project alone, so that several can share a database.
        display_url: the address for people, without user and password.
        passwords: escaped as in the address, and unescaped.
    """

    url: str = field(repr=False)
    schema: str
    display_url: str
    passwords: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> Database:
        """Parse ``postgresql://user:password@host:port/database?schema=NAME`` with any parameters of libpq.

        Raises:
            AddressError: another form, an unknown parameter, or an impossible schema.
        """
        scheme, _, rest = text.partition("://")
        address, _, query = rest.partition("?")
        if scheme not in SCHEMES or rest.count("@") > ("@" in re.split("[/?]", rest)[0]):
            raise AddressError("an address of another form; write / ? @ in a password as %2F %3F %40")
        named = [(parameter.partition("=")[0], parameter) for parameter in query.split("&") if parameter]
        schemas = [parameter.partition("=")[2] for name, parameter in named if name == "schema"]
        schema = _schema(unquote(schemas[-1])) if schemas else _SCHEMA
        other_parameters = "&".join(parameter for name, parameter in named if name != "schema")
        url = f"{scheme}://{address}?{other_parameters}" if other_parameters else f"{scheme}://{address}"
        fields = address_fields(url)
        display_url = _display_url(fields) + (f"?schema={quote(schema, safe='')}" if schemas else "")
        return cls(url, schema, display_url, _passwords(fields, address))

    def hide(self, text: str) -> str:
        """Return a text with the address's passwords of at least 4 letters replaced."""
        return without_secrets(text, self.passwords, "***")

    def __str__(self) -> str:
        """Return the address without user and password."""
        return self.display_url


def is_database(text: str) -> bool:
    """Return whether an address is a database's, valid or not."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme in SCHEMES


def address_fields(url: str) -> dict[str, str]:
    """Return the address as libpq parses it. Libpq's own message may quote the password."""
    require_driver("psycopg")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        fields = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError as error:
        unknown = re.search(r'invalid URI query parameter: "(\w+)"', str(error))
        raise AddressError(
            f"the parameter {unknown[1]}, which libpq does not know"
            if unknown
            else "an address that libpq does not accept"
        ) from None
    if not all(port.isdecimal() for port in fields.get("port", "").split(",") if port):
        raise AddressError("a port that is not a number")
    return fields


def _display_url(fields: dict[str, str]) -> str:
    hosts = [
        f"[{host}]" if ":" in host else quote(host, safe="") for host in fields.get("host", "").split(",")
    ]
    ports = fields.get("port", "").split(",")
    pairs = zip_longest(hosts, ports if len(ports) > 1 else ports * len(hosts), fillvalue="")
    servers = ",".join(f"{host}:{port}" if port else host for host, port in pairs)
    return f"postgresql://{servers}/{quote(fields.get('dbname', ''), safe='')}"


def _passwords(fields: dict[str, str], address: str) -> tuple[str, ...]:
    """Return the passwords, longest first, so that none is hidden only in part."""
    written = address.rpartition("@")[0].partition(":")[2]
    passwords = {written, fields.get("password", ""), fields.get("sslpassword", "")}
    return tuple(
        sorted((password for password in passwords if len(password) >= SHORTEST), key=len, reverse=True)
    )


def _schema(name: str) -> str:
    reserved = name.startswith("pg_") or name == "information_schema"
    if not name.isprintable() or not 1 <= len(name.encode()) <= _LONGEST_NAME or reserved:
        raise AddressError(
            "a schema that PostgreSQL does not allow",
            f"schema=NAME of 1 to {_LONGEST_NAME} bytes that does not begin with pg_",
        )
    return name
