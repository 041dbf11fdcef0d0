"""Hooks of mkdocs: pages of the checkout that lie beside docs/ join the site, and links to its other files become plain text."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from mkdocs.structure.files import File

from scripts.docs_check import BESIDE, LINKS_ONLY, ROOT

JOINED = tuple(name for name in (*BESIDE, *LINKS_ONLY) if name != "README.md")
"""Pages beside docs/ that are part of the site; the README of the checkout is its front page already."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie beside docs/."""
    for name in JOINED:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page with links that lead to a page of the site, or else with the text of the link."""
    name = page.file.src_uri
    folder = posixpath.dirname(name if name in JOINED else f"docs/{name}")
    return _LINK.sub(lambda link: _link_within_site(link, folder, posixpath.dirname(name)), markdown)


def _link_within_site(link: re.Match[str], folder: str, of_page: str) -> str:
    image, text, target, anchor = link.groups()
    if re.match(r"[a-z]+:", target):
        return link[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    if path.startswith("docs/"):
        path = path.removeprefix("docs/")
    elif path not in JOINED:
        return text
    return f"{image}[{text}]({posixpath.relpath(path, of_page or '.')}{anchor or ''})"
