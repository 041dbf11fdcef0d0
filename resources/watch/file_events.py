"""The system's events for files that are written or moved into a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent


class FileEvents:
    """Calls back when a file is written or moved into a folder.

    On systems without such events, only polling finds files.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        """Call ``ring`` for each event, in a thread of the observer."""
        from watchdog.observers import Observer

        self._ring, self._observer, self._followed = ring, Observer(), set[Path]()

    @classmethod
    @contextmanager
    def ringing(cls, ring: Callable[[], None]) -> Iterator[FileEvents]:
        """Yield file events that call ``ring`` while the block runs."""
        events = cls(ring)
        events._observer.start()
        try:
            yield events
        finally:
            events._observer.stop()
            events._observer.join()

    def follow(self, folders: set[Path]) -> None:
        """Also follow these folders, with all folders below them."""
        for folder in folders - self._followed:
            with suppress(OSError):  # too many of them for the system
                self._observer.schedule(self, str(folder), recursive=True)  # type: ignore[arg-type]
            self._followed.add(folder)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Ring for a closed or moved file; a file that is still open for writing is not complete yet."""
        if event.event_type in ("closed", "moved") and not event.is_directory:
            self._ring()


def is_folder(path: Path) -> bool:
    """Return whether a folder exists; one that cannot be read, such as on a lost share, does not count."""
    with suppress(OSError):
        return path.is_dir()
    return False
