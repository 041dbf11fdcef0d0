"""A real MariaDB for tests: Debian's server as a child process on the loopback interface."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from resources.connections.jdbc import JdbcConnection
from resources.spark.connect_server import free_port

_SERVER, _MAKER = "mariadbd", "mariadb-install-db"
_PATIENCE = 60
_STARTS = 5


@dataclass
class MariaDB:
    """A server.

    Attributes:
        folder: its data and log.
        port: its port on 127.0.0.1.
        password: the password of the user ``tests``, who may do everything.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_hex(12))
    _process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Create its data folder, and the user."""
        installed = self._popen(
            str(_program(_MAKER)),
            "--no-defaults",
            f"--datadir={self._data}",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )
        if installed.wait(_PATIENCE):
            raise OSError(f"{_MAKER} made no database: {self.log}")
        statements = (
            f"CREATE USER IF NOT EXISTS tests@'localhost' IDENTIFIED BY '{self.password}'",
            "GRANT ALL ON *.* TO tests@'localhost' WITH GRANT OPTION",
            "CREATE DATABASE IF NOT EXISTS shop",
        )
        # One statement a line is what the server reads.
        (self.folder / "init.sql").write_text("".join(f"{statement};\n" for statement in statements))
        self.start(f"--init-file={self.folder / 'init.sql'}")

    def start(self, *options: str) -> None:
        """Start it, and wait until it accepts a connection.

        MariaDB may end by SIGSEGV if clients connect while it starts (a run that retries); it is then
        started again.
        """
        for _ in range(_STARTS):
            if self._starts(*options):
                return
        raise OSError(
            f"MariaDB on port {self.port} was killed by a signal at each of {_STARTS} starts: {self.log}"
        )

    def _starts(self, *options: str) -> bool:
        """Return whether it started; False if a signal ended it."""
        self._process = self._popen(
            str(_program(_SERVER)),
            "--no-defaults",
            f"--datadir={self._data}",
            f"--tmpdir={self.folder}",  # servers that share one remove each other's temporary tables
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=8M",
            "--default-time-zone=+05:30",  # of which nothing may show
            *options,
        )
        deadline = time.monotonic() + _PATIENCE
        while (code := self._process.poll()) is None:
            if self._answers():
                return True
            if time.monotonic() > deadline:
                raise TimeoutError(f"MariaDB on port {self.port} does not respond: {self.log}")
            time.sleep(0.05)
        if code >= 0:
            raise OSError(f"MariaDB on port {self.port} ended with code {code}: {self.log}")
        return False

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(_PATIENCE)
            self._process = None

    @property
    def url(self) -> str:
        """Return the address for JDBC."""
        return f"jdbc:mariadb://127.0.0.1:{self.port}/shop"

    @property
    def connection(self) -> JdbcConnection:
        """Return the connection of a dataflow."""
        return JdbcConnection.parse(self.url, "tests", self.password)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, with times in UTC."""
        with self.session() as session, session.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(statement, values or None)
            session.commit()
            return list(cursor.fetchall())

    @property
    def log(self) -> str:
        """Return the end of its output."""
        return (self.folder / "log").read_text()[-3000:]

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def session(self) -> Any:
        """Return a connection of its own, for work that takes several statements."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="tests",
            password=self.password,
            database="shop",
            charset="utf8mb4",
        )

    def _answers(self) -> bool:
        try:
            self.session().close()
        except pymysql.Error:
            return False
        return True

    def _popen(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command, as another user if this one is root, which MariaDB refuses."""
        account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
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
                env={"TZ": "UTC", "PATH": _PATH},
                **user,
            )


_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


def available() -> bool:
    """Return whether Debian's package is installed."""
    return all(shutil.which(name, path=_PATH) for name in (_SERVER, _MAKER))


def _program(name: str) -> Path:
    program = shutil.which(name, path=_PATH)
    assert program is not None
    return Path(program)


@contextmanager
def running() -> Iterator[MariaDB]:
    """Run a server with new data; stop and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-mariadb-"))
    server = MariaDB(folder)
    try:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        server.make()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
