"""An agent's function behind its guard: each call goes through it, and a held one is replied so."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from roundsman import Agent, DidNotHappen, Happened, TransientError
from roundsman.agents.guard import CallHeld, RateLimited
from roundsman.model.events import Outcome
from tests.support.agent_samples import NOW, Clock, charge_card, raising, reply, request, returning
from tests.support.guards import FakeGuard, HeldGuard, Terms

T = TypeVar("T")


class Gate(FakeGuard):
    """Lets so many calls through, each after a wait, and then holds all back until a minute on."""

    def __init__(self, clock: Clock, lets: int, *, waits: int = 0, called: bool = False) -> None:
        self.clock, self.lets, self.waits, self.called = clock, lets, waits, called
        self.ends: list[int] = []
        self.follow: list[bool] = []

    def around(self, function: Callable[[], T], terms: Terms) -> T:
        self.ends.append(terms.ends_at)
        self.follow.append(terms.follows)
        self.clock.now += self.waits
        if len(self.ends) <= self.lets:
            return function()
        if self.called:
            function()
        raise CallHeld("payment is on hold: maintenance", until=NOW + 60_000, called=self.called)


def test_a_step_that_is_held_back_is_given_back_as_held_until_then(
    payment: Agent, clock: Clock
) -> None:
    called: list[object] = []
    payment.performs(charge_card)(called.append)
    clock.now += 10_000
    answer = reply(payment, clock, guard=Gate(clock, 0))
    assert (answer.outcome, answer.retry_after) == (Outcome.HELD, 50_000)
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("Held", "payment is on hold: maintenance")
    assert not answer.outcome_unknown
    assert not called


def test_a_hold_that_is_over_by_now_is_no_wait(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(returning(None))
    clock.now = NOW + 70_000
    asked = request(complete_by=NOW + 180_000)
    assert reply(payment, clock, asked, guard=Gate(clock, 0)).retry_after == 0


def test_an_endless_hold_is_replied_as_a_wait_of_a_year(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(raising(CallHeld("for ever", until=10**30)))
    assert reply(payment, clock).retry_after == 365 * 86_400_000


def test_a_call_after_which_the_service_is_held_may_have_had_its_effect(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(returning(None))
    answer = reply(payment, clock, guard=Gate(clock, 0, called=True))
    assert (answer.outcome, answer.outcome_unknown) == (Outcome.HELD, True)


def test_a_guard_that_says_that_the_service_was_called_is_believed(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(returning(None))
    elsewhere = HeldGuard("down", NOW, called=True)
    assert reply(payment, clock, guard=elsewhere).outcome_unknown


def test_a_hold_after_an_earlier_try_of_the_attempt_may_have_had_its_effect(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(raising(TransientError("503")))
    answer = reply(payment, clock, guard=Gate(clock, 1))
    assert (answer.outcome, answer.outcome_unknown) == (Outcome.HELD, True)


def test_a_failed_attempt_counts_though_the_rate_has_no_place_for_another_try(
    payment: Agent, clock: Clock
) -> None:
    class Crowded(Gate):
        def around(self, function: Callable[[], T], terms: Terms) -> T:
            try:
                return super().around(function, terms)
            except CallHeld as held:
                raise RateLimited("more than 1 calls a second", until=held.until) from held

    payment.performs(charge_card)(raising(TransientError("503")))
    assert reply(payment, clock, guard=Crowded(clock, 0)).outcome is Outcome.HELD
    for lets, message in ((1, "503"), (2, "503 (2 tries)")):
        failed = reply(payment, clock, guard=Crowded(clock, lets))
        assert failed.outcome is Outcome.TRANSIENT
        assert failed.error is not None
        assert failed.error.message == message


@pytest.mark.parametrize("answer", [Happened(), DidNotHappen()], ids=["happened", "did not"])
def test_each_call_of_a_probe_goes_through_the_guard_too(
    payment: Agent, clock: Clock, answer: object
) -> None:
    payment.performs(charge_card)(returning(None))
    payment.probes(charge_card)(returning(answer))
    gate = Gate(clock, 2)
    reply(payment, clock, request(outcome_unknown=True), guard=gate)
    assert len(gate.ends) == (1 if isinstance(answer, Happened) else 2)


def test_the_guard_gets_which_calls_follow_another_of_the_same_attempt(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(raising(TransientError("503")))
    payment.probes(charge_card)(returning(DidNotHappen()))
    gate = Gate(clock, 12)
    for _ in range(2):
        reply(payment, clock, request(outcome_unknown=True), guard=gate)
    assert gate.follow == 2 * [False, *5 * [True]]


def test_a_hold_between_probe_and_perform_leaves_nothing_unknown_of_this_attempt(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(returning(None))
    payment.probes(charge_card)(returning(DidNotHappen()))
    answer = reply(payment, clock, request(outcome_unknown=True), guard=Gate(clock, 1))
    assert (answer.outcome, answer.outcome_unknown) == (Outcome.HELD, False)


def test_the_guard_gets_the_instant_when_the_call_must_be_over(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(raising(TransientError("503")))
    gate = Gate(clock, 9)
    reply(payment, clock, guard=gate)
    assert gate.ends == [NOW + 59_000] * 3


def test_a_turn_that_comes_when_the_time_is_over_is_not_taken(payment: Agent, clock: Clock) -> None:
    called: list[object] = []
    payment.performs(charge_card)(called.append)
    answer = reply(payment, clock, guard=Gate(clock, 9, waits=59_000))
    assert not called
    assert (answer.outcome, answer.retry_after, answer.outcome_unknown) == (
        Outcome.HELD,
        1_000,
        False,
    )
    assert answer.error is not None
    assert answer.error.message == "no time was left when the call was allowed; not attempted"


def test_an_undo_is_held_back_like_a_perform(payment: Agent, clock: Clock) -> None:
    payment.compensates(charge_card)(returning(None))
    answer = reply(payment, clock, request(operation="undo"), guard=Gate(clock, 0))
    assert (answer.outcome, answer.operation) == (Outcome.HELD, "undo")
