"""Loads published files, each alone, and compares every table with another reader's rows.

See docs/explanation/real-files.md.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import yaml

from benchmarks.measure import OUT, report
from benchmarks.real_files.comparing import any_value, compare
from benchmarks.real_files.packages import PACKAGES, RealFile, take_files
from benchmarks.real_files.readers import Unreadable, read
from partitions.ddl import RESERVED

Outcome = Literal["equal", "refused", "wrong", "internal"]
OUTCOMES: Sequence[Outcome] = ("equal", "refused", "wrong", "internal")

FOLDER = OUT / "real_files"
_FLOW = "flow"
_OF_A_MACHINE = re.compile(
    r"Traceback|\bat [\w.$]+\([\w]+\.(java|scala)|\b(java|scala|org\.apache|io\.delta|com\.fasterxml)\.\w+|\w+Exception\b|\[[A-Z_.]{8,}\]"
)
"""What no message for a person has."""

_REMEDY = re.compile(r"options(?:: |` of the source, such as `)(\{[^}]*\})")
_PLAIN = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".ndjson": "ndjson",
}
_PLAIN |= {".jsonl": "ndjson", ".xml": "xml", ".xlsx": "excel", ".xls": "excel"}


@dataclass
class Verdict:
    """The result for a file.

    Attributes:
        package: its package.
        path: its path in the package.
        form: its format.
        outcome: see :data:`OUTCOMES`.
        rows: the rows of the table.
        why: the message of a refusal or an error, or the first difference.
        code: the code of a refusal.
        remedy: the option in the refusal's message with which the file was loaded after all.
        init: the error of `strandline init`.
        seconds: the time that it took.
    """

    package: str
    path: str
    form: str
    outcome: Outcome
    rows: int = 0
    why: str = ""
    code: str = ""
    remedy: str = ""
    init: str = ""
    seconds: float = 0.0


def main(arguments: Sequence[str]) -> int:
    """Fetch, load and compare; return 1 if a file is wrong, or its error is not for people."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks real_files", description=__doc__)
    parser.add_argument("--packages", nargs="*", default=[], help="names of packages; without them all")
    parser.add_argument("--formats", nargs="*", default=[], help="such as csv or parquet")
    parser.add_argument("--path", default="", help="a part of the paths of files")
    parser.add_argument("--limit", type=int, help="so many files at most, of all packages and formats")
    parser.add_argument(
        "--workers", type=int, default=2, help="processes that run the product at the same time"
    )
    chosen = parser.parse_args(arguments)
    files = _spread(
        [
            real
            for real in _all_files(chosen.packages)
            if chosen.path in real.path and (not chosen.formats or _form_of(real.name) in chosen.formats)
        ],
        chosen.limit,
    )
    verdicts = _judge_all(files, chosen.workers)
    return _report(verdicts)


def _all_files(names: Sequence[str]) -> list[RealFile]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    files: list[RealFile] = []
    for package in PACKAGES:
        if not names or package.name in names:
            files += take_files(package, FOLDER)
    return files


def _spread(files: Sequence[RealFile], limit: int | None) -> list[RealFile]:
    if limit is None or limit >= len(files):
        return list(files)
    return [files[index * len(files) // limit] for index in range(limit)]


def _form_of(name: str) -> str:
    return next((form for ending, form in _PLAIN.items() if ending in name.lower()), "other")


def _judge_all(files: Sequence[RealFile], workers: int) -> list[Verdict]:
    """Judge each file with one warm Spark, and print each result that is not equal."""
    from tests.support.engine import spark_server

    verdicts: list[Verdict] = []
    with (
        tempfile.TemporaryDirectory(prefix="strandline-real-") as folder,
        spark_server(Path(folder)) as remote,
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
    ):
        folders = (Path(folder, f"{number:03}") for number in range(len(files)))
        pending = [pool.submit(judge, real, own, remote) for real, own in zip(files, folders, strict=False)]
        for number, future in enumerate(as_completed(pending), start=1):
            verdict = future.result()
            verdicts.append(verdict)
            if verdict.outcome != "equal" or verdict.remedy:
                print(f"{number}/{len(files)} {_line(verdict)}", flush=True)
    places = {(real.package, real.path): place for place, real in enumerate(files)}
    return sorted(verdicts, key=lambda verdict: places[verdict.package, verdict.path])


def judge(real: RealFile, folder: Path, remote: str) -> Verdict:
    """Load a file in a project of its own and compare its table.

    If a refusal's message names an option, the load is tried again with it.
    """
    started, verdict = time.monotonic(), Verdict(real.package, real.path, _form_of(real.name), "internal")
    try:
        _judge(real, folder, remote, verdict, {})
        remedies: dict[str, Any] = {}
        while verdict.outcome == "refused" and (remedy := _remedy(verdict.why, remedies)):
            remedies |= remedy
            again = Verdict(real.package, real.path, verdict.form, "internal", init=verdict.init)
            _judge(real, folder, remote, again, remedies)
            again.remedy = json.dumps(remedies)
            verdict = again
    except Exception:  # noqa: BLE001 - a fault of the proof is told, too, and counts
        verdict.outcome, verdict.why = "internal", f"the proof failed: {traceback.format_exc()[-1500:]}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    verdict.seconds = time.monotonic() - started
    return verdict


def _remedy(message: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a message names, unless they were tried already."""
    for text in _REMEDY.findall(message):
        with suppress(yaml.YAMLError):
            options = yaml.safe_load(text)
            if isinstance(options, dict) and options and not options.keys() & before.keys():
                return options
    return {}


def _judge(real: RealFile, folder: Path, remote: str, verdict: Verdict, options: Mapping[str, Any]) -> None:
    from deltalake import DeltaTable

    shutil.rmtree(folder, ignore_errors=True)
    landing, project = folder / "landing", folder / "project"
    landing.mkdir(parents=True)
    file = landing / real.name
    shutil.copyfile(real.file, file)
    definition = _defined(project, landing, real, verdict, options)
    source = definition["source"]
    verdict.form = str(source["format"])
    code, out, crash = _cli(remote, "--project", str(project), "--json", "run", _FLOW)
    try:
        document = json.loads(out)
    except ValueError:
        verdict.why = f"exit {code}, {crash or out[-800:]}"
        return
    run = document[0] if isinstance(document, list) else document
    if error := run.get("error"):
        message = str(error.get("message"))
        verdict.why, verdict.code = message, str(error.get("code"))
        fit = (
            verdict.code != "internal"
            and not _OF_A_MACHINE.search(message.replace(real.name, ""))
            and real.name in message
        )
        verdict.outcome = "refused" if fit or code == 2 else "internal"
        return
    tables = list(project.rglob("_delta_log"))
    if not tables:
        verdict.outcome, verdict.why = _without_table(file, source)
        return
    table = DeltaTable(str(tables[0].parent)).to_pyarrow_table()
    table = table.drop_columns([name for name in RESERVED if name in table.column_names])
    verdict.rows = table.num_rows
    try:
        difference = compare(read(file, verdict.form, source.get("options") or {}, table.schema), table)
    except Unreadable as error:
        verdict.outcome, verdict.why = (
            "wrong",
            f"loaded {table.num_rows} rows, and the other reader refuses: {error}",
        )
        return
    verdict.outcome = "equal" if difference is None else "wrong"
    if difference:
        verdict.why = (
            f"{difference.missing} rows are missing, {difference.additional} are too many; {difference.first}"
        )


def _without_table(file: Path, source: Mapping[str, Any]) -> tuple[Outcome, str]:
    """Return the outcome of a load without a table: right if the file has no row, or no value."""
    import pyarrow as pa

    try:
        options = source.get("options") or {}
        rows = [row for row in read(file, str(source["format"]), options, pa.schema([])) if any_value(row)]
    except Unreadable as error:
        return "wrong", f"no table and no error, and the other reader refuses: {error}"
    return (
        ("wrong", f"no table and no error, and the file has {len(rows)} rows")
        if rows
        else ("equal", "no rows")
    )


def _defined(
    project: Path, landing: Path, real: RealFile, verdict: Verdict, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the project with the dataflow of `strandline init`, or a plain one if that fails."""
    path = project / "dataflows" / f"{_FLOW}.yaml"
    code, out, crash = _cli("", "init", str(project), "--from", str(landing), "--name", _FLOW)
    if code or not path.exists():
        verdict.init = crash or out[-500:]
        path.parent.mkdir(parents=True, exist_ok=True)
        (project / "platform.yaml").write_text("{}\n")
        plain = {"type": "files", "path": "../landing", "format": _form_of(real.name)}
        path.write_text(
            yaml.safe_dump({"source": plain, "watermark": {"type": "path"}, "target": {"load": "append"}})
        )
    definition: dict[str, Any] = yaml.safe_load(path.read_text())
    (project / "platform.yaml").write_text("{state: ./state, lake: ./lake}\n")
    if options:
        definition["source"]["options"] = (definition["source"].get("options") or {}) | dict(options)
        path.write_text(yaml.safe_dump(definition))
    return definition


def _cli(remote: str, *words: str) -> tuple[int, str, str]:
    """Call ``strandline`` in this process; return its exit code, its output, and its stack trace."""
    from click.testing import CliRunner

    from platform_assets.cli.main import strandline
    from platform_assets.project.project import SPARK_REMOTE

    result = CliRunner(env={SPARK_REMOTE: remote} if remote else {}).invoke(strandline, list(words))
    crash = ""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        crash = "".join(traceback.format_exception(*result.exc_info))[-1500:] if result.exc_info else "crash"
    return (
        result.exit_code,
        result.stdout or result.stderr,
        crash or (result.stderr[-800:] if result.exit_code else ""),
    )


def _line(verdict: Verdict) -> str:
    remedy = f" [with {verdict.remedy}]" if verdict.remedy else ""
    return f"{verdict.outcome} {verdict.form} {verdict.package}: {verdict.path}{remedy}: {verdict.why}"


def _report(verdicts: Sequence[Verdict]) -> int:
    """Print the counts, then each result that is not equal; write all of them to a file."""
    counts = Counter((verdict.form, verdict.outcome) for verdict in verdicts)
    forms = sorted({verdict.form for verdict in verdicts})
    rows: list[dict[str, Any]] = [
        {"format": form}
        | {outcome: counts[form, outcome] for outcome in OUTCOMES}
        | {"by its remedy": sum(v.form == form and v.outcome == "equal" and bool(v.remedy) for v in verdicts)}
        for form in forms
    ]
    rows.append(
        {"format": "all"} | {name: sum(row[name] for row in rows) for name in rows[0] if name != "format"}
    )
    notes = [_line(verdict) for outcome in OUTCOMES[1:] for verdict in verdicts if verdict.outcome == outcome]
    notes += [f"init: {v.package}: {v.path}: {v.init}" for v in verdicts if v.init]
    notes.append(
        f"{sum(v.rows for v in verdicts):,} rows in tables; {sum(v.seconds for v in verdicts):.0f} s of runs"
    )
    report("real_files", rows, [note.replace("[", "\\[") for note in notes])
    (OUT / "real_files_verdicts.json").write_text(json.dumps([asdict(v) for v in verdicts], indent=1))
    return int(any(verdict.outcome in ("wrong", "internal") for verdict in verdicts))
