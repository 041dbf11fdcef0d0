"""Builds the jar of the log store from its source; ``python -m scripts.log_store`` writes it.

The same source gives the same bytes on every machine: the compiler is one version of Eclipse's, which a
JRE runs; entries have one order and
one time, and are not compressed. Ivy, which Spark brings, fetches the compiler from Maven Central once.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from resources.spark.log_store import CLASS, JAR
from resources.spark_runtime import find_java, java_problem, spark_jars

COMPILER = ("org.eclipse.jdt", "ecj", "3.38.0")
COMPILER_SHA256 = "97c566b120009c203a2fc8b291f4a9adbc171cf1ccb70f06f6b4e1828c00ce8e"
STORAGE = ("io.delta", "delta-storage", "4.4.0")
SOURCE = JAR.with_name(f"{CLASS.rpartition('.')[2]}.java")
_SINCE_ZIP = (1980, 1, 1, 0, 0, 0)
_MANIFEST = b"Manifest-Version: 1.0\r\n\r\n"


class NotBuilt(Exception):
    """The jar cannot be built here; the message says why."""


def build(target: Path, work: Path) -> None:
    """Build the jar.

    Args:
        target: the file to write.
        work: an empty folder for intermediate files.

    Raises:
        NotBuilt: no Java, no network on the first build, or an error in the source.
    """
    if problem := java_problem():
        raise NotBuilt(problem)
    compiler, storage = _fetched(COMPILER, work), _fetched(STORAGE, work)
    if hashlib.sha256(compiler.read_bytes()).hexdigest() != COMPILER_SHA256:
        raise NotBuilt(f"{compiler}: expected the SHA-256 {COMPILER_SHA256}")
    jars = spark_jars()
    assert jars is not None
    class_path = [storage, *sorted(jars.glob("hadoop-client-api-*.jar"))]
    # -g:source,lines: what stack traces show. No annotation processors, and no warnings of others' classes.
    _java(
        "-jar",
        str(compiler),
        *("-17", "-proc:none", "-nowarn", "-g:source,lines", "-encoding", "UTF-8"),
        *("-classpath", ":".join(map(str, class_path)), "-d", str(work / "classes"), str(SOURCE)),
    )
    _pack(work / "classes", target)


def _fetched(package: tuple[str, str, str], work: Path) -> Path:
    """Return a package's own jar from Ivy's cache, without its dependencies."""
    jars = spark_jars()
    assert jars is not None
    (ivy,) = jars.glob("ivy-*.jar")
    _java(
        *("-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-dependency", *package),
        *("-notransitive", "-confs", "default", "-types", "jar", "-retrieve", str(work / "[artifact].[ext]")),
    )
    return work / f"{package[1]}.jar"


def _java(*arguments: str) -> None:
    java = find_java()
    assert java is not None
    result = subprocess.run(
        [str(java.home / "bin" / "java"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if result.returncode:
        raise NotBuilt(f"java {' '.join(arguments)}: {result.stdout}{result.stderr}")


def _pack(classes: Path, target: Path) -> None:
    files = sorted(path for path in classes.rglob("*") if path.is_file())
    contents = {path.relative_to(classes).as_posix(): path.read_bytes() for path in files}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as jar:
        for name, data in {"META-INF/MANIFEST.MF": _MANIFEST, **contents}.items():
            entry = zipfile.ZipInfo(name, _SINCE_ZIP)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            jar.writestr(entry, data)


def main() -> int:
    """Write the jar into the package; return the exit code."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        try:
            build(JAR, Path(folder))
        except NotBuilt as error:
            print(error, file=sys.stderr)
            return 1
    print(f"{JAR}: {JAR.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
