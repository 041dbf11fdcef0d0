"""Uses of pyspark's private API, most of them for Spark Connect (tried with pyspark 4.1).

A test fails on another version: check each function here then.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.dataframe import DataFrame as SparkConnectDataFrame
    from pyspark.sql.connect.session import SparkSession as SparkConnectSession
    from pyspark.sql.types import StructType

TRIED_WITH = "4.1"
"""The minor version of pyspark that these internals were tried with."""


def set_many(session: SparkConnectSession, settings: Mapping[str, str]) -> None:
    """Set settings of a session with one call to its server."""
    session.conf._set_all(dict(settings), silent=False)


def get_many(session: SparkConnectSession, names: Sequence[str]) -> dict[str, str | None]:
    """Return settings of a session with one call to its server; None for unset ones."""
    values = session.client.get_config_with_defaults(*[(name, None) for name in names])
    return dict(zip(names, values, strict=True))


def unset_many(session: SparkConnectSession, names: Sequence[str]) -> None:
    """Remove settings of a session with one call to its server."""
    from pyspark.sql.connect.proto import ConfigRequest

    unset = ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=list(names)))
    session.client.config(unset)


def cached_columns(rows: DataFrame) -> StructType | None:
    """Return the cached columns of rows on a Connect server; None if the server was not asked yet."""
    return cast("SparkConnectDataFrame", rows)._cached_schema


def cache_columns(rows: DataFrame, columns: StructType | None) -> None:
    """Cache the columns of rows on a Connect server, so that it is not asked for them."""
    cast("SparkConnectDataFrame", rows)._cached_schema = columns


def cache_no_stream(rows: DataFrame) -> None:
    """Cache that rows on a Connect server are no stream.

    Otherwise pyspark asks the server before it observes them.
    """
    cast("SparkConnectDataFrame", rows).__dict__.setdefault("isStreaming", False)


def local_checkpoint(rows: DataFrame) -> DataFrame:
    """Return the same rows, checkpointed by the executors of a Connect server.

    pyspark's own localCheckpoint drops observations: a watermark would become the bound of the read, not
    its highest value.
    """
    from pyspark.sql.connect.plan import Checkpoint

    session = cast("SparkConnectSession", rows.sparkSession)
    plan = cast("SparkConnectDataFrame", rows)._plan
    # pyspark looks for checkpointed rows in the thread's session, not in the session of the rows.
    make_active(session)
    command = Checkpoint(child=plan, local=True, eager=True).command(session.client)
    _, answer, _ = session.client.execute_command(command, plan.observations)
    checkpointed = cast("DataFrame", answer["checkpoint_command_result"])
    cache_columns(checkpointed, cached_columns(rows))
    return checkpointed


def streamed_tables(rows: DataFrame) -> Iterator[pa.Table]:
    """Yield rows of a Connect server as Arrow tables, as the server sends them.

    pyspark's own toLocalIterator makes an object of each row.
    """
    import pyarrow as pa

    frame, session = cast("SparkConnectDataFrame", rows), cast("SparkConnectSession", rows.sparkSession)
    plan = frame._plan.to_proto(session.client)
    for answer in session.client.to_table_as_iterator(plan, frame._plan.observations):
        if isinstance(answer, pa.Table):
            yield answer


def make_active(session: SparkConnectSession) -> None:
    """Make a session the default of pyspark in this thread.

    pyspark uses it for DDL types, date literals and user functions. It keeps the first session of a thread
    for ever, even if the server has closed it for being idle for an hour.
    """
    session._active_session.session = session


def forget_models_at_exit(session: SparkConnectSession) -> None:
    """Keep pyspark from calling the session's server at exit to drop models: the server may be gone."""
    atexit.unregister(session.client._cleanup_ml_cache)


def release_session(session: SparkConnectSession) -> None:
    """End an unused session and close its channel; otherwise it ends by itself after an hour."""
    with suppress(Exception):
        session.client.release_session()
        session.client._channel.close()


def running_context() -> SparkContext | None:
    """Return the context of the Spark in this process; None if none runs."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context
