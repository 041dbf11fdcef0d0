"""All that Strandline uses of pyspark beside its public API, most of it for Spark Connect (tried with pyspark 4.1).

A test fails on another version: look at each function here then.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.dataframe import DataFrame as SparkConnectDataFrame
    from pyspark.sql.connect.session import SparkSession as SparkConnectSession
    from pyspark.sql.types import StructType

TRIED_WITH = "4.1"
"""The minor version of pyspark whose internals these are."""


def set_many(session: SparkConnectSession, settings: Mapping[str, str]) -> None:
    """Set settings of a session by one question to its server."""
    session.conf._set_all(dict(settings), silent=False)


def get_many(session: SparkConnectSession, names: Sequence[str]) -> dict[str, str | None]:
    """Return settings of a session by one question to its server; None is what it does not have."""
    values = session.client.get_config_with_defaults(*[(name, None) for name in names])
    return dict(zip(names, values, strict=True))


def unset_many(session: SparkConnectSession, names: Sequence[str]) -> None:
    """Remove settings of a session by one question to its server."""
    from pyspark.sql.connect.proto import ConfigRequest

    unset = ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=list(names)))
    session.client.config(unset)


def known_columns(rows: DataFrame) -> StructType | None:
    """Return the columns of rows on a Connect server, if it has told them already."""
    return cast("SparkConnectDataFrame", rows)._cached_schema


def remember_columns(rows: DataFrame, columns: StructType | None) -> None:
    """Have rows on a Connect server know their columns, so that it is not asked for them."""
    cast("SparkConnectDataFrame", rows)._cached_schema = columns


def remember_no_stream(rows: DataFrame) -> None:
    """Have rows on a Connect server know that they are no stream: pyspark asks the server before it observes them."""
    cast("SparkConnectDataFrame", rows).__dict__.setdefault("isStreaming", False)


def local_checkpoint(rows: DataFrame) -> DataFrame:
    """Return the same rows, kept by the executors of a Connect server.

    pyspark's own localCheckpoint drops what was observed: a watermark would become the bound of what was read, not its highest value.
    """
    from pyspark.sql.connect.plan import Checkpoint

    session = cast("SparkConnectSession", rows.sparkSession)
    plan = cast("SparkConnectDataFrame", rows)._plan
    # pyspark looks for kept rows in the thread's session, not in that of the rows.
    make_active(session)
    command = Checkpoint(child=plan, local=True, eager=True).command(session.client)
    _, answer, _ = session.client.execute_command(command, plan.observations)
    checkpointed = cast("DataFrame", answer["checkpoint_command_result"])
    remember_columns(checkpointed, known_columns(rows))
    return checkpointed


def make_active(session: SparkConnectSession) -> None:
    """Make a session the one that pyspark takes in this thread if it is given none: for types as DDL, dates as literals, a user's function.

    pyspark keeps the first of a thread for ever, also when the server has closed it because it was not used for an hour.
    """
    session._active_session.session = session


def forget_models_at_exit(session: SparkConnectSession) -> None:
    """Keep pyspark from asking the session's server, at exit, to drop machine-learning models: the server may be gone."""
    atexit.unregister(session.client._cleanup_ml_cache)


def release(session: SparkConnectSession) -> None:
    """End a session that did nothing, and close its channel; else it ends by itself after an hour."""
    with suppress(Exception):
        session.client.release_session()
        session.client._channel.close()


def running_context() -> SparkContext | None:
    """Return the context of the Spark that runs in this process; None if none does."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context
