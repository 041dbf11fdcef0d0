"""Spark sessions: embedded, on a cluster, on a Spark Connect server, or on a Spark of the user's own.

They come from dagster-pyspark's resource, which keeps one session for the whole process, and silently
takes an existing one. Here every run gets a new session, so that SQL settings do not leak, and a static
setting that the running JVM does not have is an error. Nothing starts before :meth:`SparkEngine.session`
is called.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from partitions.errors import ConfigurationError
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.connections.source_connection import SourceConnection
from resources.spark.bucket_stores import check_stores, stores_of
from resources.spark.connect import adopt_session, open_session, outage_of_server, share_code
from resources.spark.connect_private import running_context
from resources.spark.errors import SparkUnavailable
from resources.spark.log_store import FOR_ALL_SCHEMES, JAR, SETTING, log_store_settings
from resources.spark.passed_session import SessionFactory, includes
from resources.spark.process import (
    describe_java_end,
    error_line,
    is_java_running,
    last_output,
    server_of,
    start_java,
)
from resources.spark.settings import ANSI, READ_TIMES, TIME_ZONE, WHOLE_READS, WRITTEN_TIMES, set_all
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
    from pyspark.sql import SparkSession


_START = threading.Lock()
LOCAL_FILES = "spark.hadoop.fs.file.impl"
"""The class that opens local files."""
SNAPSHOT_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
"""Into how many tasks Delta cuts the state of a table: by default 50, also for one of five files."""
_STATIC = (
    "spark.master",
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    LOCAL_FILES,
)
_DELTA_SQL = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG_SQL = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_OF_A_SESSION = {
    TIME_ZONE: "UTC",
    ANSI: "true",
    **WRITTEN_TIMES,
    **READ_TIMES,
    **WHOLE_READS,
    "spark.sql.legacy.javaCharsets": "true",  # otherwise Spark reads only a few encodings, without windows-1252
    # Otherwise Spark replaces ${…} in every text that it parses: names of files and columns, and values in conditions.
    "spark.sql.variable.substitute": "false",
}
# A short run spends most CPU time in Java's second compiler, for code that runs once or twice. With these thresholds it starts ten
# times later: 26,000 rows of 150 files take 19 CPU-seconds with the start of Spark, not 27; 2 million rows take as long as before.
_SHORT_RUNS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


@dataclass(frozen=True)
class SparkEngine:
    """The settings of Spark and its sessions.

    Attributes:
        master: such as ``local[*]`` or ``spark://host:7077``; not used with ``remote``.
        remote: a Connect server, ``sc://host:port``; None runs Spark here or on ``master``.
        conf: the user's settings; they override Strandline's.
        secret_keys: the keys of settings that hold secrets: no list of processes shows them.
        places: will be read and written; they determine jars and credentials.
        drivers: Maven coordinates of the JDBC drivers, and of the readers of file formats, that are
        needed.
        shared: Maven coordinates that other dataflows of this process need: jars cannot be added once
        Spark runs.
        shares_code: whether sessions on a Connect server share its compiled code; not if a user's
        functions run in Spark, which may add classes or files of their own.
        cache: the folder of the class-data archive, if there is one.
        server: returns the address of a Connect server to use without ``remote``, and starts it first; None
        if there is to be none.
        notify: called with a line for people before something that takes seconds.
        passed: makes sessions from a session that the user starts; None: Strandline starts Spark.
    """

    master: str = "local[*]"
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    secret_keys: frozenset[str] = frozenset()
    places: tuple[Place, ...] = ()
    drivers: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    shares_code: bool = True
    cache: Path | None = None
    server: Callable[[SparkEngine], str | None] = field(default=lambda engine: None, compare=False)
    notify: Callable[[str], None] = field(default=lambda line: None, compare=False)
    passed: SessionFactory | None = None

    def session(self) -> SparkSession:
        """Return a new session on the one Spark of this process; the first call starts it.

        Raises:
            SparkUnavailable: if it does not start, with what to do.
            ConfigurationError: if the Spark that runs already differs in a static setting, lacks a jar, or
                knows a bucket's name at another store.
        """
        _be_quiet()
        stores = stores_of(self.places)
        with _START:
            session = self._open()
            check_stores(session, self.remote or server_of(session), stores)
        set_all(session, {key: value for place in self.places for key, value in place.spark_conf.items()})
        return session

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the Maven coordinates of the jars that this process needs."""
        remote = any(place.url.startswith("s3://") for place in self.places)
        user_packages = [
            package.strip()
            for package in self.conf.get("spark.jars.packages", "").split(",")
            if package.strip()
        ]
        needed = (
            DELTA_PACKAGE,
            *((HADOOP_AWS_PACKAGE, COMMITTERS_PACKAGE) if remote else ()),
            *self.drivers,
            *user_packages,
            *self.shared,
        )
        return tuple(dict.fromkeys(needed))

    @property
    def commits_to_s3(self) -> bool:
        """Return whether tables on S3 may be written, so that the log store is needed."""
        return HADOOP_AWS_PACKAGE in self.packages

    def settings(self) -> dict[str, str]:
        """Return all settings of the process's Spark."""
        cores = str(os.cpu_count() or 2)
        defaults = {
            "spark.app.name": "strandline",
            "spark.master": self.master,
            "spark.log.level": "FATAL",  # our own errors report each failure once
            "spark.sql.extensions": ",".join(
                (_DELTA_SQL, *((_ICEBERG_SQL,) if ICEBERG_PACKAGE in self.packages else ()))
            ),
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # File names with a colon, such as ISO times, break Hadoop's checksumming local file system.
            LOCAL_FILES: "org.apache.hadoop.fs.RawLocalFileSystem",
            SNAPSHOT_PARTITIONS: "2",
            **_OF_A_SESSION,
            "spark.ui.enabled": "false",
            # Spark writes a text of each plan for the UI, which nobody reads here: a tenth of a small write's time on the driver.
            "spark.sql.ui.explainMode": "simple",
            # By default Spark keeps compiled code of 100 pieces for all queries: two alternating merges would compile theirs every time.
            "spark.sql.codegen.cache.maxEntries": "2000",
            "spark.ui.showConsoleProgress": "false",
        }
        if self.master.startswith("local"):
            defaults |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": "2g",
                "spark.sql.shuffle.partitions": cores,
                "spark.driver.extraJavaOptions": " ".join(_SHORT_RUNS),
                # Otherwise Spark checks with one task per file whether it exists: seconds for a thousand files.
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(4 * (os.cpu_count() or 2)),
            }
        user_settings = {key: value for key, value in self.conf.items() if key != "spark.jars.packages"}
        own_jars = (
            "spark.jars" in user_settings
        )  # Spark takes only one list: jars of the user must go with coordinates
        settings = defaults | jar_settings(None if own_jars else self.cache, self.packages) | user_settings
        if not self.commits_to_s3:
            return settings
        jars = [*filter(None, [settings.get("spark.jars")]), str(JAR)]
        return log_store_settings(settings) | settings | {"spark.jars": ",".join(jars)}

    def _open(self) -> SparkSession:
        if self.passed is not None:
            return self._derive(self.passed)
        remote = self.remote or self.server(self)
        return self._connect(remote) if remote else self._embed()

    def _derive(self, passed: SessionFactory) -> SparkSession:
        """Return a session on the user's Spark, with the settings that every session has."""
        settings = self.settings()
        keys = ["spark.sql.extensions", "spark.sql.catalog.spark_catalog"]
        keys += [LOCAL_FILES] if any(place.local is not None for place in self.places) else []
        keys += [SETTING] if self.commits_to_s3 and FOR_ALL_SCHEMES not in self.conf else []
        session = passed.session({key: settings[key] for key in keys}, self.packages)
        set_all(session, _OF_A_SESSION)
        return session

    def _embed(self) -> SparkSession:
        from dagster_pyspark import LazyPySparkResource

        settings, starts = self.settings(), not is_java_running()
        self._check_jars()
        os.environ.update(self.environment())
        if starts:
            self.notify(_start_message(settings))
        try:
            start_java(settings, self.secret_keys)
            base = LazyPySparkResource(spark_config=settings).spark_session
        except Exception as error:
            raise SparkUnavailable(_start_error(error), choices=("strandline doctor",)) from error
        for key in (*_STATIC, *({SETTING} & settings.keys())):
            current = base.conf.get(key, None)
            if not includes(key, current, settings[key]):
                raise ConfigurationError(
                    f"Spark already runs in this process with {key}={current!r}, but {settings[key]!r} is "
                    "requested: a static setting cannot change while Spark runs. Use another process, or "
                    "the same setting"
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
        """Raise ConfigurationError if the running Spark was started without a needed jar.

        Its own configuration tells that; a session's setting only repeats the last request. The jars of a
        Spark that something else has started are unknown, and nothing is raised.
        """
        running = running_context()
        loaded_packages = running.getConf().get(PACKAGES_KEY) if running is not None else None
        missing = (
            [package for package in self.packages if package not in loaded_packages.split(",")]
            if loaded_packages
            else []
        )
        if missing:
            raise ConfigurationError(
                f"Spark already runs in this process without {', '.join(missing)}: jars cannot be added "
                "while Spark runs. Load this dataflow in a process of its own, or use a Spark Connect "
                "server (`strandline dev`)"
            )

    def environment(self) -> dict[str, str]:
        """Return the environment variables for a process that starts Spark's JVM."""
        variables = java_environment()
        if self.master.startswith("local") and "SPARK_LOCAL_IP" not in os.environ:
            variables["SPARK_LOCAL_IP"] = (
                "127.0.0.1"  # otherwise Spark does not start if the host's name does not resolve
            )
        if "PYSPARK_PYTHON" not in os.environ:
            # For Spark's Python processes (streams, user functions). pyspark reads the setting only in processes of spark-submit, and otherwise
            # takes the first python3 of the PATH.
            python = self.conf.get("spark.pyspark.python") or (
                self.master.startswith("local") and sys.executable
            )
            if python:
                variables["PYSPARK_PYTHON"] = python
        if self.cache is not None and "SPARK_SUBMIT_OPTS" not in os.environ:
            variables["SPARK_SUBMIT_OPTS"] = submit_options(self.cache, self.packages)
        return variables

    def _connect(self, remote: str) -> SparkSession:
        try:
            session = open_session(remote)
            adopt_session(session)
            set_all(
                cast("SparkSession", session), _OF_A_SESSION
            )  # the first call tells whether the server is there
            outage_of_server(session).end()
            if self.shares_code:
                session = share_code(session)
        except Exception as error:
            raise SparkUnavailable(
                f"Spark Connect server {remote} does not answer: {error_line(error).rstrip('.')}. Start one with `strandline dev`, or remove spark.remote",
                choices=("strandline dev", "strandline doctor"),
            ) from error
        return cast("SparkSession", session)

    def with_places(
        self,
        places: Iterable[SourceConnection],
        readers: Iterable[str] = (),
    ) -> SparkEngine:
        """Return the same engine for these places and databases; APIs and user code need nothing from it.

        Args:
            places: are read and written.
            readers: Maven coordinates that Spark needs to read some file formats.
        """
        all_places = list(places)
        catalogs = [place.catalog for place in all_places if isinstance(place, Place)]
        databases = [place for place in (*all_places, *catalogs) if isinstance(place, JdbcConnection)]
        return replace(
            self,
            places=tuple(place for place in all_places if isinstance(place, Place)),
            drivers=tuple(sorted({place.package for place in databases} | set(readers))),
        )

    def isolated(self) -> SparkEngine:
        """Return the same engine, whose sessions share no compiled code."""
        return replace(self, shares_code=False)

    def sharing(self, packages: Iterable[str]) -> SparkEngine:
        """Return the same engine, which also starts Spark with these jars."""
        return replace(self, shared=tuple(dict.fromkeys(packages)))


def _be_quiet() -> None:
    """Keep pyspark from printing each refused query with stack traces: our own error reports it once."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _start_message(settings: Mapping[str, str]) -> str:
    """Return a line for the start of Spark, with the packages that may have to be fetched.

    Only Ivy knows whether it has them already.
    """
    packages = settings.get("spark.jars.packages")
    if not packages:
        return "starting Spark …"
    size = ", 640 MB" if HADOOP_AWS_PACKAGE in packages else ""
    return f"starting Spark, with {packages} (fetched once per machine{size}) …"


def _start_error(error: Exception) -> str:
    printed = last_output()
    why = (
        describe_java_end()
        or f"{error_line(error).rstrip('.')}{f'. Output of Java: {printed}' if printed else ''}"
    )
    return (
        f"Spark did not start: {why}. Expected Java 17 or 21 and the jars of"
        " spark.jars.packages; `strandline doctor` says which is missing"
    )
