"""What is known of the queues that the scheduler reads, and when it stores a mark of them."""

import pytest

from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import PROMPT, ReadMark
from roundsman.model.redelivery import LONGEST_RUN, hidden_for
from roundsman.model.scheduler_queues import (
    COMMANDS,
    HIDDEN_FOR,
    MARK_VALID_FOR,
    WANTED_FOR,
    QueueDepth,
    QueueView,
    is_mark_due,
    is_of_scheduler,
    is_read_mark,
    replies_key,
    wanted_key,
)

NOW = 1_800_000_000_000


def test_each_reply_queue_has_a_key_for_its_mark_and_one_for_the_wish() -> None:
    assert (replies_key("payment"), wanted_key("payment")) == ("payment/replies", "payment/wanted")
    assert COMMANDS == "scheduler/commands"


@pytest.mark.parametrize(
    ("key", "of_scheduler", "read_mark"),
    [
        ("payment/replies", True, True),
        ("payment/wanted", True, False),
        (COMMANDS, True, True),
        ("payment/normal", False, False),
        ("payment/urgent", False, False),
        ("scheduler/normal", False, False),
        ("replies/normal", False, False),
        ("wanted/low", False, False),
    ],
)
def test_the_key_says_whose_queue_it_is(key: str, of_scheduler: bool, read_mark: bool) -> None:
    assert is_of_scheduler(key) is of_scheduler
    assert is_read_mark(key) is read_mark


@pytest.mark.parametrize(("visible", "in_flight"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_queue_is_empty_if_it_has_no_message_read_or_not(visible: int, in_flight: int) -> None:
    assert QueueDepth(visible, in_flight).empty is (visible + in_flight == 0)


def test_a_queue_lags_by_the_wait_of_the_message_of_its_mark() -> None:
    view = QueueView(ReadMark(NOW - 40 * SECOND, NOW))
    assert view.lag(NOW) == 40 * SECOND
    assert view.lag(NOW + MARK_VALID_FOR) == 40 * SECOND
    assert view.lag(NOW + MARK_VALID_FOR + 1) == 0, "it is out of date"
    assert QueueView().lag(NOW) == 0
    assert QueueView(ReadMark(NOW + SECOND, NOW)).lag(NOW) == 0, "of a sender whose clock is ahead"


def test_a_queue_is_behind_if_its_messages_wait_longer_than_a_prompt_one() -> None:
    assert not QueueView(ReadMark(NOW - PROMPT, NOW)).is_behind(NOW)
    assert QueueView(ReadMark(NOW - PROMPT - 1, NOW)).is_behind(NOW)
    assert not QueueView(ReadMark(NOW - MINUTE, NOW)).is_behind(NOW + MARK_VALID_FOR + 1)


def test_the_scheduler_may_be_slow_if_a_confirmation_is_asked_for_or_a_mark_says_so() -> None:
    assert not QueueView().is_slow(NOW)
    assert QueueView(confirmed_for=1).is_slow(NOW)
    assert QueueView(ReadMark(NOW - MINUTE, NOW)).is_slow(NOW)
    assert not QueueView(ReadMark(NOW, NOW)).is_slow(NOW)


def test_a_mark_is_stored_of_a_message_that_waited() -> None:
    assert not is_mark_due(NOW - PROMPT, NOW, None)
    assert is_mark_due(NOW - PROMPT - 1, NOW, None)


def test_a_mark_is_stored_while_one_is_wanted() -> None:
    wanted = ReadMark(NOW, NOW)
    assert is_mark_due(NOW + WANTED_FOR, NOW + WANTED_FOR, wanted)
    assert not is_mark_due(NOW + WANTED_FOR + 1, NOW + WANTED_FOR + 1, wanted)
    assert is_mark_due(NOW, NOW + WANTED_FOR + 1, wanted), "it waited as well"


def test_a_reply_is_hidden_for_at_most_twice_the_visibility_of_its_queue() -> None:
    assert HIDDEN_FOR == 2 * MINUTE
    assert hidden_for(MINUTE, 180, 1.0) == HIDDEN_FOR - LONGEST_RUN
