"""Opens pages of Dagster in Chromium: waits for what they show, and takes the pictures of the docs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest

SCREENSHOTS = "STRANDLINE_SCREENSHOTS"
"""The variable of the environment with the folder that pictures are written to; without it pages are only checked."""

WIDTH = 1500
"""The width of a page, in pixels."""

_QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

_ALL_THERE = "texts => texts.every(text => document.body.innerText.includes(text))"
_REPLACE = """texts => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode())
        for (const [old, shown] of Object.entries(texts))
            walker.currentNode.nodeValue = walker.currentNode.nodeValue.replaceAll(old, shown);
}"""
_DRAWN = "name => (document.querySelector(`img[alt=${name}]`)?.naturalWidth ?? 0) > 0"


def page_shows(
    url: str,
    *texts: str,
    image: str | None = None,
    hides: Sequence[str] = (),
    theme: Literal["light", "dark"] = "light",
    picture: str | None = None,
    height: int = 1300,
    check: Callable[[Any], None] = lambda page: None,
    replaced: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Open a page in a browser until it shows all of the texts, and an image that can be drawn.

    A page is drawn piece by piece, and one of events goes on showing the event that was the newest when it was
    opened: it is loaded again.

    Args:
        url: the page's address.
        texts: what it shows.
        image: the name of an image that it shows.
        hides: what it does not show.
        theme: Dagster's theme.
        picture: the name of the picture of the docs that shows it.
        height: of the page, in pixels.
        check: checks the page in the browser.
        replaced: texts that the picture shows in another way, such as folders of this machine.
    """
    chromium = shutil.which("chromium") or pytest.skip("needs Chromium: apt-get install chromium")
    from playwright.sync_api import TimeoutError as NeverShown
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_QUIET)
        page = browser.new_page(viewport={"width": WIDTH, "height": height})
        page.emulate_media(color_scheme=theme)
        page.add_init_script(f"localStorage.setItem('theme', JSON.stringify('{theme.capitalize()}'))")
        page.goto(url, timeout=120_000)
        try:
            for _ in range(5):
                try:
                    page.wait_for_function(_ALL_THERE, arg=list(texts), timeout=40_000)
                    break
                except NeverShown:
                    page.reload(timeout=120_000)
            page.wait_for_function(_ALL_THERE, arg=list(texts), timeout=40_000)
            if image is not None:
                page.wait_for_function(_DRAWN, arg=image, timeout=120_000)
            shown_text = page.inner_text("body")
            assert [text for text in hides if text in shown_text] == []
            check(page)
            if picture is not None and (folder := os.environ.get(SCREENSHOTS)):
                page.evaluate(_REPLACE, dict(replaced))
                page.screenshot(path=Path(folder) / picture)
        except NeverShown:
            shown_text = page.inner_text("body")
            missing = [text for text in texts if text not in shown_text]
            raise AssertionError(f"{url} never showed {missing}; it shows\n{shown_text}") from None
        finally:
            browser.close()
