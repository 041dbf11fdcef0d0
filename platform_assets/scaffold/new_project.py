"""Writes the files of a new project; existing files stay as they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import yaml

from partitions.errors import ConfigurationError
from platform_assets.installation import INSTALLED, ROOT
from platform_assets.scaffold.first_test import first_test
from platform_assets.scaffold.readme import readme

FirstKind = Literal["path", "offset", "column", "window", "stream"]
"""A kind of watermark that a first dataflow can have."""

TEMPLATES: tuple[FirstKind, ...] = get_args(FirstKind)
"""The kinds of watermark that a first dataflow can have, the default first."""

FirstSource = Literal["files", "jdbc", "api", "python", "table"]
"""A type of source that a first dataflow can have."""

SOURCES: Mapping[FirstKind, tuple[FirstSource, ...]] = {
    "path": ("files",),
    "offset": ("table",),
    "column": ("jdbc", "api", "python", "table"),
    "window": ("jdbc", "files", "api", "python", "table"),
    "stream": ("files", "table"),
}
"""The types of source that a first dataflow of each kind can have, the default first."""

_LOOK_BACK = "  # backward: {days: 7}"
"""A line of the template of a column, which a table of the lake needs: its rows may come late."""

_LANDING = "path: ./landing"
"""Marks a dataflow whose files arrive in a folder of the project, which is then created."""

_CONNECTION = re.compile(r"  (\w+): \{type: ")
"""A line of platform.yaml with a connection; it becomes a comment unless a dataflow uses the connection."""

_TEMPLATES_FOLDER = Path(__file__).resolve().parent
_PUBLIC_MODULE = "strandline" if INSTALLED else "platform_assets.public"

_DEFINITIONS = f'''"""Dagster's way into this project: `dagster dev` in this folder loads it by workspace.yaml."""

from pathlib import Path

from {_PUBLIC_MODULE} import build_definitions

defs = build_definitions(Path(__file__).parent)
'''

_WORKSPACE = """\
# `dagster dev` in this folder loads this location; in a workspace of your own the entry is the same, with a path from there.
load_from:
  - python_file: {{relative_path: definitions.py, location_name: {name}}}
"""

_GITIGNORE = """\
# State, tables and Dagster's runs, where platform.yaml leaves them in this folder.
.strandline/
__pycache__/
# What `dagster dev` makes without a DAGSTER_HOME.
.tmp_dagster_home_*/
"""


_DAGSTER = """\
# Dagster's settings. `strandline dev` uses this file, and `dagster dev` in this folder. Elsewhere copy it into DAGSTER_HOME.
"""

_COLUMNS: Mapping[FirstKind, str] = {
    "offset": "order_id long, updated_at timestamp, amount double",
    "column": "order_id long, updated_at timestamp, amount double",
    "window": "id long, submitted_at timestamp, answer string",
    "stream": "id string, device string, measured_at timestamp, value double",
}
"""Columns that the template of a kind names, for sources that declare none."""


class DraftedDataflow(NamedTuple):
    """A dataflow to be written.

    Attributes:
        text: of its file.
        columns: as DDL, as far as they are known; None: its first test has columns of an example.
    """

    text: str
    columns: str | None


def template(name: str, kind: FirstKind | None, source: FirstSource | None = None) -> DraftedDataflow:
    """Return a first dataflow.

    Args:
        name: of the dataflow.
        kind: of its watermark; None: the first kind that can have the source.
        source: the type of its source; None: the kind's default.

    Raises:
        ConfigurationError: no first dataflow of the kind can have the source.
    """
    fitting = [other for other, sources in SOURCES.items() if source is None or source in sources]
    first_kind = kind or fitting[0]
    first_source = source or SOURCES[first_kind][0]
    if first_kind not in fitting:
        raise ConfigurationError(
            f"--source: expected {' or '.join(SOURCES[first_kind])} with --kind {first_kind}, found {source}. For {source} leave out --kind, or"
            f" name {' or '.join(fitting)}"
        )
    text = (_TEMPLATES_FOLDER / f"{first_kind}.yaml").read_text()
    source_text = (_TEMPLATES_FOLDER / f"sources/{first_kind}_{first_source}.yaml").read_text()
    month = datetime.now(UTC).date().replace(day=1).isoformat()  # a first run reads some days, not years
    if (first_kind, first_source) == ("column", "table"):
        text = text.replace(_LOOK_BACK, _LOOK_BACK.replace("# backward", "backward"))
    whole = text.replace("{month}", month).replace(
        "{source}", source_text.replace("{module}", _module(name)).rstrip("\n")
    )
    return DraftedDataflow(whole, _COLUMNS.get(first_kind))


def _module(dataflow: str) -> str:
    """Return the name of the module whose function yields a dataflow's rows."""
    return f"{dataflow}_rows"


def project_files(folder: Path, drafts: Mapping[str, DraftedDataflow]) -> dict[str, str]:
    """Return the texts of a project's files, by their paths in it.

    Args:
        folder: the project folder.
        drafts: its dataflows, by name.
    """
    name = dataflow_name(folder.resolve().name, "strandline")
    dataflows = {flow: draft.text for flow, draft in drafts.items()}
    first, text = next(iter(dataflows.items()))
    return {
        "platform.yaml": _settings(dataflows),
        **{f"dataflows/{flow}.yaml": text for flow, text in dataflows.items()},
        **{
            f"{_module(flow)}.py": (_TEMPLATES_FOLDER / "rows_function.py").read_text()
            for flow, text in dataflows.items()
            if f"function: {_module(flow)}:rows" in text
        },
        **{f"tests/{flow}/first.yaml": _first_test(flow, draft) for flow, draft in drafts.items()},
        "definitions.py": _DEFINITIONS,
        "workspace.yaml": _WORKSPACE.format(name=name),
        "dagster.yaml": _DAGSTER + _without_head((ROOT / "dagster.yaml").read_text()),
        "README.md": readme(folder.resolve().name, first, text),
        ".gitignore": _GITIGNORE,
    }


def _first_test(flow: str, draft: DraftedDataflow) -> str:
    return first_test(flow, yaml.safe_load(draft.text)["source"].get("schema"), draft.columns)


def _without_head(text: str) -> str:
    """Return a text without the lines of comment that it begins with."""
    return "\n" + text[re.match(r"(#.*\n)*\n*", text).end() :]  # type: ignore[union-attr]  # it matches any text


def _settings(dataflows: Mapping[str, str]) -> str:
    """Return platform.yaml, with the connections that no dataflow uses as comments."""
    used = {yaml.safe_load(flow)["source"].get("connection") for flow in dataflows.values()} - {None}
    lines = (_TEMPLATES_FOLDER / "platform.yaml").read_text().splitlines(keepends=True)
    return "".join(line if _is_setting(line, used) else f"# {line}" for line in lines)


def _is_setting(line: str, used: Collection[str]) -> bool:
    """Return whether a line of platform.yaml stays, given the used connections."""
    connection = _CONNECTION.match(line)
    return connection[1] in used if connection else line != "connections:\n" or bool(used)


def write_new(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write files that do not exist yet, and return their paths.

    Also creates the folder in which a template's files arrive.
    """
    written = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        written.append(name)
        if _LANDING in text:
            (folder / "landing").mkdir(exist_ok=True)
    return written


def dataflow_name(text: str, fallback: str) -> str:
    """Return a text in the form of a dataflow's name; ``fallback`` if no name can be made of it."""
    plain = "".join(
        character for character in unicodedata.normalize("NFKD", text) if not unicodedata.combining(character)
    )
    name = re.sub(r"[^a-z0-9_]+", "_", plain.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else fallback


def number_duplicates(names: Iterable[str]) -> list[str]:
    """Return names in their order, with a number after each name that occurred before.

    Two folders can have one name once they are spelt as names.
    """
    distinct_names: list[str] = []
    for name in names:
        spellings = chain([name], (f"{name}_{number}" for number in count(2)))
        distinct_names.append(next(spelling for spelling in spellings if spelling not in distinct_names))
    return distinct_names
