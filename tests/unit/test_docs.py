"""What docs/ shows is what the product takes: every block of YAML is a valid part of a project, every command is in the table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from platform_assets.cli import main
from platform_assets.project import load_project
from platform_assets.project.settings import Settings
from scripts import docs_check

DOCS = Path(__file__).resolve().parents[2] / "docs"
LAND = {"type": "s3", "region": "us-east-1"}
ERP = {"type": "jdbc", "url": "jdbc:postgresql://h/d"}
SHOP = {"type": "api", "base_url": "https://shop.example/v1"}
CRM = {"type": "python", "settings": {}}
SETTINGS: dict[str, Any] = {
    "connections": {"land": LAND, "erp": ERP, "aviation": ERP, "shop": SHOP, "crm": CRM}
}
FILES: dict[str, Any] = {
    "source": {"type": "files", "path": "./landing", "format": "ndjson"},
    "watermark": {"type": "path"},
    "target": {"load": "append"},
}
WINDOWS: dict[str, Any] = {
    "source": {"type": "jdbc", "connection": "erp", "table": "public.t", "window_column": "at"},
    "watermark": {
        "type": "window",
        "definition": [{"name": "day", "type": "datetime", "range": {"from": "2010-01-01", "to": "-"}}],
        "window": "daily",
    },
    "target": {"load": "merge_overwrite", "replace_by_watermark": True},
}
STREAM: dict[str, Any] = {
    "source": {"type": "table", "table": "bronze/events"},
    "watermark": {"type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M"},
}


def _blocks() -> list[Any]:
    return [
        pytest.param(yaml.safe_load(re.sub(r"(?m)(^ +|, )on:", r"\1'on':", text)), id=f"{page.name}-{number}")
        for page in sorted(DOCS.rglob("*.md"))
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL))
        if "ops:" not in text and not text.startswith("state: {env: STATE_URL}")
    ]


def _project(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings and the dataflow that a block is a part of."""
    if set(block) <= set(Settings.model_fields):
        return SETTINGS | block | {
            "connections": SETTINGS["connections"] | block.get("connections", {})
        }, FILES
    if "source" in block and "watermark" in block:
        return SETTINGS, block
    if set(block) == {"operators"} or "on_change" in block.get("source", {}):
        return SETTINGS, STREAM | block
    if block.get("watermark", {}).get("type") == "column":
        return SETTINGS, {"source": {"type": "table", "table": "bronze/orders"}} | block
    if (
        set(block) & {"source", "sql", "target", "run_tags", "checks", "rules"}
        or block.get("watermark", {}).get("type") == "path"
    ):
        base = WINDOWS if block.get("source", {}).get("type") in ("jdbc", "table") else FILES
        return SETTINGS, base | block
    if "query" in block:
        source = {"type": "jdbc", "connection": "erp", **block}
        units = {"name": "surveyId", "type": "unit", "units": "a"}
        watermark = WINDOWS["watermark"] | {"definition": [*WINDOWS["watermark"]["definition"], units]}
        return SETTINGS, WINDOWS | {"source": source, "watermark": watermark}
    source = WINDOWS["source"] | (
        {"unit_columns": {"surveyId": "survey_id"}} if "secondary_input" in block else {}
    )
    return SETTINGS, WINDOWS | {"source": source, "watermark": WINDOWS["watermark"] | block}


@pytest.mark.parametrize("block", _blocks())
def test_every_block_of_yaml_is_a_valid_part_of_a_project(block: dict[str, Any], tmp_path: Path) -> None:
    settings, flow = _project(block)
    source = flow["source"] if isinstance(flow["source"], dict) else {}
    unit_columns = source.get("unit_columns")
    if unit_columns and flow.get("watermark") == WINDOWS["watermark"]:
        unit = [{"name": name, "type": "unit", "units": "a"} for name in unit_columns]
        flow = flow | {
            "watermark": {**flow["watermark"], "definition": [*flow["watermark"]["definition"], *unit]}
        }
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(settings))
    routes = (settings.get("alerts") or {}).get("routes", ())
    flow = flow | {
        "owners": [*flow.get("owners", ()), *(route["owner"] for route in routes if "owner" in route)],
        "tags": flow.get("tags", {})
        | {key: value for route in routes for key, value in route.get("tags", {}).items()},
    }
    (tmp_path / "dataflows/shown.yaml").write_text(yaml.safe_dump(flow))
    if source.get("table") == "silver/readings":
        (tmp_path / "dataflows/readings.yaml").write_text(yaml.safe_dump(STREAM | {"layer": "silver"}))
    if "to: upstream" in yaml.safe_dump(flow):
        awaited = flow["watermark"].get("wait_for", {})
        times = {source["table"]: source["window_column"]} | {
            flow["inputs"][name]: column for name, column in awaited.items()
        }
        for number, (table, column) in enumerate(times.items()):
            upstream = WINDOWS | {
                "layer": "bronze",
                "source": WINDOWS["source"] | {"window_column": column},
                "target": {"load": "append", "table": table},
            }
            (tmp_path / f"dataflows/upstream_{number}.yaml").write_text(yaml.safe_dump(upstream))
    assert [str(error) for error in load_project(tmp_path, environment={}).errors] == []


def test_every_command_is_in_the_table_of_commands() -> None:
    page = (DOCS / "reference/cli.md").read_text()
    assert [name for name in main.COMMANDS if f"`{name}" not in page] == []


@pytest.mark.parametrize("command", ["list", "plan"])
def test_every_key_of_a_record_is_in_the_table_of_documents(command: str, tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "dataflows/good.yaml").write_text(yaml.safe_dump(FILES))
    found = CliRunner().invoke(main.strandline, ["--project", str(tmp_path), "--json", command])
    (line,) = [
        one
        for one in (DOCS / "reference/cli.md").read_text().splitlines()
        if one.startswith(f"| `{command}` | a list of")
    ]
    assert [key for key in json.loads(found.stdout)[0] if f'"{key}"' not in line] == []


def _headings(page: Path) -> set[str]:
    return {
        re.sub("[`*]", "", line.lstrip("# ")).lower()
        for line in page.read_text().splitlines()
        if line.startswith("#")
    }


def test_every_page_of_docs_that_code_cites_is_there() -> None:
    pages = {page.relative_to(DOCS).as_posix().removesuffix(".md") for page in DOCS.rglob("*.md")}
    pages |= {page[: page.index("/00") + 5] for page in pages if "/00" in page}  # explanation/adr/0016
    missing = {
        f"{module.relative_to(DOCS.parent)}: {cited}"
        for folder in ("partitions", "resources", "platform_assets", "tests", "benchmarks", "scripts")
        for module in sorted((DOCS.parent / folder).rglob("*.py"))
        for cited in re.findall(r"\bdocs/([a-z-]+(?:/[\w-]+)+|[\w-]+(?=\.md))", module.read_text())
        if cited not in pages and not cited.startswith("images/")
    }
    assert missing == set()


def test_every_section_of_docs_that_code_cites_is_there() -> None:
    headings = {page.relative_to(DOCS).as_posix(): _headings(page) for page in DOCS.rglob("*.md")}
    missing = []
    for folder in ("partitions", "resources", "platform_assets", "tests"):
        for module in sorted((DOCS.parent / folder).rglob("*.py")):
            for page, section in re.findall(r"docs/([\w/-]+\.md), ([A-Z][^);.:]*)", module.read_text()):
                title = re.sub(r"[`*]|\s*\n\s*", "", section).strip().lower()
                if title not in headings.get(page, ()):
                    missing.append(f"{module.name}: {page}, {section}")
    assert missing == []


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    assert docs_check.dead_links() == []


def test_no_sentence_of_a_page_is_too_long() -> None:
    assert [line for page in docs_check.pages() for line in docs_check.long_sentences(page)] == []


def test_a_sentence_ends_where_a_reader_ends_it() -> None:
    page = """# A heading, with, three, commas

One line
goes on, see [a page](x.md). `code` is, as `a`, `b` and `c` are, one word. At 26,000 rows it
ends.

| a table, has, none, of, these |

- an item, then,
- 1.5 s later

```sh
one, two, three, four
```
"""
    assert [(found.line, found.text) for found in docs_check.sentences(page)] == [
        (3, "One line goes on, see a page."),
        (3, "Code is, as Code are, one word."),
        (3, "At 26,000 rows it ends."),
        (9, "an item, then,"),
        (10, "1.5 s later"),
    ]
    assert [found.commas for found in docs_check.sentences(page)] == [1, 2, 0, 1, 0]
