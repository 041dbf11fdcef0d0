"""Fetch Spark's jars, and make the class-data archive from which Spark starts some seconds faster.

See docs/explanation/adr/0002-a-class-data-archive.md. A run needs neither: it fetches jars itself, and
starts without the archive.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.spark_runtime import (
    find_java,
    is_sealed,
    jar_settings,
    java_environment,
    quoted,
    seal,
)

FETCH_SECONDS = 1800
_JARS, _TRAINED = "strandline-jars ", "strandline-trained"


@dataclass(frozen=True)
class Preparation:
    """The result of :func:`prepare_spark`.

    Attributes:
        jars: the jars that Spark has resolved, with commas between them; None: Spark did not start.
        archive: the archive; None: there is none.
        problem: what went wrong, in a line; None if nothing did.
    """

    jars: str | None
    archive: Path | None
    problem: str | None = None


def is_prepared(cache: Path, packages: Sequence[str], archive: Path) -> bool:
    """Return whether all jars of some packages are known, and the archive is there."""
    return is_sealed(archive) and "spark.jars" in jar_settings(cache, packages)


def prepare_spark(
    cache: Path, packages: Sequence[str], archive: Path, log: Path, notify: Callable[[str], None]
) -> Preparation:
    """Start Spark once, so that Ivy fetches jars, and make the archive if it is missing.

    Args:
        cache: the folder of lists of jars.
        packages: Maven coordinates.
        archive: where the archive lies, or is to lie (:func:`resources.spark_runtime.archive_path`).
        log: file for the output of Spark.
        notify: called with a line for people after a step that takes seconds.
    """
    cache.mkdir(parents=True, exist_ok=True)
    draft = archive.with_suffix(f".{os.getpid()}")
    try:
        resolved, trained = _train(draft, cache, packages, log, notify)
        if resolved is None:
            return Preparation(None, None, _reason(log))
        if is_sealed(archive):
            return Preparation(resolved, archive)
        problem = _keep(draft, archive, log, trained=trained)
        return Preparation(resolved, None if problem else archive, problem)
    finally:
        draft.unlink(missing_ok=True)


def _train(
    draft: Path, cache: Path, packages: Sequence[str], log_file: Path, notify: Callable[[str], None]
) -> tuple[str | None, bool]:
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
    environment = os.environ | java_environment()
    environment |= {"SPARK_SUBMIT_OPTS": quoted(*flags), "SPARK_PRINT_LAUNCH_COMMAND": "1"}
    resolved, trained = None, False
    with (
        log_file.open("w") as log,
        tempfile.TemporaryDirectory(prefix="strandline-") as folder,
        subprocess.Popen(
            [sys.executable, "-m", _module_name(), str(cache), *packages],
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
            if line.startswith(_JARS):
                resolved = line.removeprefix(_JARS).strip()
                notify(f"{resolved.count(',') + 1} jars are there")
            trained = trained or line.startswith(_TRAINED)
        timer.cancel()
    return resolved, trained


def _module_name() -> str:
    """Return the name under which this module was imported: in a wheel it is another one."""
    return __spec__.name if __spec__ is not None else __name__


def _keep(draft: Path, archive: Path, log: Path, *, trained: bool) -> str | None:
    """Move the archive to its place if Java accepts it, else return why not; never raise."""
    if not trained or not draft.exists():
        return _reason(log)
    try:
        if problem := _refusal(draft, log):
            return problem
        _drop_old(archive)
        draft.replace(archive)
        seal(archive)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None


def _refusal(draft: Path, log: Path) -> str | None:
    """Return why Java cannot use the archive, or None.

    It tries a Java that must use it (-Xshare:on), on Spark's class path.
    """
    installation = find_java()
    launched = re.search(
        r"^Spark Command: .*? -cp (.+?) -[XD]", log.read_text(errors="replace"), re.MULTILINE
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


def _reason(log: Path) -> str:
    """Return the line of the log that best explains a failure."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if re.search(r"unresolved dependency|not found|UnknownHost|timed out|Exception|Error", line)
    ]
    return (telling or lines or ["nothing in the log"])[0][:200]


def _work(cache: Path, packages: Sequence[str]) -> None:
    """Do the work that fills the archive: a load of NDJSON into Delta, a MERGE and a read."""
    from pyspark.sql import Observation, SparkSession
    from pyspark.sql import functions as F

    settings = jar_settings(cache, packages) | {
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
    _tell(f"{_JARS}{spark.conf.get('spark.jars')}")
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
    _tell(_TRAINED)


def _tell(line: str) -> None:
    """Write a line for the process that has started this one."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _work(Path(sys.argv[1]), sys.argv[2:])
