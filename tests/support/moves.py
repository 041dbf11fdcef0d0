"""Projects that are moved, copied or restored: folders, and what stands in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from tests.support.feed import Feed


def move(feed: Feed, folder: Path) -> Feed:
    """Move a whole project to another folder."""
    moved = feed.copy(folder)
    shutil.rmtree(feed.folder)
    return moved


def set_place(feed: Feed, **addresses: str) -> None:
    """Set addresses in platform.yaml, such as ``lake`` or ``state``."""
    feed.settings |= addresses
    file = feed.folder / "platform.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | addresses))


def restore(saved: Path, folder: Path) -> None:
    """Put a folder back as it was saved."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, folder)


def tree(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file below a folder by its path, except notes, which each look may write."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "notes" not in path.parts
    }


def write_export(feed: Feed) -> str:
    """Write an export of a dataflow's state into its project; return the file's path."""
    file = feed.folder / "export.jsonl"
    file.write_text(feed.command("state", "export", feed.name).out)
    return str(file)
