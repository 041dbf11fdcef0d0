"""Fetches Spark's jars and writes the class-data archive; `make setup` runs it.

Run it as `python -m scripts.jars VERB` in the checkout.

``java`` needs no installed package: the set-up checks Java before it downloads 1 GB. ``fetch`` starts one
Spark session, so that
Ivy fills its cache, does some work in it, and lets Java write an archive of the classes that this loaded.
Only missing jars are a
failure: runs work without the archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
    jar_settings,
    java_problem,
    remember_jars,
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
    from resources.spark.class_archive import (  # java() runs without installed packages
        is_prepared,
        prepare_spark,
    )

    archive = archive_path(CACHE, PACKAGES)
    if all(is_prepared(CACHE, packages, archive) for packages in (PACKAGES, OF_DEMO, WITH_ALL)):
        say("jars and class-data archive exist already")
        return 0
    say("fetching Spark's jars (90 MB, once per machine) and making the class-data archive, about a minute")
    prepared = prepare_spark(CACHE, WITH_ALL, archive, LOG, say)
    if prepared.jars is None:
        print(
            f"jars: expected Spark to start with {', '.join(WITH_ALL)}, found: {prepared.problem}. See {LOG}, then run this again",
            file=sys.stderr,
        )
        return 1
    _remember(prepared.jars)
    if prepared.archive is None:
        say(
            f"no class-data archive ({prepared.problem}): runs work without it, and start some seconds slower"
        )
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


if __name__ == "__main__":
    verbs = {"java": java, "fetch": fetch}
    sys.exit(verbs[sys.argv[1]]())
