"""Print the output of steps that run beside each other in the order of the steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar

Step = Callable[[], None]
_current_step: ContextVar[int | None] = ContextVar("current_step", default=None)


class StepsEnded(Exception):
    """Another step has failed, so this one ends."""


class Transcript:
    """The output of numbered steps, line by line, in the order of their numbers.

    Lines of the lowest unfinished step are printed at once. Those of later steps are held back.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        """Expect these steps, and print their output in this order."""
        self._held_back: dict[int, list[str]] = {number: [] for number in numbers}
        self._open_steps = list(numbers)
        self._finished: set[int] = set()
        self._has_failed = threading.Event()
        self._lock = threading.Lock()

    def say(self, *lines: str) -> None:
        """Print lines of the step that this thread runs; outside of steps at once.

        Raises:
            StepsEnded: another step has failed.
        """
        number = _current_step.get()
        if number is not None and self._has_failed.is_set():
            raise StepsEnded
        with self._lock:
            if number is None or number == self._open_steps[0]:
                print_at_once(lines)
            else:
                self._held_back[number].extend(lines)

    def run(self, tracks: Sequence[Mapping[int, Step]]) -> None:
        """Run the steps of each track in order, and the tracks beside each other.

        Raises:
            Exception: of the first step that failed, after its output. Other tracks end at their next
                line.
        """
        with ThreadPoolExecutor(len(tracks)) as pool:
            running = [pool.submit(self._run_track, track) for track in tracks]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            except KeyboardInterrupt:
                self._has_failed.set()
                raise
        failures = [failure for future in running if (failure := future.exception()) is not None]
        for failure in sorted(failures, key=lambda failure: isinstance(failure, StepsEnded)):
            raise failure

    def _run_track(self, track: Mapping[int, Step]) -> None:
        for number, step in track.items():
            with self._step(number):
                step()

    @contextmanager
    def _step(self, number: int) -> Iterator[None]:
        token, began = _current_step.set(number), time.monotonic()
        try:
            yield
            self.say(f"  step {number} of {len(self._held_back)}: {time.monotonic() - began:.0f} s")
        except StepsEnded:
            raise
        except BaseException:
            self._has_failed.set()
            print_at_once(self._held_back[number])
            raise
        finally:
            _current_step.reset(token)
        self._finish(number)

    def _finish(self, number: int) -> None:
        """Print what was held back, up to the lowest unfinished step."""
        with self._lock:
            self._finished.add(number)
            while self._open_steps and self._open_steps[0] in self._finished:
                self._open_steps.pop(0)
                if self._open_steps:
                    print_at_once(self._held_back[self._open_steps[0]])
                    self._held_back[self._open_steps[0]].clear()


def print_at_once(lines: Sequence[str]) -> None:
    """Print lines at once, even if the output is not a terminal."""
    for line in lines:
        print(line, flush=True)
