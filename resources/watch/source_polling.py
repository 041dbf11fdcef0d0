"""Poll several sources at once, so that none keeps the others waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREADS, _PATIENCE = 8, 1.0
"""The number of sources that are polled at once, and the seconds that a call waits for them."""


class SourcePoller(Generic[Item, Result]):
    """Polls items in daemon threads, which end with the process whatever they wait for."""

    def __init__(self, look: Callable[[Item], Result]) -> None:
        """Start the threads; ``look`` must not raise."""
        self._look = look
        self._queue: SimpleQueue[tuple[str, Item]] = SimpleQueue()
        self._since: dict[str, float] = {}
        self._results: dict[str, Result] = {}
        self._news = Condition()
        for number in range(_THREADS):
            Thread(target=self._work, name=f"strandline-look-{number}", daemon=True).start()

    def poll(self, items: Mapping[str, Item]) -> dict[str, Result]:
        """Start to poll the items that are not being polled; return all new results, within a second."""
        with self._news:
            new = [name for name in items if name not in self._since]
            self._since |= dict.fromkeys(new, time.monotonic())
            for name in new:
                self._queue.put((name, items[name]))
            self._news.wait_for(lambda: not any(name in self._since for name in new), _PATIENCE)
            results, self._results = self._results, {}
            return results

    def unanswered(self) -> dict[str, float]:
        """Return the seconds since each unfinished poll started, by name."""
        with self._news:
            now = time.monotonic()
            return {name: now - since for name, since in self._since.items()}

    def _work(self) -> None:
        while True:
            name, item = self._queue.get()
            result = self._look(item)
            with self._news:
                self._results[name] = result
                self._since.pop(name, None)
                self._news.notify_all()
