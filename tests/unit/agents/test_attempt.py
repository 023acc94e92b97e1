"""Retries inside one attempt: when a function is called again, and when a step is given back."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman import Agent, Busy, PermanentError, StepRequest, TransientError
from roundsman.agents.attempt import TRIES
from roundsman.errors import InvalidInput, Problem
from roundsman.model.events import Outcome
from roundsman.wire.messages import Reply
from tests.support.agent_samples import NOW, Clock, ask, charge_card, reply, request


class Service:
    """Ends each call as its script says, the last end over and over; each takes `took` ms."""

    def __init__(self, clock: Clock, *ends: object, took: int = 0) -> None:
        self.clock, self.ends, self.took = clock, list(ends), took
        self.calls: list[StepRequest] = []
        self.called_at: list[int] = []

    def __call__(self, asked: StepRequest) -> object:
        self.calls.append(asked)
        self.called_at.append(self.clock.now)
        self.clock.now += self.took
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, BaseException):
            raise end
        return end


DOWN = TransientError("503")


def after(seconds: float, kind: type[TransientError] = TransientError) -> TransientError:
    return kind("later", retry_after=timedelta(seconds=seconds))


def error_of(answer: Reply) -> tuple[str, str]:
    assert answer.error is not None
    return answer.error.type, answer.error.message


def test_a_call_that_fails_for_a_moment_is_made_again_in_the_same_attempt(
    payment: Agent, clock: Clock
) -> None:
    charge = payment.performs(charge_card)(Service(clock, DOWN, DOWN, "done"))
    answer = reply(payment, clock)
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, "done")
    assert len(charge.calls) == 3


def test_a_service_that_stays_down_is_tried_three_times_and_the_reason_says_so(
    payment: Agent, clock: Clock
) -> None:
    charge = payment.performs(charge_card)(Service(clock, DOWN))
    answer = reply(payment, clock)
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, None)
    assert error_of(answer) == ("TransientError", "503 (3 tries)")
    assert len(charge.calls) == TRIES


def test_the_waits_between_tries_are_backoff_with_full_jitter(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(Service(clock, DOWN))
    for jitter, waits in [(0.0, [0, 0]), (0.5, [0.1, 0.2]), (1.0, [0.2, 0.4])]:
        clock.slept.clear()
        reply(payment, clock, jitter=jitter)
        assert clock.slept == waits


def test_every_try_has_the_same_keys_and_knows_that_the_one_before_may_have_happened(
    payment: Agent, clock: Clock
) -> None:
    charge = payment.performs(charge_card)(Service(clock, DOWN))
    reply(payment, clock, request(outcome_unknown=False))
    keys = {(each.idempotency_key, each.perform_key, each.attempt) for each in charge.calls}
    assert keys == {("ord-1/charge_card/perform", "ord-1/charge_card/perform", 2)}
    assert [each.outcome_unknown for each in charge.calls] == [False, True, True]


def test_a_busy_service_did_nothing_so_the_next_try_is_no_repeat(
    payment: Agent, clock: Clock
) -> None:
    charge = payment.performs(charge_card)(Service(clock, Busy("429"), "done"))
    reply(payment, clock, request(outcome_unknown=False))
    assert [each.outcome_unknown for each in charge.calls] == [False, False]


@pytest.mark.parametrize("kind", [TransientError, Busy])
def test_a_short_wait_that_the_service_asks_for_is_waited(
    payment: Agent, clock: Clock, kind: type[TransientError]
) -> None:
    payment.performs(charge_card)(Service(clock, after(2, kind), "done"))
    assert reply(payment, clock).outcome is Outcome.SUCCEEDED
    assert clock.slept == [2.0]


def test_a_wait_shorter_than_the_backoff_is_the_backoff(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(Service(clock, after(0), "done"))
    reply(payment, clock, jitter=1.0)
    assert clock.slept == [0.2]


@pytest.mark.parametrize("kind", [TransientError, Busy])
def test_a_long_wait_gives_the_step_back_at_once_with_what_was_asked_for(
    payment: Agent, clock: Clock, kind: type[TransientError]
) -> None:
    charge = payment.performs(charge_card)(Service(clock, after(2.001, kind)))
    answer = reply(payment, clock)
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, 2_001)
    assert error_of(answer) == (kind.__name__, "later")
    assert (len(charge.calls), clock.slept) == (1, [])


def test_a_wait_that_would_leave_less_than_a_second_gives_the_step_back(
    payment: Agent, clock: Clock
) -> None:
    charge = payment.performs(charge_card)(Service(clock, DOWN))
    # A second is kept for the reply, so 1,099 ms are left, and 999 after the wait of 100.
    answer = reply(payment, clock, function_ends_at=NOW + 2_000 + 1_099)
    assert (answer.outcome, answer.retry_after, len(charge.calls)) == (Outcome.TRANSIENT, None, 1)
    clock.now = NOW
    reply(payment, clock, function_ends_at=NOW + 2_000 + 1_100)
    assert len(charge.calls) == 3


def test_what_took_long_is_not_begun_again_with_less_time_than_it_took(
    payment: Agent, clock: Clock
) -> None:
    charge = payment.performs(charge_card)(Service(clock, DOWN, took=20_000))
    answer = reply(payment, clock, request(complete_by=NOW + 60_000))
    assert len(charge.calls) == 2  # of 59 s, 39 were left for the second, and 18 for a third
    assert error_of(answer)[1] == "503 (2 tries)"


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), OSError("no route")])
def test_an_error_of_the_network_that_nobody_foresaw_is_tried_again_and_reported_each_time(
    payment: Agent, clock: Clock, error: Exception
) -> None:
    payment.performs(charge_card)(Service(clock, error))
    reported: list[Exception] = []
    answer = reply(payment, clock, report=reported.append)
    assert error_of(answer) == (
        type(error).__name__,
        "unexpected error; see the log of the payment agent (3 tries)",
    )
    assert reported == [error] * 3


@pytest.mark.parametrize("error", [ValueError(), PermanentError("CardDeclined"), KeyError("x")])
def test_no_other_failure_is_tried_again_in_the_attempt(
    payment: Agent, clock: Clock, error: Exception
) -> None:
    charge = payment.performs(charge_card)(Service(clock, error))
    answer = reply(payment, clock)
    assert answer.outcome is not Outcome.SUCCEEDED
    assert (len(charge.calls), clock.slept) == (1, [])


def test_a_refusal_after_a_failed_try_is_a_refusal(payment: Agent, clock: Clock) -> None:
    refusal = PermanentError("CardDeclined", "insufficient funds")
    payment.performs(charge_card)(Service(clock, DOWN, refusal))
    answer = reply(payment, clock)
    assert answer.outcome is Outcome.PERMANENT
    assert error_of(answer) == ("CardDeclined", "insufficient funds (2 tries)")


def test_what_ends_the_process_is_not_tried_again(payment: Agent, clock: Clock) -> None:
    charge = payment.performs(charge_card)(Service(clock, SystemExit(1)))
    with pytest.raises(SystemExit):
        ask(payment, clock)
    assert len(charge.calls) == 1


def test_an_undo_is_tried_again_like_a_perform(payment: Agent, clock: Clock) -> None:
    refund = payment.compensates(charge_card)(Service(clock, DOWN, None))
    answer = reply(
        payment, clock, request(operation="undo", idempotency_key="ord-1/charge_card/undo")
    )
    assert (answer.outcome, len(refund.calls)) == (Outcome.SUCCEEDED, 2)
    assert len({each.idempotency_key for each in refund.calls}) == 1


ENDS: st.SearchStrategy[Callable[[], object]] = st.one_of(
    st.builds(lambda wait: lambda: after(wait), st.floats(0, 5)),
    st.builds(lambda wait: lambda: after(wait, Busy), st.floats(0, 5)),
    st.sampled_from([lambda: DOWN, OSError, ValueError, lambda: "done"]),
)


@given(
    ends=st.lists(ENDS, min_size=1, max_size=4),
    took=st.integers(0, 30_000),
    complete_in=st.integers(1, 60_000),
    function_ends_in=st.integers(2_001, 60_000),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_no_try_begins_after_its_time_and_no_wait_outlasts_it_and_the_key_never_changes(
    ends: list[Callable[[], object]],
    took: int,
    complete_in: int,
    function_ends_in: int,
    jitter: float,
) -> None:
    agent, clock = Agent("payment"), Clock()
    charge = agent.performs(charge_card)(Service(clock, *(end() for end in ends), took=took))
    asked = request(sent_at=NOW, complete_by=NOW + complete_in)
    ask(agent, clock, asked, function_ends_at=NOW + function_ends_in, jitter=jitter)
    assert 1 <= len(charge.calls) <= TRIES
    for each, began in zip(charge.calls, charge.called_at, strict=True):
        assert began < each.ends_at <= min(asked.complete_by, NOW + function_ends_in - 2_000)
        assert each.idempotency_key == asked.idempotency_key
    assert sum(clock.slept) * 1_000 < min(complete_in, function_ends_in - 2_000)
    assert all(wait <= 2 for wait in clock.slept)


def test_a_field_that_the_stored_input_lacks_is_named(payment: Agent, clock: Clock) -> None:
    lacks = InvalidInput([Problem("deliverBy", "missing")])
    payment.performs(charge_card)(Service(clock, lacks))
    assert error_of(reply(payment, clock)) == (
        "InvalidInput",
        "the stored input does not have the type that the code reads: deliverBy: missing",
    )
