"""TLS to a database: what the URL says holds for Spark's driver and for the questions of a plan alike, and secrets of stores reach the driver."""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from partitions.errors import SourceError
from resources.spark.engine import SparkEngine
from tests.support.databases import DatabaseRows, rows_of
from tests.support.feed import answer_of
from tests.support.mariadb import MariaDB

STORE = "st0re-pw 7+%"

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs openssl: apt-get install openssl"
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a server's certificate for 127.0.0.1, one for another host, and a client's store."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(words: str, *more: str) -> None:
        subprocess.run(["openssl", *words.split(), *more], cwd=folder, check=True, capture_output=True)

    openssl("req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=tests -keyout ca.key -out ca.pem")
    for name, address in {"server": "IP:127.0.0.1", "other": "DNS:other.example", "client": "DNS:me"}.items():
        openssl(f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr")
        (folder / f"{name}.ext").write_text(f"subjectAltName={address}\n")
        openssl(
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile {name}.ext -out {name}.pem"
        )
    openssl("pkcs12 -export -in client.pem -inkey client.key -out client.p12 -passout", f"pass:{STORE}")
    return folder


@pytest.fixture(params=["server"])
def rows(request: pytest.FixtureRequest, mariadb: MariaDB, certificates: Path) -> Iterator[DatabaseRows]:
    """A table of a server that speaks TLS with one of the certificates, and a user whom it lets in by TLS only."""
    for name in ("server", "other", "ca"):  # the server runs as another user
        for end in ("pem", "key"):
            copy = mariadb.folder / f"{name}.{end}"
            shutil.copy(certificates / f"{name}.{end}", copy)
            copy.chmod(0o644)
    mariadb.stop()
    files = {"cert": f"{request.param}.pem", "key": f"{request.param}.key", "ca": "ca.pem"}
    mariadb.start(*(f"--ssl-{key}={mariadb.folder / name}" for key, name in files.items()))
    try:
        made = rows_of(mariadb)
        made.fill(3)
        made.user = made.reader()
        made.ask(f"ALTER USER {made.role(made.user[0])} REQUIRE SSL")
        yield made
    finally:
        mariadb.stop()
        mariadb.start()


@pytest.mark.parametrize("mode", ["sslMode=verify-full", "sslmode=VERIFY_IDENTITY", "useSSL=true"])
def test_a_server_is_verified_by_plan_and_read_whatever_the_case_of_the_parameter(
    tmp_path: Path, engine: SparkEngine, rows: DatabaseRows, certificates: Path, mode: str
) -> None:
    rows.parameters = f"?{mode}&serverSslCert={certificates / 'ca.pem'}"
    flow = rows.flow(tmp_path, engine)
    assert flow.run().rows == 3
    assert flow.ids == [1, 2, 3]


@pytest.mark.parametrize("rows", ["other"], indirect=True)
def test_a_server_of_another_name_is_refused_by_a_plan_unless_names_are_not_compared(
    tmp_path: Path, engine: SparkEngine, rows: DatabaseRows, certificates: Path
) -> None:
    ca = certificates / "ca.pem"
    rows.parameters = f"?sslMode=verify-full&serverSslCert={ca}"
    assert "certificate is not valid for '127.0.0.1'" in rows.flow(tmp_path / "full", engine).fail().message
    rows.parameters = f"?sslMode=verify-ca&serverSslCert={ca}"
    assert rows.flow(tmp_path / "ca", engine).run().rows == 3
    rows.parameters = f"?sslMode=verify-ca&serverSslCert={certificates / 'client.pem'}"
    assert "certificate verify failed" in rows.flow(tmp_path / "strange", engine).fail().message
    rows.parameters = "?sslMode=verify-ca&serverSslCert=/no/such.pem"
    assert "in PEM at serverSslCert" in rows.flow(tmp_path / "no", engine).fail().message


@pytest.mark.parametrize("name", ["keyStorePassword", "keystorepassword"])
def test_the_password_of_a_store_reaches_the_driver_and_is_shown_nowhere(
    tmp_path: Path,
    engine: SparkEngine,
    rows: DatabaseRows,
    certificates: Path,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    store = f"?sslMode=trust&keyStore={certificates / 'client.p12'}&{name}="
    rows.parameters = f"{store}st0re-pw+7%2B%25"
    flow = rows.flow(tmp_path / "right", engine)
    assert flow.run().rows == 3
    rows.parameters = f"{store}wr0ng-pw"
    error = rows.flow(tmp_path / "wrong", engine).fail()
    assert isinstance(error, SourceError)
    assert "client.p12" in error.message or "keystore" in error.message.lower()
    written = caplog.text + error.message + repr(rows.connection)
    assert not [secret for secret in (STORE, "st0re", "wr0ng") if secret in written]


@pytest.mark.full
def test_the_password_of_a_store_reaches_the_driver_of_an_embedded_spark(
    tmp_path: Path, engine: SparkEngine, rows: DatabaseRows, certificates: Path
) -> None:
    rows.parameters = (
        f"?sslMode=trust&keyStore={certificates / 'client.p12'}&keyStorePassword=st0re-pw+7%2B%25"
    )
    flow = rows.flow(tmp_path, SparkEngine())
    answer = answer_of(flow.feed.start("run", "flow"), 300)
    assert answer.code == 0, answer.err
    assert flow.ids == [1, 2, 3]
    assert "st0re" not in answer.out + answer.err
