"""A real S3 for tests: SeaweedFS as a child process on the loopback interface.

It differs from S3 in one thing that matters here: it lists folder by folder, see
``partitions.path.order``.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from resources.connections.places import Place, S3Connection
from tests.support.ready import answers, wait_until_ready

_REGION = "us-east-1"
_READY_SECONDS = 60
_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)
# One volume file a bucket: by default each new bucket takes seven of the volumes there are.
_GROWTH = "[master.volume_growth]\ncopy_1 = 1\ncopy_other = 1\n"


@dataclass(frozen=True)
class Seaweed:
    """A running server.

    Attributes:
        port: the port of its S3 interface on 127.0.0.1.
    """

    port: int
    access_key_id: str
    secret_access_key: str

    @property
    def connection(self) -> S3Connection:
        """Return a connection to it."""
        return self.through(self.port)

    def through(self, port: int) -> S3Connection:
        """Return a connection through a proxy on another port."""
        return S3Connection(f"http://127.0.0.1:{port}", _REGION, self.access_key_id, self.secret_access_key)

    def client(self) -> Any:
        """Return a boto3 client, for buckets and odd keys."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.connection.endpoint,
            region_name=_REGION,
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
            config=Config(
                s3={"addressing_style": "path"},
                retries={"max_attempts": 1},
                connect_timeout=5,
                read_timeout=20,
            ),
        )

    @contextmanager
    def bucket(self) -> Iterator[Place]:
        """Yield a new bucket, removed at the end with all its objects."""
        client, name = self.client(), f"test-{uuid4().hex[:12]}"
        client.create_bucket(Bucket=name)
        try:
            yield Place(f"s3://{name}", self.connection)
        finally:
            client.delete_bucket(Bucket=name)


@dataclass
class Store:
    """A server that may be stopped and started, on the data that it has.

    Attributes:
        folder: its settings, data and log.
        ports: its ports by the name of the option; the same after every start.
        server: the connection to it.
    """

    folder: Path
    ports: dict[str, int]
    server: Seaweed
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it accepts objects.

        Raises:
            NotReady: after a minute, or if it ends by itself.
        """
        log = self.folder / "weed.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                _command(self.folder, self.ports),
                cwd=self.folder,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        # The S3 port answers before there is a volume to write to.
        url = f"http://127.0.0.1:{self.server.port}/"
        wait_until_ready(lambda: answers(url) and _writes(self.server), self._process, log, _READY_SECONDS)

    def kill(self) -> None:
        """Kill it: a polite end takes time."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            _remove_sockets(self.ports)

    def pause(self) -> None:
        """Answer nothing, and keep every connection."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again, also the requests that came meanwhile."""
        self._send(signal.SIGCONT)

    def _send(self, sent: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sent)


def prepared(folder: Path) -> Store:
    """Return a server that keeps everything in a folder, not started yet."""
    keys = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_hex(20)}
    identity = {
        "name": "tests",
        "credentials": [keys],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "data").mkdir()
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "master.toml").write_text(_GROWTH)
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    return Store(folder, ports, Seaweed(ports["s3.port"], keys["accessKey"], keys["secretKey"]))


@contextmanager
def stoppable(folder: Path) -> Iterator[Store]:
    """Run a server that keeps everything in a folder and may be stopped meanwhile."""
    store = prepared(folder)
    try:
        store.start()
        yield store
    finally:
        store.kill()


@contextmanager
def running(folder: Path) -> Iterator[Seaweed]:
    """Run a server that keeps everything in a folder."""
    with stoppable(folder) as store:
        yield store.server


def _command(folder: Path, ports: dict[str, int]) -> list[str]:
    weed = Path(sysconfig.get_path("scripts")) / ("weed.exe" if os.name == "nt" else "weed")
    return [
        str(weed),
        "-logtostderr",
        f"-config_dir={folder}",
        "server",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=400",
        "-volume.preStopSeconds=0",
        "-filer",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for socket_ in sockets:
            socket_.bind(("127.0.0.1", 0))
        return [int(socket_.getsockname()[1]) for socket_ in sockets]


def _writes(server: Seaweed) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    client = server.client()
    with suppress(BotoCoreError, ClientError):  # made by the try before this one, or not yet; the put tells
        client.create_bucket(Bucket="ready")
    try:
        client.put_object(Bucket="ready", Key="ready", Body=b"")
    except (BotoCoreError, ClientError):
        return False
    return True


def _remove_sockets(ports: dict[str, int]) -> None:
    """Remove the Unix sockets that SeaweedFS leaves in /tmp."""
    for port in ports.values():
        for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            path.unlink(missing_ok=True)
