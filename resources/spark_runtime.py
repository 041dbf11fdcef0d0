"""Spark's Java side: the Java to start, the jars to fetch, and the class-data archive.

Only facts about the machine that are needed before Spark starts, with the standard library alone: the set-
up uses them before anything is installed. No pyspark; ``resources.spark.engine`` has the settings of a
session.

The cache folder has two files per set of packages, and a run works without either: the archive (why:
docs/explanation/adr/0002-a-class-data-archive.md) and the list of the jars that Ivy resolved.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata, util
from pathlib import Path
from urllib.parse import unquote, urlsplit

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
HADOOP_AWS_PACKAGE = "org.apache.hadoop:hadoop-aws:3.4.2"
"""Only if an S3 path is used: its SDK bundle is 640 MB."""
COMMITTERS_PACKAGE = "org.apache.spark:spark-hadoop-cloud_2.13:4.1.1"
"""Needed with S3: Spark then writes files without renaming them, which would be a copy there. The newest release for 4.1."""

POSTGRESQL_PACKAGE = "org.postgresql:postgresql:42.7.8"
MARIADB_PACKAGE = "org.mariadb.jdbc:mariadb-java-client:3.5.6"
"""Drivers, only if such a database is read."""

AVRO_PACKAGE = "org.apache.spark:spark-avro_2.13:4.1.1"
"""Only if Avro files are read. The newest release for 4.1; tried with pyspark 4.1.4."""

ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""Only if an Iceberg table is written or read."""

JAR_EXCLUDES = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "com.google.cloud.bigdataoss:gcs-connector",
    "com.squareup.okhttp3:okhttp",
    "com.squareup.okio:okio",
    "joda-time:joda-time",
    "org.apache.hadoop:hadoop-azure",
    "org.apache.hadoop:hadoop-cloud-storage",
    "org.apache.hadoop:hadoop-huaweicloud",
    "org.eclipse.jetty:jetty-util",
    "org.eclipse.jetty:jetty-util-ajax",
)
"""Delta depends on the first two, which Spark ships; the committers depend on jars for other clouds."""

PACKAGES_KEY = "spark.strandline.packages"
"""The setting that names a session's packages, however they were loaded (see :func:`jar_settings`)."""

OLDEST_JAVA, NEWEST_JAVA = 17, 21

# Where installers put Java if they do not put it on PATH.
_JAVA_HOMES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)
_HOW_TO_GET_JAVA = "install Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"


@dataclass(frozen=True)
class Java:
    """A Java installation that reported its version.

    Attributes:
        home: the JAVA_HOME that selects it.
        text: the output of ``java -version``.
        version: such as ``17.0.15``.
        on_path: whether Spark finds it without JAVA_HOME.
    """

    home: Path
    text: str
    version: str
    on_path: bool = False

    @property
    def major(self) -> int:
        """Return the major version: 17 for 17.0.15, 8 for 1.8.0_392."""
        first, _, rest = self.version.partition(".")
        return int(re.sub(r"\D.*", "", rest if first == "1" else first) or 0)

    @property
    def fits(self) -> bool:
        """Return whether Spark runs on this Java: 17 and 21 are supported, 18 to 20 are accepted."""
        return OLDEST_JAVA <= self.major <= NEWEST_JAVA


@lru_cache(maxsize=8)
def _probe(binary: str, on_path: bool = False) -> Java | None:
    try:
        answer = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # JAVA_TOOL_OPTIONS and similar variables print "Picked up" lines first.
    text = "\n".join(line for line in answer.stderr.splitlines() if "Picked up" not in line)
    version = re.search(r'version "([^"]+)"', text)
    return Java(Path(binary).resolve().parent.parent, text, version[1], on_path) if version else None


def find_java() -> Java | None:
    """Return the Java that Spark should start; None if there is none.

    If JAVA_HOME is set, it alone decides, since Spark obeys it; then PATH; then the usual places. A Java
    that does not fit is only returned if there is no better one.
    """
    if home := os.environ.get("JAVA_HOME"):
        return _probe(str(Path(home, "bin", "java")))
    first: Java | None = None
    for java in _candidates():
        if java.fits:
            return java
        first = first or java
    return first


def _candidates() -> Iterator[Java]:
    if (binary := shutil.which("java")) and (java := _probe(binary, on_path=True)):
        yield java
    for pattern in _JAVA_HOMES:
        for home in sorted(Path("/").glob(pattern.lstrip("/"))):
            if java := _probe(str(home / "bin" / "java")):
                yield java


def java_version() -> str | None:
    """Return the output of ``java -version`` of the Java that Spark should start; None if there is none."""
    java = find_java()
    return java.text if java else None


def java_problem() -> str | None:
    """Return what is wrong with this machine's Java and what to do, in a line; None if it fits."""
    java = find_java()
    if java and java.fits:
        return None
    named = os.environ.get("JAVA_HOME")
    version = f"Java {java.version}" if java else "none that starts"
    if named:
        return f"Java: expected {OLDEST_JAVA} or {NEWEST_JAVA}, found {version} in JAVA_HOME={named}: point it at Java 17 or 21, or unset it"
    return f"Java: expected {OLDEST_JAVA} or {NEWEST_JAVA}, found {version}: {_HOW_TO_GET_JAVA}"


def spark_home() -> Path:
    """Return the folder of Spark, without importing pyspark.

    Raises:
        FileNotFoundError: if pyspark is not installed.
    """
    spec = util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("expected pyspark in this environment, found none: install requirements.lock")
    return Path(spec.origin).parent


def spark_jars() -> Path | None:
    """Return the folder of Spark's own jars; None if pyspark is not installed."""
    with suppress(FileNotFoundError):
        return spark_home() / "jars"
    return None


def _key(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def archive_path(cache_dir: Path, packages: Iterable[str]) -> Path:
    """Return the path of the archive for these packages, whether it exists or not.

    Java refuses an archive of another Java, or of jars that were installed later. So the name depends on
    all of them.

    Args:
        cache_dir: the folder of archives.
        packages: Maven coordinates, in any order.
    """
    jars = spark_jars()
    installed = f"{jars} {jars.stat().st_mtime_ns}" if jars and jars.exists() else ""
    spark = metadata.version("pyspark") if jars else ""
    key = _key(java_version() or "", platform.machine(), spark, installed, *sorted(packages))
    return cache_dir / f"spark-{key}.jsa"


def seal(archive: Path) -> None:
    """Record the size of a finished archive: Java checks nothing, and dies of SIGBUS on a truncated one."""
    archive.with_suffix(".size").write_text(str(archive.stat().st_size))


def is_sealed(archive: Path) -> bool:
    """Return whether the archive exists and is complete."""
    try:
        return archive.stat().st_size == int(archive.with_suffix(".size").read_text())
    except (OSError, ValueError):
        return False


def submit_options(cache_dir: Path, packages: Iterable[str]) -> str:
    """Return flags for SPARK_SUBMIT_OPTS that use the archive; "" if there is none.

    An archive has the classes of Spark, not those of the packages, so the archive of the default packages
    serves all others, too. ``-Xlog:disable``: if it does not fit after all, Java continues without it, and
    its warning would go to stdout, into a command's JSON.

    Args:
        cache_dir: the folder of archives.
        packages: Maven coordinates of the session.
    """
    for candidate in (tuple(packages), (DELTA_PACKAGE,)):
        archive = archive_path(cache_dir, candidate)
        if is_sealed(archive):
            silent = ("-Xshare:auto", "-Xlog:disable", "-XX:+IgnoreUnrecognizedVMOptions")
            return quoted(f"-XX:SharedArchiveFile={archive}", *silent)
    return ""


def quoted(*flags: str) -> str:
    """Return JVM flags as one text that Spark's launcher splits into the same flags again.

    Paths may contain blanks and quotes.
    """
    escaped = (re.sub(r"([\"\\])", r"\\\1", flag) for flag in flags)
    return " ".join(f'"{flag}"' if re.search(r"[\s'\"\\]", flag) else flag for flag in escaped)


def java_environment() -> dict[str, str]:
    """Return the variables with which Spark starts the Java of :func:`find_java`; mostly none."""
    java = find_java()
    if java is None or java.on_path or "JAVA_HOME" in os.environ:
        return {}
    return {"JAVA_HOME": str(java.home)}


def jar_settings(cache_dir: Path | None, packages: Iterable[str]) -> dict[str, str]:
    """Return Spark settings that bring these packages into a session.

    Ivy takes 2 to 3 s to resolve what is in its cache. So the settings name the files of an earlier
    resolution if all of them still exist; else the coordinates.

    Args:
        cache_dir: the folder of lists; None always returns the coordinates.
        packages: Maven coordinates.
    """
    coordinates = tuple(packages)
    named = {PACKAGES_KEY: ",".join(coordinates)}
    if cache_dir is not None and (jars := _remembered_jars(_list_path(cache_dir, coordinates))):
        return named | {"spark.jars": ",".join(jars)}
    return named | {
        "spark.jars.packages": ",".join(coordinates),
        "spark.jars.excludes": ",".join(JAR_EXCLUDES),
    }


def remember_jars(cache_dir: Path, packages: Iterable[str], jars: str) -> None:
    """Record the jars that Ivy resolved; do nothing if the cache cannot be written.

    Args:
        cache_dir: the folder of lists.
        packages: the resolved Maven coordinates.
        jars: the session's ``spark.jars`` afterwards; the session added no others.
    """
    path = _list_path(cache_dir, packages)
    with suppress(OSError, ValueError):
        sizes = {uri: _file(uri).stat().st_size for uri in jars.split(",") if uri}
        cache_dir.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(sizes, indent=1))
        draft.replace(path)


def _list_path(cache_dir: Path, packages: Iterable[str]) -> Path:
    return cache_dir / f"jars-{_key(*sorted(packages), *JAR_EXCLUDES)}.json"


def _remembered_jars(path: Path) -> list[str]:
    try:
        sizes: dict[str, int] = json.loads(path.read_text())
        whole = all(_file(uri).stat().st_size == size for uri, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return []
    return list(sizes) if whole else []


def _file(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
