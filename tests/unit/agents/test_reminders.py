"""Reminders at an agent: its function is called, and whatever comes of it, nothing is replied."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from roundsman import Agent, Callback, DefinitionError, PermanentError, StepRequest, TransientError
from roundsman.agents.agent import Reminded
from roundsman.agents.guard import CallHeld
from roundsman.model.events import Outcome
from tests.support.agent_samples import (
    NOW,
    Clock,
    ask,
    charge_card,
    raising,
    reply,
    request,
    returning,
)
from tests.support.guards import HeldGuard, T, Terms

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def payment(remind: Callable[[StepRequest], object] | None = None) -> Agent:
    agent = Agent("payment")
    agent.performs(charge_card)(returning(Callback(within=DAY, remind_every=HOUR)))
    if remind is not None:
        agent.reminds(charge_card)(remind)
    return agent


def reminded(agent: Agent, clock: Clock | None = None, **changes: object) -> Reminded:
    answer = ask(agent, clock or Clock(), request(**{"reminder": 3, **changes}))
    assert isinstance(answer, Reminded)
    return answer


def error_of(answer: Reminded) -> str:
    assert answer.error is not None
    return answer.error.type


def test_the_waiting_reply_says_how_often() -> None:
    answer = reply(payment(returning(None)), Clock())
    assert (answer.outcome, answer.until) == (Outcome.WAITING, NOW + 86_400_000)
    assert answer.remind_every == 3_600_000


def test_without_reminders_the_waiting_reply_says_nothing_of_them() -> None:
    agent = Agent("payment")
    agent.performs(charge_card)(returning(Callback(within=DAY)))
    assert reply(agent, Clock()).remind_every is None


def test_without_a_function_to_remind_the_attempt_fails_and_says_what_to_add() -> None:
    answer = reply(payment(), Clock())
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, 60_000)
    assert answer.error is not None
    assert answer.error.type == "NoReminder"
    assert answer.error.message == (
        "the function returned Callback(remind_every=...), but the agent has no function to "
        "remind; bind one with @agent.reminds(step)"
    )


def test_the_function_gets_the_request_of_the_attempt_and_a_key_of_its_own() -> None:
    heard = list[StepRequest]()
    assert reminded(payment(heard.append)) == Reminded()
    (asked,) = heard
    tokens = list[str]()
    agent = Agent("payment")
    agent.performs(charge_card)(lambda one: tokens.append(one.callback_token))
    reply(agent, Clock())
    assert asked.callback_token == tokens[0]
    assert asked.reminder == 3
    assert asked.idempotency_key == "ord-1/charge_card/perform/reminder/3"
    assert asked.perform_key == "ord-1/charge_card/perform"
    assert asked.input["total"] == "39.80"
    assert timedelta(seconds=50) < asked.time_left() <= timedelta(seconds=60)
    asked.progress("it is ignored")


def test_a_request_that_is_no_reminder_has_no_number() -> None:
    heard = list[StepRequest]()
    agent = Agent("payment")
    agent.performs(charge_card)(heard.append)
    reply(agent, Clock())
    assert heard[0].reminder is None
    assert heard[0].idempotency_key == "ord-1/charge_card/perform"


@pytest.mark.parametrize("value", [None, object(), "x" * 100_000, Callback(within=DAY)])
def test_what_the_function_returns_is_ignored(value: object) -> None:
    assert reminded(payment(returning(value))) == Reminded()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermanentError("NoSuchAddress"), "NoSuchAddress"),
        (TransientError("503", retry_after=HOUR), "TransientError"),
        (KeyError("order"), "KeyError"),
        (CallHeld("payment is on hold by ann", until=NOW + 60_000), "Held"),
    ],
)
def test_what_it_raises_is_returned_and_not_replied(error: Exception, kind: str) -> None:
    assert error_of(reminded(payment(raising(error)))) == kind


def test_what_may_pass_is_tried_up_to_three_times() -> None:
    calls, clock = list[StepRequest](), Clock()

    def remind(asked: StepRequest) -> None:
        calls.append(asked)
        if len(calls) < 3:
            raise TransientError("503")

    assert reminded(payment(remind), clock) == Reminded()
    assert len(calls) == 3
    assert len(clock.slept) == 2


def test_one_that_is_read_when_the_next_is_due_calls_nobody() -> None:
    calls = list[StepRequest]()
    for by in (NOW, NOW - 1):
        assert error_of(reminded(payment(calls.append), complete_by=by)) == "TooLate"
    assert calls == []


def test_one_without_time_left_in_its_batch_calls_nobody() -> None:
    calls = list[StepRequest]()
    asked = request(reminder=1)
    answer = ask(payment(calls.append), Clock(), asked, function_ends_at=NOW + 1_999)
    assert isinstance(answer, Reminded)
    assert error_of(answer) == "TooLate"
    assert calls == []


def test_one_whose_order_is_no_object_calls_nobody() -> None:
    calls = list[StepRequest]()
    assert error_of(reminded(payment(calls.append), input=["x"])) == "TooLate"
    assert calls == []


def test_code_without_the_function_says_so() -> None:
    answer = reminded(payment())
    assert error_of(answer) == "NoHandler"
    assert answer.error is not None
    assert answer.error.message == (
        "the code of the payment agent has no function to remind of charge_card"
    )


def test_each_item_is_reminded_of_by_the_function_of_its_step() -> None:
    heard = list[StepRequest]()
    reminded(payment(heard.append), step="charge_card[2]", item={"sku": "a"})
    assert (heard[0].step, heard[0].index, heard[0].item) == ("charge_card[2]", 2, {"sku": "a"})


class Held(HeldGuard):
    """Lets no reminder through."""

    def around(self, function: Callable[[], T], terms: Terms) -> T:
        assert terms.ends_at > NOW
        assert not terms.asks, "its success shows that the service is well"
        return super().around(function, terms)


def test_the_guard_is_asked_before_the_function() -> None:
    calls = list[StepRequest]()
    held = Held("payment is on hold by ann", NOW + 60_000)
    answer = ask(payment(calls.append), Clock(), request(reminder=1), guard=held)
    assert isinstance(answer, Reminded)
    assert error_of(answer) == "Held"
    assert calls == []


def test_an_unexpected_error_is_reported() -> None:
    found = list[Exception]()
    agent = payment(raising(KeyError("order")))
    ask(agent, Clock(), request(reminder=1), report=found.append)
    assert [type(error) for error in found] == [KeyError]


def test_a_step_is_reminded_of_by_one_function_of_its_own_agent() -> None:
    agent = payment(returning(None))
    with pytest.raises(DefinitionError, match="has two functions for remind; remove one"):
        agent.reminds(charge_card)(returning(None))
    with pytest.raises(DefinitionError, match="belongs to agent payment; bind it there"):
        Agent("mail").reminds(charge_card)
    assert ("charge_card", "remind") in agent.bound


@pytest.mark.parametrize(
    ("every", "sentence"),
    [
        (timedelta(0), "remind_every must be from 1 s to less than within (1 day, 0:00:00), not"),
        (timedelta(seconds=0.9), "remind_every must be from 1 s to less than within"),
        (-HOUR, "remind_every must be from 1 s to less than within"),
        (DAY, "remind_every must be from 1 s to less than within"),
        (timedelta(seconds=86), "which is more than 1,000 reminders within 1 day, 0:00:00"),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(every: timedelta, sentence: str) -> None:
    with pytest.raises(ValueError) as found:  # noqa: PT011  # the sentence is compared below
        Callback(within=DAY, remind_every=every)
    assert sentence in str(found.value)


@pytest.mark.parametrize(
    ("within", "every"),
    [
        (timedelta(seconds=2), timedelta(seconds=1)),
        (DAY, DAY / 1_000),
        (DAY, DAY - timedelta(seconds=1)),
    ],
)
def test_the_shortest_and_the_longest_intervals(within: timedelta, every: timedelta) -> None:
    assert Callback(within=within, remind_every=every).remind_every == every


def test_an_interval_is_a_timedelta() -> None:
    with pytest.raises(TypeError, match="remind_every must be a timedelta, not an int"):
        Callback(within=DAY, remind_every=60)  # type: ignore[arg-type]  # the mistake that is meant
