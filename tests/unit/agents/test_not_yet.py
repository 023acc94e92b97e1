"""A function that polls an outside job: what its agent replies while the job is not done."""

from datetime import timedelta

import pytest

from roundsman import Agent, NotYet, StepRequest
from roundsman.model.events import Outcome
from tests.support.agent_samples import Clock, charge_card, reply, request, returning

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_a_job_that_is_not_done_is_no_failure_and_has_no_result(
    payment: Agent, clock: Clock
) -> None:
    @payment.performs(charge_card)
    def charge(asked: StepRequest) -> NotYet:
        clock.now += 250
        return NotYet(again_in=MINUTE, within=HOUR)

    answer = reply(payment, clock)
    assert (answer.outcome, answer.again_in, answer.within) == (Outcome.POLLING, 60_000, 3_600_000)
    assert (answer.result, answer.error, answer.effect) == (None, None, None)


def test_an_async_function_may_poll(payment: Agent, clock: Clock) -> None:
    @payment.performs(charge_card)
    async def charge(asked: StepRequest) -> NotYet:
        return NotYet(again_in=MINUTE, within=MINUTE)

    assert reply(payment, clock).outcome is Outcome.POLLING


def test_a_probe_that_finds_nothing_is_followed_by_a_poll(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(returning(NotYet(again_in=MINUTE, within=HOUR)))
    assert reply(payment, clock, request(outcome_unknown=True)).outcome is Outcome.POLLING


def test_an_undo_cannot_be_polled(payment: Agent, clock: Clock) -> None:
    payment.compensates(charge_card)(returning(NotYet(again_in=MINUTE, within=HOUR)))
    answer = reply(payment, clock, request(operation="undo"))
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, 60_000)
    assert answer.error is not None
    assert (answer.error.type, answer.error.unexpected) == ("NotYetInUndo", True)
    assert (
        answer.error.message == "the undo function returned a NotYet, but an undo cannot be polled"
    )


@pytest.mark.parametrize("within", [timedelta(0), timedelta(seconds=0.9), timedelta(days=366)])
def test_a_job_has_a_second_to_a_year(within: timedelta) -> None:
    with pytest.raises(ValueError, match="within must be from 1 s to 365 days, not"):
        NotYet(again_in=MINUTE, within=within)


@pytest.mark.parametrize("again_in", [timedelta(0), timedelta(seconds=0.9), timedelta(minutes=61)])
def test_it_is_polled_after_a_second_and_within_its_time(again_in: timedelta) -> None:
    with pytest.raises(ValueError, match=r"again_in must be from 1 s to within \(1:00:00\), not"):
        NotYet(again_in=again_in, within=HOUR)


@pytest.mark.parametrize("time", [timedelta(seconds=1), timedelta(days=365)])
def test_the_shortest_and_the_longest_times_are_taken(time: timedelta) -> None:
    assert NotYet(again_in=time, within=time).within == time


def test_its_times_are_timedeltas() -> None:
    with pytest.raises(TypeError, match="again_in must be a timedelta, not an int"):
        NotYet(again_in=60, within=HOUR)  # type: ignore[arg-type]  # the mistake that is meant
    with pytest.raises(TypeError, match="within must be a timedelta, not an int"):
        NotYet(again_in=MINUTE, within=60)  # type: ignore[arg-type]  # the mistake that is meant
