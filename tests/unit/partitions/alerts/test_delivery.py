"""When the next message may be posted."""

from __future__ import annotations

from partitions.alerts.delivery import PAUSE_BETWEEN_MESSAGES, DeliveryState


def test_messages_are_apart_and_a_refused_one_is_posted_again_later() -> None:
    assert DeliveryState().remaining_pause(10_000) == 0
    assert DeliveryState(10_000).remaining_pause(10_010) == PAUSE_BETWEEN_MESSAGES - 10
    assert [DeliveryState(10_000, refused).remaining_pause(10_000) for refused in (1, 2, 3, 50)] == [
        60,
        120,
        240,
        3600,
    ]
    assert DeliveryState(10_000, 50).remaining_pause(9_999) == 0  # the clock was put back


def test_a_message_that_was_taken_ends_the_longer_pauses() -> None:
    refused = DeliveryState(10, 2).after(20, is_accepted=False)
    assert refused == DeliveryState(20, 3)
    assert refused.after(30, is_accepted=True) == DeliveryState(30)
