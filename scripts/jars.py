"""Fetches Spark's jars and writes the class-data archive; `make setup` runs it.

Run it as `python -m scripts.jars VERB` in the checkout.

``java`` needs no installed package: the set-up checks Java before it downloads 1 GB. ``fetch`` starts one
Spark session, so that
Ivy fills its cache, does some work in it, and lets Java write an archive of the classes that this loaded.
Only missing jars are a
failure: runs work without the archive.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from resources.spark_runtime import (
    AVRO_PACKAGE,
    DELTA_PACKAGE,
    ICEBERG_PACKAGE,
    MARIADB_PACKAGE,
    POSTGRESQL_PACKAGE,
    archive_path,
    find_java,
    is_sealed,
    jar_settings,
    java_environment,
    java_problem,
    quoted,
    remember_jars,
    seal,
    spark_jars,
)

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".strandline" / "cache"
LOG = ROOT / ".strandline" / "jars.log"
PACKAGES = (DELTA_PACKAGE,)
"""Packages of every session."""
OF_DEMO = (DELTA_PACKAGE, POSTGRESQL_PACKAGE, ICEBERG_PACKAGE)
"""Packages of the demo."""
WITH_ALL = (DELTA_PACKAGE, POSTGRESQL_PACKAGE, MARIADB_PACKAGE, AVRO_PACKAGE, ICEBERG_PACKAGE)
"""Packages of the tests: one start of Spark fetches all of them."""
POSTGRESQL_FILES, MARIADB_FILES = ("org.postgresql_", "org.checkerframework_"), ("org.mariadb.jdbc_",)
AVRO_FILES = ("org.apache.spark_spark-avro", "org.tukaani_", "org.scala-lang.modules_")
ICEBERG_FILES = ("org.apache.iceberg_",)
"""Prefixes of the files of drivers, readers and formats in Ivy's cache."""
FETCH_SECONDS = 1800
JARS, TRAINED = "strandline-jars ", "strandline-trained"


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"  {text}", flush=True)


def java() -> int:
    """Print the version of Java that will be used, or its problem; return the exit code."""
    if problem := java_problem():
        print(problem, file=sys.stderr)
        return 1
    installation = find_java()
    assert installation is not None
    note = "" if installation.major in (17, 21) else " (usually works; supported are 17 and 21)"
    say(f"Java {installation.version}{note}")
    return 0


def fetch() -> int:
    """Fetch the jars and write the archive if either is missing; return the exit code."""
    archive = archive_path(CACHE, PACKAGES)
    if is_sealed(archive) and all(
        "spark.jars" in jar_settings(CACHE, packages) for packages in (PACKAGES, OF_DEMO, WITH_ALL)
    ):
        say("jars and class-data archive exist already")
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    draft = archive.with_suffix(f".{os.getpid()}")
    say("fetching Spark's jars (90 MB, once per machine) and making the class-data archive, about a minute")
    try:
        resolved, trained = _train(draft)
        if resolved is None:
            print(
                f"jars: expected Spark to start with {', '.join(WITH_ALL)}, found: {_reason()}. See {LOG}, then run this again",
                file=sys.stderr,
            )
            return 1
        _remember(resolved)
        problem = _keep(draft, archive, trained)
    finally:
        draft.unlink(missing_ok=True)
    if problem:
        say(f"no class-data archive ({problem}): runs work without it, and start some seconds slower")
    else:
        say(f"class-data archive of {archive.stat().st_size / 1e6:.0f} MB: Spark starts some seconds faster")
    return 0


def class_path(artifacts: Sequence[str]) -> list[Path]:
    """Return the jar files of artifacts and their dependencies, fetched by Ivy if missing.

    They are for a server that is no part of Spark.

    Args:
        artifacts: each ``group:name:version``, or ``group:name:version:classifier``.

    Raises:
        RuntimeError: if they cannot be fetched; the message has the end of Ivy's output.
    """
    if resolved := jar_settings(CACHE, artifacts).get("spark.jars"):
        return [Path(file) for file in resolved.split(",")]
    installation, jars = find_java(), spark_jars()
    assert installation is not None
    assert jars is not None
    (ivy,) = jars.glob("ivy-*.jar")
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        ivy_file, listed = Path(folder, "ivy.xml"), Path(folder, "files")
        ivy_file.write_text(_wanted_of_ivy(artifacts))
        java_binary = str(installation.home / "bin" / "java")
        command = [java_binary, "-jar", str(ivy), "-warn", "-ivy", str(ivy_file), "-cachepath", str(listed)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
        if result.returncode != 0 or not listed.exists():
            raise RuntimeError(
                f"cannot fetch {', '.join(artifacts)}: {(result.stdout + result.stderr)[-2000:]}"
            )
        files = [file for file in listed.read_text().strip().split(os.pathsep) if file.endswith(".jar")]
    remember_jars(CACHE, artifacts, ",".join(files))
    return [Path(file) for file in files]


def _wanted_of_ivy(artifacts: Sequence[str]) -> str:
    modules: dict[tuple[str, ...], list[str]] = {}
    for artifact in artifacts:
        group, name, version, *classifier = artifact.split(":")
        modules.setdefault((group, name, version), []).append(*classifier or [""])
    lines = []
    for (group, name, version), classifiers in modules.items():
        lines.append(f'<dependency org="{group}" name="{name}" rev="{version}" conf="default->default">')
        lines += [
            f'<artifact name="{name}" type="jar" ext="jar"{_classifier(classifier)}/>'
            for classifier in classifiers
        ]
        lines.append("</dependency>")
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="strandline" module="files"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{"".join(lines)}</dependencies></ivy-module>'
    )


def _classifier(name: str) -> str:
    return f' m:classifier="{name}"' if name else ""


def _remember(resolved: str) -> None:
    """Store the files of all sets of packages."""
    sets = {
        WITH_ALL: (),
        OF_DEMO: (*MARIADB_FILES, *AVRO_FILES),
        PACKAGES: (*MARIADB_FILES, *AVRO_FILES, *ICEBERG_FILES, *POSTGRESQL_FILES),
    }
    for packages, drivers in sets.items():
        files = [jar for jar in resolved.split(",") if not jar.rpartition("/")[2].startswith(drivers)]
        remember_jars(CACHE, packages, ",".join(files))


def _train(draft: Path) -> tuple[str | None, bool]:
    """Run the work in a new process; return its session's jars, and whether it finished.

    Its output goes through a pipe that Java inherits, so the pipe ends when Java does; Java writes the
    archive when it exits.
    """
    flags = (
        f"-XX:ArchiveClassesAtExit={draft}",
        "-Xlog:disable",
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:TieredStopAtLevel=1",
    )
    environment = os.environ | java_environment() | {"PYTHONPATH": str(ROOT)}
    environment |= {"SPARK_SUBMIT_OPTS": quoted(*flags), "SPARK_PRINT_LAUNCH_COMMAND": "1"}
    resolved, trained = None, False
    started = time.monotonic()
    with (
        LOG.open("w") as log,
        tempfile.TemporaryDirectory(prefix="strandline-") as folder,
        subprocess.Popen(
            [sys.executable, "-m", "scripts.jars", "train"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        # The end of this process ends Java too: it holds Java's standard input.
        timer = threading.Timer(FETCH_SECONDS, process.kill)
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            log.flush()
            if line.startswith(JARS):
                resolved = line.removeprefix(JARS).strip()
                say(f"{resolved.count(',') + 1} jars in Ivy's cache after {time.monotonic() - started:.0f} s")
            trained = trained or line.startswith(TRAINED)
        timer.cancel()
    return resolved, trained


def _keep(draft: Path, archive: Path, trained: bool) -> str | None:
    """Move the archive to its place if Java accepts it, else return why not; never raise."""
    if not trained or not draft.exists():
        return _reason()
    try:
        if problem := _refusal(draft):
            return problem
        _drop_old(archive)
        draft.replace(archive)
        seal(archive)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None


def _refusal(draft: Path) -> str | None:
    """Return why Java cannot use the archive, or None.

    It tries a Java that must use it (-Xshare:on), on Spark's class path.
    """
    installation = find_java()
    launched = re.search(
        r"^Spark Command: .*? -cp (.+?) -[XD]", LOG.read_text(errors="replace"), re.MULTILINE
    )
    if installation is None or launched is None:
        return "its class path is not known"
    if " " in launched[1]:
        return "Java archives nothing from jars whose path has a space"
    command = [
        str(installation.home / "bin" / "java"),
        f"-XX:SharedArchiveFile={draft}",
        "-Xshare:on",
        "-cp",
        launched[1],
        "-version",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return None if answer.returncode == 0 else f"Java refuses it, exit code {answer.returncode}"


def _drop_old(archive: Path) -> None:
    """Remove the archives of earlier Java or Spark versions, 180 MB each, which nothing uses any more."""
    for old in [*archive.parent.glob("spark-*.jsa"), *archive.parent.glob("spark-*.size")]:
        if old.stem != archive.stem:
            old.unlink(missing_ok=True)


def _reason() -> str:
    """Return the line of the log that best explains a failure."""
    lines = [line.strip() for line in LOG.read_text(errors="replace").splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if re.search(r"unresolved dependency|not found|UnknownHost|timed out|Exception|Error", line)
    ]
    return (telling or lines or ["nothing in the log"])[0][:200]


def train() -> int:
    """Do the work that fills the archive: a load of NDJSON into Delta, a MERGE and a read."""
    from pyspark.sql import Observation, SparkSession
    from pyspark.sql import functions as F

    settings = jar_settings(CACHE, WITH_ALL) | {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=dict(settings)).getOrCreate()
    print(f"{JARS}{spark.conf.get('spark.jars')}", flush=True)
    source, table = Path("source.ndjson").resolve(), Path("table").resolve()
    source.write_text(
        "".join(
            json.dumps({"id": n, "at": "2024-01-01T00:00:00Z", "value": n / 2}) + "\n" for n in range(100)
        )
    )
    rows = spark.read.schema("id LONG, at TIMESTAMP, value DOUBLE").json(str(source))
    for version in (1, 2):
        observation = Observation()
        observed = rows.observe(observation, F.count(F.lit(1)).alias("rows"), F.max("at").alias("high"))
        observed.write.format("delta").mode("append").option("txnAppId", "train").option(
            "txnVersion", str(version)
        ).save(str(table))
        assert observation.get["rows"] == 100
    rows.createOrReplaceTempView("source")
    merge = "MERGE INTO delta.`{}` t USING source s ON t.id = s.id + 50 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    spark.sql(merge.format(table))
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "id < 100").save(str(table))
    spark.read.format("delta").load(str(table)).groupBy("at").count().collect()
    spark.stop()
    print(TRAINED, flush=True)
    return 0


if __name__ == "__main__":
    verbs = {"java": java, "fetch": fetch, "train": train}
    sys.exit(verbs[sys.argv[1]]())
