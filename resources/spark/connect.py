"""Sessions on a Spark Connect server: one per run; they may share compiled code."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, cast
from weakref import WeakSet

from resources.spark import connect_private as private
from resources.spark.process import server_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as SparkConnectSession

    from resources.spark.retries import Outage

_remote_sessions: list[SparkSession] = []
"""Every remote session of this process, so that none is garbage-collected. A collected session shuts down a pool that all
sessions share, and waits for it. If another session submits to the pool at that moment, the process hangs (pyspark 4.1)."""
_sharing: WeakSet[SparkConnectSession] = WeakSet()
"""Sessions that share the compiled Java code of their server."""
_SHARED_CODE = {
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "false",
}
"""With both settings a session has no classes of its own, so it can share compiled code."""
_CONNECTING = ("grpc.min_reconnect_backoff_ms", 5_000)
"""How long an attempt to connect may take, as a gRPC option. With gRPC's own 20 s, a server that accepts connections but never answers
would take 40 s."""


def has_shared_code(session: SparkSession) -> bool:
    """Return whether the server keeps a query's compiled code for later runs, so compiling pays off."""
    return cast("SparkConnectSession", session) in _sharing


def open_session(server: str) -> SparkConnectSession:
    """Return a new session on a Connect server, without calling the server yet.

    It is built like pyspark's own builder does, which takes no options of the channel.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    return SparkSession.builder.channelBuilder(DefaultChannelBuilder(server, [_CONNECTING])).create()


def adopt_session(session: SparkConnectSession) -> None:
    """Make a session on a Connect server the one that this process works with."""
    from resources.spark.retries import OutagePolicy

    _remote_sessions.append(cast("SparkSession", session))
    private.make_active(session)
    session.client.set_retry_policies([OutagePolicy(outage_of_server(session))])
    private.forget_models_at_exit(session)


def outage_of_server(session: SparkConnectSession) -> Outage:
    """Return the outage that all calls to the session's server share."""
    from resources.spark.retries import outage_of

    return outage_of(server_of(session) or "")


def share_code(session: SparkConnectSession) -> SparkConnectSession:
    """Return a clone that shares the server's compiled code; release the given session.

    Otherwise the server compiles each query again in each session, since a user's classes might differ.
    Spark reads the decisive settings when a session starts, and only a clone starts with settings
    (docs/explanation/adr/0033). If a server lacks clones or these settings, the session is returned unchanged.
    """
    try:
        private.set_many(session, _SHARED_CODE)
        clone = session.cloneSession()
    except Exception:  # noqa: BLE001 - what only saves time must not end a run; of a server that is gone the next call tells
        return session
    clone.release_session_on_close = True  # pyspark's clone lacks it (pyspark 4.1)
    adopt_session(clone)
    _sharing.add(clone)
    threading.Thread(
        target=private.release_session, args=(session,), name="strandline-release", daemon=True
    ).start()
    return clone
