"""What Spark's Java side is made of: the Java to start, the jars to fetch, and the class-data archive.

Belongs here: facts about the machine that are needed before Spark starts, standard library only, so that the set-up can
ask them before anything is installed. Does not belong here: pyspark, and the settings of a session (``resources.spark.engine``).

Two files per set of packages lie in the cache folder, and a run does without either: the archive (why:
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
"""Beside it: by this Spark writes files to S3 without renaming them, which there is a copy. The newest of 4.1 there is."""

POSTGRESQL_PACKAGE = "org.postgresql:postgresql:42.7.8"
MARIADB_PACKAGE = "org.mariadb.jdbc:mariadb-java-client:3.5.6"
"""Drivers, only if a database of that kind is read."""

AVRO_PACKAGE = "org.apache.spark:spark-avro_2.13:4.1.1"
"""Only if Avro files are read. The newest of 4.1 there is; tried with pyspark 4.1.4."""

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
"""Delta asks for the first two, and Spark ships the same ones; the committers ask for what other clouds need."""

PACKAGES_KEY = "spark.strandline.packages"
"""The setting that names a session's packages, whichever way they came (see :func:`jar_settings`)."""

OLDEST_JAVA, NEWEST_JAVA = 17, 21

# Where packages put Java when they do not put it on PATH.
_JAVA_HOMES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)
_HOW_TO_GET_JAVA = "install Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"


@dataclass(frozen=True)
class Java:
    """A Java that was asked for its version.

    Attributes:
        home: what JAVA_HOME has to be to get it.
        text: all that ``java -version`` says.
        version: such as ``17.0.15``.
        on_path: whether Spark finds it without JAVA_HOME.
    """

    home: Path
    text: str
    version: str
    on_path: bool = False

    @property
    def major(self) -> int:
        """17 for 17.0.15, 8 for 1.8.0_392."""
        first, _, rest = self.version.partition(".")
        return int(re.sub(r"\D.*", "", rest if first == "1" else first) or 0)

    @property
    def fits(self) -> bool:
        """Whether Spark runs on it; 17 and 21 are the supported ones, those between them are let through."""
        return OLDEST_JAVA <= self.major <= NEWEST_JAVA


@lru_cache(maxsize=8)
def _probe(binary: str, on_path: bool = False) -> Java | None:
    try:
        answer = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # JAVA_TOOL_OPTIONS and its like announce themselves first.
    text = "\n".join(line for line in answer.stderr.splitlines() if "Picked up" not in line)
    version = re.search(r'version "([^"]+)"', text)
    return Java(Path(binary).resolve().parent.parent, text, version[1], on_path) if version else None


def find_java() -> Java | None:
    """The Java that Spark should start, or None.

    JAVA_HOME decides alone if it is set, because Spark obeys it; then PATH; then the usual places. A Java that does not
    fit is only returned if there is no better one.
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
    """All that ``java -version`` says of the Java that Spark should start; None if there is none."""
    java = find_java()
    return java.text if java else None


def java_problem() -> str | None:
    """One line on what is wrong with this machine's Java and what to do; None if it fits."""
    java = find_java()
    if java and java.fits:
        return None
    named = os.environ.get("JAVA_HOME")
    found = f"Java {java.version}" if java else "none that starts"
    if named:
        return f"Java: expected {OLDEST_JAVA} or {NEWEST_JAVA}, found {found} in JAVA_HOME={named}: point it at Java 17 or 21, or unset it"
    return f"Java: expected {OLDEST_JAVA} or {NEWEST_JAVA}, found {found}: {_HOW_TO_GET_JAVA}"


def spark_home() -> Path:
    """The folder of Spark, found without importing pyspark.

    Raises:
        FileNotFoundError: pyspark is not installed.
    """
    spec = util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("expected pyspark in this environment, found none: install requirements.lock")
    return Path(spec.origin).parent


def spark_jars() -> Path | None:
    """The folder of Spark's own jars; None if it is not installed."""
    with suppress(FileNotFoundError):
        return spark_home() / "jars"
    return None


def _key(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def archive_path(cache_dir: Path, packages: Iterable[str]) -> Path:
    """Where the archive for these packages belongs, whether it is there or not.

    Java refuses an archive of another Java or of jars that were installed later, so all of these are in the name.

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
    """Note the size of a finished archive: Java checks nothing and dies of SIGBUS on one that was cut short."""
    archive.with_suffix(".size").write_text(str(archive.stat().st_size))


def is_sealed(archive: Path) -> bool:
    """Whether the archive is there and whole."""
    try:
        return archive.stat().st_size == int(archive.with_suffix(".size").read_text())
    except (OSError, ValueError):
        return False


def submit_options(cache_dir: Path, packages: Iterable[str]) -> str:
    """Flags for SPARK_SUBMIT_OPTS that use the archive; empty if there is none.

    An archive has the classes of Spark, not those of the packages, so the default packages' one serves all others too.
    ``-Xlog:disable``: if it does not fit after all, Java continues without it, and its warning would go to stdout, where
    a command's JSON is.

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
    """JVM flags as one text that Spark's launcher splits into the same flags again, whatever a path has in it."""
    escaped = (re.sub(r"([\"\\])", r"\\\1", flag) for flag in flags)
    return " ".join(f'"{flag}"' if re.search(r"[\s'\"\\]", flag) else flag for flag in escaped)


def java_environment() -> dict[str, str]:
    """What a process must set so that Spark starts the Java of :func:`find_java`; mostly nothing."""
    java = find_java()
    if java is None or java.on_path or "JAVA_HOME" in os.environ:
        return {}
    return {"JAVA_HOME": str(java.home)}


def jar_settings(cache_dir: Path | None, packages: Iterable[str]) -> dict[str, str]:
    """Spark settings that bring these packages into a session.

    Ivy takes 2 to 3 s to find out again what it has in its cache. So the files of an earlier resolution are named if
    all of them are still there; the coordinates otherwise.

    Args:
        cache_dir: the folder of lists; None always gives the coordinates.
        packages: Maven coordinates.
    """
    wanted = tuple(packages)
    named = {PACKAGES_KEY: ",".join(wanted)}
    if cache_dir is not None and (jars := _remembered(_list_path(cache_dir, wanted))):
        return named | {"spark.jars": ",".join(jars)}
    return named | {"spark.jars.packages": ",".join(wanted), "spark.jars.excludes": ",".join(JAR_EXCLUDES)}


def remember_jars(cache_dir: Path, packages: Iterable[str], jars: str) -> None:
    """Note what Ivy resolved; a cache that cannot be written is no reason to fail.

    Args:
        cache_dir: the folder of lists.
        packages: Maven coordinates that were resolved.
        jars: the session's ``spark.jars`` afterwards, of a session that added no others.
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


def _remembered(path: Path) -> list[str]:
    try:
        sizes: dict[str, int] = json.loads(path.read_text())
        whole = all(_file(uri).stat().st_size == size for uri, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return []
    return list(sizes) if whole else []


def _file(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
