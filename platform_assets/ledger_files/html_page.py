"""The ledger as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from platform_assets.kinds.profile import LedgerPage
from platform_assets.ledger_files.rows import COLUMNS, Row

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: .2em .6em; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
td.number { text-align: right; white-space: nowrap; }
tr.total { font-weight: bold; }
tr.missing, tr.gap, tr.error { background: #fde8e8; }
dt { font-weight: bold; } dd { margin: 0 0 .4em 0; }
"""


@dataclass(frozen=True)
class Heading:
    """The facts at the top of the page.

    Attributes:
        project: the name of the project's folder.
        written_at: when the page was written, for people.
        as_of: the clock of the ledger, for people.
        version: the version of Strandline.
        bounds: the bounds of the ledger, for people; None: all of it.
    """

    project: str
    written_at: str
    as_of: str
    version: str
    bounds: str | None = None


@dataclass(frozen=True)
class Section:
    """The part of the page about one dataflow.

    Attributes:
        dataflow: its name.
        facts: names and values for people, such as its table.
        page: the ledger for people; its table is left out.
        rows: all rows of the ledger.
    """

    dataflow: str
    facts: Mapping[str, str]
    page: LedgerPage
    rows: Sequence[Row]


def html_page(heading: Heading, sections: Sequence[Section]) -> str:
    """Return the HTML page, with every text escaped, without scripts, and without files to load."""
    title = f"Ledger of {', '.join(section.dataflow for section in sections)}"
    facts = {
        "Project": heading.project,
        "As of": heading.as_of,
        "Written": heading.written_at,
        "Strandline": heading.version,
        **({"Part": heading.bounds} if heading.bounds else {}),
    }
    body = "".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>{_facts(facts)}{body}</body></html>\n"
    )


def _section(section: Section) -> str:
    lines = [*section.page.lines, *section.page.more_lines]
    statement = "".join(f"<p>{escape(line.strip())}</p>" for line in [section.page.heading, *lines])
    return f"<h2>{escape(section.dataflow)}</h2>{_facts(section.facts)}{statement}{_table(section.rows)}\n"


def _facts(facts: Mapping[str, str]) -> str:
    pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f"<dl>{pairs}</dl>"


def _table(rows: Sequence[Row]) -> str:
    """Return the rows with the columns that have a value in any of them."""
    names = [name for name in COLUMNS[1:] if any(row.get(name) is not None for row in rows)]
    header = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    return (
        f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(_table_rows(names, rows))}</tbody></table>"
    )


def _table_rows(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        cells = "".join(_cell(row.get(name)) for name in names)
        yield f'<tr class="{escape(str(row["row"]))}">{cells}</tr>\n'


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{'' if value is None else escape(str(value))}</td>"
