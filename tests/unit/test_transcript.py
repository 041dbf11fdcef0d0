"""The transcript of the demo: output in the order of the steps, whichever runs first."""

from __future__ import annotations

import threading

import pytest

from scripts.transcript import StepsEnded, Transcript


def test_output_of_tracks_is_printed_in_the_order_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    transcript, second_is_done = Transcript((1, 2, 3)), threading.Event()

    def first() -> None:
        transcript.say("one")
        assert second_is_done.wait(30)
        transcript.say("one again")

    def second() -> None:
        transcript.say("two")

    def third() -> None:
        transcript.say("three")
        second_is_done.set()

    transcript.run(({1: first}, {2: second, 3: third}))
    transcript.say("end")
    assert [line for line in capsys.readouterr().out.splitlines() if "of 3" not in line] == [
        "one",
        "one again",
        "two",
        "three",
        "end",
    ]


def test_a_failed_step_is_raised_after_its_output_and_ends_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    transcript, has_failed = Transcript((1, 2)), threading.Event()
    ended: list[bool] = []

    def first() -> None:
        assert has_failed.wait(30)
        try:
            while True:
                transcript.say("one")
        except StepsEnded:
            ended.append(True)
            raise

    def second() -> None:
        transcript.say("two")
        has_failed.set()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        transcript.run(({1: first}, {2: second}))
    assert ended == [True]
    assert "two" in capsys.readouterr().out.splitlines()
