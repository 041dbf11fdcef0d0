"""Work in a thread that nobody has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T], name: str) -> Future[T]:
    """Run work in a daemon thread; return a future of its result or error.

    A process that ends does not wait for the thread.

    Args:
        work: runs in the thread.
        name: the thread's name.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised where the answer is wanted
            answer.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return answer
