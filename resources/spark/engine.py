"""Spark sessions: embedded, on a cluster, or on a Spark Connect server, through dagster-pyspark's resource.

That resource keeps one session for the whole process and takes what is already there without a word. Here every run gets
a session of its own, so that SQL settings do not leak, and a static setting that the running JVM does not have is an error.
Nothing starts before :meth:`SparkEngine.session` is called.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary, WeakSet

from partitions.errors import ConfigurationError, StrandlineError
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.functions import UserCode
from resources.spark.log_store import JAR, SETTING, log_store_settings
from resources.spark.process import is_remote, java_end, java_runs, last_words, said, server_of, start_java
from resources.spark_runtime import (
    COMMITTERS_PACKAGE,
    DELTA_PACKAGE,
    HADOOP_AWS_PACKAGE,
    ICEBERG_PACKAGE,
    PACKAGES_KEY,
    jar_settings,
    java_environment,
    remember_jars,
    submit_options,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession
    from pyspark.sql.connect.dataframe import DataFrame as SparkConnectDataFrame
    from pyspark.sql.connect.session import SparkSession as SparkConnectSession
    from pyspark.sql.types import DataType, StructType

    from resources.spark.retries import Outage

_START = threading.Lock()
_kept: list[SparkSession] = []
"""Every remote session of this process. One that is collected shuts a pool down that all of them share, and waits for it; when
that happens while another one submits to the pool, the process stands still for ever (pyspark 4.1)."""
_opened: dict[tuple[str, str], str] = {}
"""By Spark and by bucket: the store that this process has told it of, or has heard of."""
_sharing: WeakSet[SparkConnectSession] = WeakSet()
"""Sessions that use the Java code that their server has compiled for the queries of others."""
_STATIC = (
    "spark.master",
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.hadoop.fs.file.impl",
)
_DELTA_SQL = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG_SQL = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
TIME_ZONE = "spark.sql.session.timeZone"
"""Is UTC in all sessions: times are read, written and compared in it, and those of partitions named."""
_OF_A_SESSION = {
    TIME_ZONE: "UTC",
    # Spark's own default has no bounds of instants in its files, by which readers pass over those that they need not read.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.legacy.javaCharsets": "true",  # else Spark reads a few encodings only, and windows-1252 is none of them
    # Else Spark puts settings for ${…} in every text that it parses: names of files and columns, and values in conditions.
    "spark.sql.variable.substitute": "false",
}

_SHARED_CODE = {
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "false",
}
"""With both a session has no classes of its own, so that it takes compiled code from others."""

# Of a short run most CPU time goes into Java's second compiler, for code that runs once or twice. It sets in ten times later
# here: 26,000 rows of 150 files take 19 CPU-seconds with the start of Spark, not 27; 2 million rows take what they took.
_SHORT_RUNS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


_CONNECTING = ("grpc.min_reconnect_backoff_ms", 5_000)
"""How long an attempt to connect may take, by gRPC's name for it. Its own 20 s leave a server that takes connections and says nothing 40 s."""

AWAKE_SECONDS = 60.0
"""Between two questions that keep a session from ending; a server ends one by default that was not used for an hour."""
SMALL = 8 * 2**20
"""Bytes of source files below which compiling a query takes longer than running it."""
BYTES_PER_ROW = 100
"""A guess, to choose between two ways to run a small query."""

# Java code is made and compiled for each query, Delta's own included: the one that looks for a tag is another after every
# commit. On a warm server that took 0.6 of the 1.3 s of a small write.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_usual: WeakKeyDictionary[SparkSession, dict[str, str | None]] = WeakKeyDictionary()
"""What a session had of these settings before they were changed; None: nothing."""


def tune(session: SparkSession, size: int | None) -> bool:
    """Make a session run its next write without compiling it first if the files are small, and as the user has it otherwise.

    Args:
        session: of one run.
        size: bytes of the files that are about to be read; None if unknown.

    Returns:
        whether it may be compiled.
    """
    small = size is not None and size < SMALL
    if small and session not in _usual:
        _usual[session] = get_all(session, _INTERPRETED)
    if session in _usual:
        _put_back(session, _INTERPRETED if small else _usual[session])
    return not small


def tune_for(session: SparkSession, rows: int) -> None:
    """Do as :func:`tune` where it is known how many rows the next queries go over."""
    tune(session, rows * BYTES_PER_ROW)


def keeps_code(session: SparkSession) -> bool:
    """Return whether what is compiled for a query is there for the same query of a later run, so that compiling pays."""
    return cast("SparkConnectSession", session) in _sharing


def set_all(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Set what a session has of these, by one question to a Connect server."""
    if is_remote(session) and settings:
        cast("SparkConnectSession", session).conf._set_all(dict(settings), silent=False)
        return
    for key, value in settings.items():
        session.conf.set(key, value)


def get_all(session: SparkSession, keys: Iterable[str]) -> dict[str, str | None]:
    """Return what a session has of these settings, by one question to a Connect server; None is what it does not have."""
    names = list(keys)
    if is_remote(session) and names:
        client = cast("SparkConnectSession", session).client
        return dict(
            zip(names, client.get_config_with_defaults(*[(name, None) for name in names]), strict=True)
        )
    return {name: session.conf.get(name, None) for name in names}


def _put_back(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    """Give a session settings as :func:`get_all` returned them: None removes one. By at most two questions to a Connect server."""
    set_all(session, {key: value for key, value in settings.items() if value is not None})
    gone = [key for key, value in settings.items() if value is None]
    if is_remote(session) and gone:
        from pyspark.sql.connect.proto import ConfigRequest

        unset = ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=gone))
        cast("SparkConnectSession", session).client.config(unset)
        return
    for key in gone:
        session.conf.unset(key)


@contextmanager
def settings_for_a_while(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set what a session has of these for a while; what it had before it has again, whatever happens."""
    before = get_all(session, settings)
    try:
        set_all(session, settings)
        yield
    finally:
        _put_back(session, before)


def read_once(rows: DataFrame) -> DataFrame:
    """Return the same rows, kept by Spark: what uses them twice sees them once, also where their source would answer otherwise the second time."""
    session = rows.sparkSession
    if not is_remote(session):
        return rows.localCheckpoint()
    from pyspark.sql.connect.plan import Checkpoint

    remote, plan = cast("SparkConnectSession", session), cast("SparkConnectDataFrame", rows)._plan
    # pyspark looks for kept rows in the thread's session, not in that of the rows (pyspark 4.1).
    _make_active(remote)
    # Its own localCheckpoint drops what was observed: a watermark would become the bound of what was read, not its highest value.
    command = Checkpoint(child=plan, local=True, eager=True).command(remote.client)
    _, answer, _ = remote.client.execute_command(command, plan.observations)
    kept = cast("SparkConnectDataFrame", answer["checkpoint_command_result"])
    kept._cached_schema = cast("SparkConnectDataFrame", rows)._cached_schema
    return cast("DataFrame", kept)


def with_known_columns(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return rows of these columns, for which a Connect server is not asked: each question has Spark look at the whole query, and a database at its part of it."""
    if is_remote(rows.sparkSession):
        cast("SparkConnectDataFrame", rows)._cached_schema = columns
    return rows


def with_columns_as(made: DataFrame, rows: DataFrame) -> DataFrame:
    """Return rows that were made of others and have the same columns, for which a Connect server is not asked if those of the others are known."""
    known = _known_columns(rows)
    return made if known is None else with_known_columns(made, known)


def _known_columns(rows: DataFrame) -> StructType | None:
    return cast("SparkConnectDataFrame", rows)._cached_schema if is_remote(rows.sparkSession) else None


def with_typed_columns(rows: DataFrame, added: Mapping[str, tuple[Column, DataType]]) -> DataFrame:
    """Return rows with more columns, each given with its type. If those of the rows are known, a Connect server is not asked for these either."""
    made = rows.withColumns({name: column for name, (column, _) in added.items()})
    known = _known_columns(rows)
    if known is None or {name.casefold() for name in known.names} & {name.casefold() for name in added}:
        return made
    columns = type(known)(list(known.fields))
    for name, (_, kind) in added.items():
        columns = columns.add(name, kind)
    return with_known_columns(made, columns)


def observed_rows(rows: DataFrame, observation: Observation, *asked: Column) -> DataFrame:
    """Return rows that are no stream with an observation of what is written of them.

    Their columns stay, and are not asked for again.
    """
    if not is_remote(rows.sparkSession):
        return rows.observe(observation, *asked)
    remote = cast("SparkConnectDataFrame", rows)
    remote.__dict__.setdefault("isStreaming", False)  # pyspark asks for it (pyspark 4.1)
    watched = cast("SparkConnectDataFrame", rows.observe(observation, *asked))
    watched._cached_schema = remote._cached_schema
    return cast("DataFrame", watched)


@contextmanager
def kept_awake(session: Callable[[], SparkSession | None]) -> Iterator[None]:
    """Within it a session on a Connect server does not end for want of use: this process may fetch rows for longer than a server waits.

    Args:
        session: returns the session, once there is one.
    """
    over = threading.Event()

    def ask() -> None:
        while not over.wait(AWAKE_SECONDS):
            found = session()
            if found is not None and is_remote(found):
                with suppress(Exception):  # the next real question tells what is wrong
                    found.conf.get(TIME_ZONE)

    threading.Thread(target=ask, name="strandline-awake", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def leave_behind(session: SparkSession, work: Callable[[SparkSession], object]) -> None:
    """Begin something on a Connect server that ends there after this process, if need be. Do not wait, and do not report a failure.

    Spark in this process ends with it, so there nothing is begun.

    Args:
        session: of the run, which does nothing else with it from here on.
        work: what helps the next run, and changes nothing.
    """
    if not is_remote(session):
        return

    def begin() -> None:
        with suppress(Exception):
            work(session)

    threading.Thread(target=begin, name="strandline-left-behind", daemon=True).start()


class SparkUnavailable(StrandlineError):
    """No Spark session could be had: no Java, jars that do not resolve, an unreachable server."""

    code = "spark"


class EngineLost(SparkUnavailable):
    """The engine died, or forgot the session, while something was read or written: nothing that it was asked for is to blame."""

    code = "engine_lost"
    transient = True

    @classmethod
    def of(cls, dataflow: str, doing: str, lost: str) -> EngineLost:
        """The error for a dataflow, with what it was doing."""
        return cls(
            f"dataflow {dataflow}: the Spark engine was lost while {doing}: {lost.rstrip(' .')}. Nothing is lost or given up: the next run finishes"
            " what was begun. `strandline dev` starts its engine again by itself; see that yours runs",
            choices=(f"strandline run {dataflow}", "strandline doctor"),
        )


@dataclass(frozen=True)
class SparkEngine:
    """How sessions are made.

    Attributes:
        master: such as ``local[*]`` or ``spark://host:7077``; not used with ``remote``.
        remote: a Connect server, ``sc://host:port``; None runs Spark here or on ``master``.
        conf: the user's settings; they win over Strandline's.
        places: what will be read and written: they decide on jars and credentials.
        drivers: Maven coordinates of the JDBC drivers, and of the readers of file formats, that are needed.
        shared: Maven coordinates of what other dataflows of this process need: jars cannot be added once Spark runs.
        shares_code: whether sessions on a Connect server use what it has compiled for others; not if a user's functions run in Spark, which may add classes or files of their own.
        cache: where the class-data archive lies, if there is one.
        notify: hears, with a line for people, of what takes seconds.
    """

    master: str = "local[*]"
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    places: tuple[Place, ...] = ()
    drivers: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    shares_code: bool = True
    cache: Path | None = None
    notify: Callable[[str], None] = field(default=lambda line: None, compare=False)

    def session(self) -> SparkSession:
        """A session of its own on the one Spark of this process; the first call starts it.

        Raises:
            SparkUnavailable: if it does not start, with what to do.
            ConfigurationError: if the Spark that runs already differs in a static setting.
        """
        _be_quiet()
        stores = _stores_of(self.places)
        with _START:
            session = self._connect() if self.remote else self._embed()
            _check_stores(session, self.remote, stores)
        set_all(session, {key: value for place in self.places for key, value in place.spark_conf.items()})
        return session

    @property
    def packages(self) -> tuple[str, ...]:
        """The jars that are needed by this process, and no others."""
        remote = any(place.url.startswith("s3://") for place in self.places)
        theirs = [
            package.strip()
            for package in self.conf.get("spark.jars.packages", "").split(",")
            if package.strip()
        ]
        needed = (
            DELTA_PACKAGE,
            *((HADOOP_AWS_PACKAGE, COMMITTERS_PACKAGE) if remote else ()),
            *self.drivers,
            *theirs,
            *self.shared,
        )
        return tuple(dict.fromkeys(needed))

    @property
    def commits_to_s3(self) -> bool:
        """Whether tables on S3 may be written, so that the log store is needed."""
        return HADOOP_AWS_PACKAGE in self.packages

    def settings(self) -> dict[str, str]:
        """All settings of the process's Spark."""
        cores = str(os.cpu_count() or 2)
        ours = {
            "spark.app.name": "strandline",
            "spark.master": self.master,
            "spark.log.level": "FATAL",  # what fails is told by our own errors, once
            "spark.sql.extensions": ",".join(
                (_DELTA_SQL, *((_ICEBERG_SQL,) if ICEBERG_PACKAGE in self.packages else ()))
            ),
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # Names with a colon, such as ISO times, break Hadoop's checksumming local file system.
            "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
            "spark.databricks.delta.snapshotPartitions": "2",
            **_OF_A_SESSION,
            "spark.ui.enabled": "false",
            # A text of each plan is made for the UI, too long to be made for no reader: a tenth of what a small write costs its driver.
            "spark.sql.ui.explainMode": "simple",
            # Of all queries together Spark keeps 100 pieces of compiled code: two merges by turns would compile each of theirs again.
            "spark.sql.codegen.cache.maxEntries": "2000",
            "spark.ui.showConsoleProgress": "false",
        }
        if self.master.startswith("local"):
            ours |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": "2g",
                "spark.sql.shuffle.partitions": cores,
                "spark.driver.extraJavaOptions": " ".join(_SHORT_RUNS),
                # Otherwise one task a file looks whether it is there: seconds for a thousand files.
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * (os.cpu_count() or 2)),
            }
        theirs = {key: value for key, value in self.conf.items() if key != "spark.jars.packages"}
        own_jars = "spark.jars" in theirs  # Spark takes either list, so theirs must go with coordinates
        settings = ours | jar_settings(None if own_jars else self.cache, self.packages) | theirs
        if not self.commits_to_s3:
            return settings
        jars = [*filter(None, [settings.get("spark.jars")]), str(JAR)]
        return log_store_settings(settings) | settings | {"spark.jars": ",".join(jars)}

    def _embed(self) -> SparkSession:
        from dagster_pyspark import LazyPySparkResource

        settings, starts = self.settings(), not java_runs()
        self._check_jars()
        os.environ.update(self.environment())
        if starts:
            self.notify(_starting(settings))
        try:
            start_java(settings)
            base = LazyPySparkResource(spark_config=settings).spark_session
        except Exception as error:
            raise SparkUnavailable(_no_spark(error), choices=("strandline doctor",)) from error
        for key in (*_STATIC, *({SETTING} & settings.keys())):
            current = base.conf.get(key, None)
            if not _includes(key, current, settings[key]):
                raise ConfigurationError(
                    f"Spark runs in this process already with {key}={current!r}, and {settings[key]!r} is asked for:"
                    " a static setting cannot change while it runs. Use another process, or the same setting"
                )
        if (
            starts
            and self.cache is not None
            and "spark.jars.packages" in settings
            and "spark.jars" not in self.conf
        ):
            jars = (base.sparkContext.getConf().get("spark.jars") or "").split(",")
            fetched = [jar for jar in jars if not jar.endswith(f"/{JAR.name}")]
            remember_jars(self.cache, self.packages, ",".join(fetched))
        return cast("SparkSession", base.newSession())

    def _check_jars(self) -> None:
        """Raise if the Spark that runs in this process was started without a jar that is needed.

        Its own configuration tells that: what a session says of a setting is what it was asked for last. Of a Spark that something else has
        started the jars are unknown, and nothing is raised.
        """
        from pyspark import SparkContext

        running = SparkContext._active_spark_context
        there = running.getConf().get(PACKAGES_KEY) if running is not None else None
        missing = [package for package in self.packages if package not in there.split(",")] if there else []
        if missing:
            raise ConfigurationError(
                f"Spark runs in this process already, without {', '.join(missing)}: expected all jars from its start on, since"
                " none can be added while it runs. Load this dataflow in a process of its own, or use a Spark Connect server"
                " (`strandline dev`)"
            )

    def environment(self) -> dict[str, str]:
        """What a process that starts Spark's JVM must have in its environment."""
        variables = java_environment()
        if self.master.startswith("local") and "SPARK_LOCAL_IP" not in os.environ:
            variables["SPARK_LOCAL_IP"] = (
                "127.0.0.1"  # else Spark does not start if the host's name does not resolve
            )
        if "PYSPARK_PYTHON" not in os.environ:
            # Of Spark's processes for Python code (streams, functions of the user). pyspark reads the setting only in what spark-submit starts, and takes
            # the first python3 of the PATH else.
            python = self.conf.get("spark.pyspark.python") or (
                self.master.startswith("local") and sys.executable
            )
            if python:
                variables["PYSPARK_PYTHON"] = python
        if self.cache is not None and "SPARK_SUBMIT_OPTS" not in os.environ:
            variables["SPARK_SUBMIT_OPTS"] = submit_options(self.cache, self.packages)
        return variables

    def _connect(self) -> SparkSession:
        try:
            session = _session_on(self.remote or "")
            _keep(session)
            set_all(
                cast("SparkSession", session), _OF_A_SESSION
            )  # the first call tells whether the server is there
            _outage_of(session).end()
            if self.shares_code:
                session = _sharing_code(session)
        except Exception as error:
            raise SparkUnavailable(
                f"Spark Connect server {self.remote}: expected an answer, found: {said(error).rstrip('.')}. Start one with `strandline dev`, or remove spark.remote",
                choices=("strandline dev", "strandline doctor"),
            ) from error
        return cast("SparkSession", session)

    def with_places(
        self,
        places: Iterable[Place | JdbcConnection | ApiConnection | UserCode],
        readers: Iterable[str] = (),
    ) -> SparkEngine:
        """The same engine for these places and databases; APIs and code of the user are none of its business.

        Args:
            places: what is read and written.
            readers: Maven coordinates of what Spark needs to read files of some formats.
        """
        given = list(places)
        catalogs = [each.catalog for each in given if isinstance(each, Place)]
        databases = [each for each in (*given, *catalogs) if isinstance(each, JdbcConnection)]
        return replace(
            self,
            places=tuple(each for each in given if isinstance(each, Place)),
            drivers=tuple(sorted({each.package for each in databases} | set(readers))),
        )

    def isolated(self) -> SparkEngine:
        """The same engine, whose sessions share no compiled code with others."""
        return replace(self, shares_code=False)

    def sharing(self, packages: Iterable[str]) -> SparkEngine:
        """The same engine, which starts Spark with these jars, too."""
        return replace(self, shared=tuple(dict.fromkeys(packages)))


def _stores_of(places: Iterable[Place]) -> dict[str, str]:
    """Return the address of the store of each bucket.

    Raises:
        ConfigurationError: two places give a bucket's name to different stores, or reach it in different ways.
    """
    stores: dict[str, str] = {}
    ways: dict[str, Mapping[str, str]] = {}
    for place in places:
        if place.bucket is None:
            continue
        if ways.setdefault(place.bucket, place.spark_conf) != place.spark_conf:
            raise ConfigurationError(
                f"bucket {place.bucket}: expected one connection for all that a dataflow reads and writes in it, found two that differ: Spark knows"
                " a bucket by its name alone. Use one connection; or, for two stores, buckets of different names"
            )
        stores[place.bucket] = ((place.connection and place.connection.endpoint) or "AWS").rstrip("/")
    return stores


def _check_stores(session: SparkSession, remote: str | None, stores: Mapping[str, str]) -> None:
    """Raise if the Spark that is used knows a bucket as one of another store.

    Hadoop opens a bucket once for all that a JVM does, by the name alone, and whatever a session says of its store later is not heard: rows would
    be read from there, and written to there. On a Connect server the names of global views, which are its only memory that all sessions share, tell.

    Raises:
        ConfigurationError: it does.
    """
    for bucket, store in stores.items():
        key = (remote or "", bucket)
        if key not in _opened:
            _opened[key] = _heard_of(session, bucket, store) if remote else store
        if _opened[key] != store:
            raise ConfigurationError(
                f"bucket {bucket} of {store}: this Spark has opened a bucket of this name in {_opened[key]}, and cannot open both. Load the two by"
                " Sparks of their own: a Connect server for each, or `strandline run` for one dataflow at a time; or rename a bucket"
            )


def _heard_of(session: SparkSession, bucket: str, store: str) -> str:
    """Return which store a bucket's name means to a Connect server: the given one from now on, if nobody has told it another."""
    prefix = f"strandline_{_short_hash(bucket)}_"
    mine = f"{prefix}{_short_hash(store)}"
    # A server may lack global views, or not let them be listed: what it writes is looked for in any case.
    with suppress(Exception):
        names = {
            row["viewName"] for row in session.sql(f"SHOW VIEWS IN global_temp LIKE '{prefix}*'").collect()
        }
        if names - {mine}:
            return "another store"
        if not names:
            session.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {mine} AS SELECT 1 AS is_known").collect()
    return store


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _includes(key: str, current: str | None, wanted: str) -> bool:
    """Whether a setting is what is asked for; more extensions than are needed do no harm."""
    if key == "spark.sql.extensions" and current:
        return set(wanted.split(",")) <= set(current.split(","))
    return current == wanted


def _session_on(server: str) -> SparkConnectSession:
    """Return a session on a Connect server, which is not asked for anything yet.

    As pyspark's own builder makes it, which takes no options of the channel.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    return SparkSession.builder.channelBuilder(DefaultChannelBuilder(server, [_CONNECTING])).create()


def _keep(session: SparkConnectSession) -> None:
    """Take a session on a Connect server as the one that this process works with."""
    from resources.spark.retries import Patience

    _kept.append(cast("SparkSession", session))
    _make_active(session)
    session.client.set_retry_policies([Patience(_outage_of(session))])
    # At exit pyspark asks the server of each session to drop machine-learning models, also one that is gone.
    atexit.unregister(session.client._cleanup_ml_cache)


def _outage_of(session: SparkConnectSession) -> Outage:
    from resources.spark.retries import outage_of

    return outage_of(server_of(session) or "")


def _sharing_code(session: SparkConnectSession) -> SparkConnectSession:
    """Return a session like a new one that uses the Java code that its server has compiled for the queries of others; the given one is over.

    Else a server compiles each query again in each session, since a user's classes might differ there. What makes the difference is read at the
    beginning of a session, and only a clone begins with settings (docs/adr/0033). A server without clones, or without these settings, leaves the session as it is.
    """
    try:
        session.conf._set_all(dict(_SHARED_CODE), silent=False)
        clone = session.cloneSession()
    except Exception:  # noqa: BLE001 - what only saves time must not end a run; of a server that is gone the next call tells
        return session
    clone.release_session_on_close = True  # pyspark's clone lacks it (pyspark 4.1)
    _keep(clone)
    _sharing.add(clone)
    threading.Thread(target=_release, args=(session,), name="strandline-release", daemon=True).start()
    return clone


def _release(session: SparkConnectSession) -> None:
    """End a session that did nothing; else it ends by itself after an hour."""
    with suppress(Exception):
        session.client.release_session()
        session.client._channel.close()


def _make_active(session: SparkConnectSession) -> None:
    """Make a session the one that pyspark takes in this thread if it is given none: for types as DDL, dates as literals, a user's function.

    pyspark keeps the first of a thread for ever, also when the server has closed it because it was not used for an hour (pyspark 4.1).
    """
    session._active_session.session = session


def _be_quiet() -> None:
    """Keep pyspark from printing each refused query with its stack traces: our errors tell it, once."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _starting(settings: Mapping[str, str]) -> str:
    """Jars whose files are not known yet are fetched first, unless Ivy has them, which only Ivy knows."""
    packages = settings.get("spark.jars.packages")
    if not packages:
        return "starting Spark …"
    size = ", 640 MB" if HADOOP_AWS_PACKAGE in packages else ""
    return f"starting Spark, with {packages} (fetched once per machine{size}) …"


def _no_spark(error: Exception) -> str:
    printed = last_words()
    why = java_end() or f"{said(error).rstrip('.')}{f'. Java said: {printed}' if printed else ''}"
    return (
        f"Spark did not start: {why}. Expected Java 17 or 21 and the jars of"
        " spark.jars.packages; `strandline doctor` says which is missing"
    )
