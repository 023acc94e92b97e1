"""What AWS throttled comes again later than the rest, and is not given up for it."""

from collections.abc import Sequence

import pytest

from roundsman.aws.sqs.batch import Message
from roundsman.errors import CallRefused, Throttled, TryAgain
from roundsman.model.redelivery import LONGEST_RUN, hidden_for
from tests.support.batch_world import MAX_RECEIVES, THREE_HOURS, Batch, Queue, letters, raising

THROTTLED = Throttled("storing the task ord-1: ThrottlingException")


def failing(
    *ids: str, problem: Exception = THROTTLED, receives: int = 1, drawn: Sequence[float] = ()
) -> Batch:
    """Three messages that were received before, of which these fail."""

    def fail(message: Message) -> None:
        if message.message_id in ids:
            raise problem

    batch = Batch(fail, Queue(letters(3)), drawn=[*drawn])
    batch.queue.receives = dict.fromkeys(batch.queue.bodies, receives)
    return batch


def test_a_message_that_is_throttled_again_is_hidden_for_longer_and_no_other_is() -> None:
    batch = failing("id-1")
    assert batch.invoke() == ["id-1"]
    assert batch.queue.hidden == {"id-1": 80}


def test_a_message_that_is_throttled_once_comes_again_before_its_claims_are_overdue() -> None:
    batch = failing("id-0", "id-1", "id-2", receives=0)
    assert batch.invoke() == ["id-0", "id-1", "id-2"]
    assert batch.queue.hidden == {}


@pytest.mark.parametrize("problem", [TryAgain("timed out"), CallRefused("no right"), KeyError()])
def test_any_other_failure_leaves_the_visibility_of_its_queue(problem: Exception) -> None:
    batch = failing("id-1", problem=problem)
    assert batch.invoke() == ["id-1"]
    assert batch.queue.hidden == {}


def test_throttled_messages_come_again_one_after_the_other() -> None:
    batch = failing("id-0", "id-1", "id-2", drawn=[0.0, 0.5, 0.999])
    batch.invoke()
    assert sorted(batch.queue.hidden.values()) == [60, 80, 99]


def test_what_cannot_be_hidden_for_longer_comes_again_as_usual(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch = failing("id-1")
    batch.queue.broken = True
    assert batch.invoke() == ["id-1"]
    assert "throttled messages come again soon" in capsys.readouterr().out


def test_a_dead_letter_is_not_hidden() -> None:
    batch = failing("id-1", receives=MAX_RECEIVES - 1)
    assert batch.invoke() == []
    assert len(batch.queue.letters) == 1
    assert batch.queue.hidden == {}


@pytest.mark.parametrize("visibility", [30_000, 60_000, 300_000])
def test_no_message_is_hidden_for_twice_its_visibility_after_it_was_received(
    visibility: int,
) -> None:
    assert hidden_for(visibility, 1, 0.5) is None
    assert hidden_for(visibility, 2, 0) == visibility
    longest = hidden_for(visibility, 2, 0.999)
    assert longest is not None
    assert visibility < longest + LONGEST_RUN <= 2 * visibility


# --- Giving up -------------------------------------------------------------------------------


def of_the_engine(problem: BaseException, *, receives: int = 0, messages: int = 1) -> Batch:
    """A batch of orders, commands or replies, of which the first fails each time."""
    queue = Queue(letters(messages), max_receives=THREE_HOURS)
    queue.receives = dict.fromkeys(queue.bodies, receives)
    return Batch(raising(problem, at="id-0"), queue, gives_up_after=5)


def test_the_fifth_failure_of_its_own_makes_a_message_a_dead_letter() -> None:
    batch = of_the_engine(ValueError())
    for _ in range(4):
        assert batch.invoke() == ["id-0"]
    assert batch.queue.letters == []
    assert batch.invoke() == []
    assert len(batch.queue.letters) == 1


@pytest.mark.parametrize("problem", [THROTTLED, TryAgain("timed out"), CallRefused("no right")])
def test_what_says_nothing_about_the_message_never_makes_it_one_before_sqs_would(
    problem: Exception,
) -> None:
    batch = of_the_engine(problem)
    for _ in range(THREE_HOURS - 1):
        assert batch.invoke() == ["id-0"]
    assert batch.queue.letters == []
    assert batch.invoke() == [], "the last delivery says why, too"
    assert len(batch.queue.letters) == 1
    assert batch.queue.receives == {"id-0": THREE_HOURS}


def test_deliveries_that_were_throttled_count_when_a_message_fails_for_its_own_reason() -> None:
    batch = of_the_engine(KeyError(), receives=4)
    assert batch.invoke() == []
    assert len(batch.queue.letters) == 1


def test_a_limit_above_that_of_sqs_is_that_of_sqs() -> None:
    batch = of_the_engine(KeyError(), receives=THREE_HOURS - 1)
    batch.dead_letters.gives_up_after = 1000
    assert batch.invoke() == []
    assert len(batch.queue.letters) == 1
