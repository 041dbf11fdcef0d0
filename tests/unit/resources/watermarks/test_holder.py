"""Whether who holds an intent lives."""

from __future__ import annotations

import subprocess
import sys

import pytest

from resources.watermarks.holder import current_holder, process_is_alive


def test_current_holder_is_alive_and_one_of_another_machine_is_unknown() -> None:
    holder = current_holder(None)
    assert process_is_alive(holder) is True
    assert process_is_alive(holder.model_copy(update={"host": "another/boot/space"})) is None


@pytest.mark.parametrize(("ticks", "alive"), [(1, True), (-1, True), (1000, False)])
def test_a_process_with_the_same_number_is_the_holder_if_it_started_then(ticks: int, alive: bool) -> None:
    holder = current_holder(None)
    again = holder.model_copy(update={"started": holder.started + ticks})
    assert process_is_alive(again) is alive


def test_a_process_that_has_ended_is_dead_also_before_its_parent_asks() -> None:
    script = "from resources.watermarks.holder import current_holder as me; print(me(None).model_dump_json(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        holder = type(current_holder(None)).model_validate_json(process.stdout.readline())
        assert process_is_alive(holder) is True
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.read()
        while process_is_alive(holder):  # between the end of its output and its own
            pass
        assert process.returncode is None, "it is a zombie"
    assert process_is_alive(holder) is False
