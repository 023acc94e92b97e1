"""When an agent answers, and what its functions are given."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from roundsman import Agent, InvalidInput, PermanentError, TransientError
from roundsman.agents.agent import NoReply, StepRequest
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.wire.messages import AgentRequest
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


@pytest.mark.parametrize("late", [0, 1, 3_600_000])
def test_a_request_read_after_complete_by_is_not_attempted_and_not_answered(
    payment: Agent, clock: Clock, late: int
) -> None:
    called: list[StepRequest] = []
    payment.performs(charge_card)(called.append)
    clock.now = NOW + 60_000 + late
    answer = ask(payment, clock)
    assert isinstance(answer, NoReply)
    assert "after complete-by; not attempted" in answer.reason
    assert not called


@pytest.mark.parametrize(
    "end",
    [
        returning({"chargeId": "c-1"}),
        raising(TransientError("503")),
        raising(PermanentError("CardDeclined")),
        raising(ValueError()),
        returning(object()),
    ],
    ids=["success", "transient", "permanent", "unexpected", "not JSON"],
)
def test_what_ends_after_complete_by_is_not_answered_whatever_it_was(
    payment: Agent, clock: Clock, end: Callable[[StepRequest], object]
) -> None:
    @payment.performs(charge_card)
    def charge(given: StepRequest) -> object:
        clock.now = given.complete_by
        return end(given)

    answer = ask(payment, clock)
    assert isinstance(answer, NoReply)
    assert answer.reason == "the attempt ended 0 ms after complete-by"


def test_what_ends_just_before_complete_by_is_answered(payment: Agent, clock: Clock) -> None:
    @payment.performs(charge_card)
    def charge(given: StepRequest) -> Json:
        clock.now = given.complete_by - 1
        return "done"

    assert reply(payment, clock).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(("given", "kept"), [(60_000, 1_000), (10_000, 1_000), (4_000, 400)])
def test_time_left_ends_a_little_before_complete_by_so_that_a_hang_ends_in_a_reason(
    payment: Agent, clock: Clock, given: int, kept: int
) -> None:
    seen: list[timedelta] = []

    @payment.performs(charge_card)
    def charge(asked: StepRequest) -> None:
        seen.append(asked.time_left())
        clock.now += given - kept
        seen.append(asked.time_left())
        raise TransientError("not answered in time")

    answer = reply(payment, clock, request(complete_by=NOW + given))
    assert seen == [timedelta(milliseconds=given - kept), timedelta(0)]
    assert (answer.outcome, clock.slept) == (Outcome.TRANSIENT, [])


def test_time_left_keeps_two_seconds_of_the_functions_own_time_for_the_reply(
    payment: Agent, clock: Clock
) -> None:
    seen: list[timedelta] = []
    payment.performs(charge_card)(lambda given: seen.append(given.time_left()))
    ask(payment, clock, function_ends_at=NOW + 10_000)
    assert seen == [timedelta(seconds=8)]


def test_a_request_for_which_the_function_has_no_time_is_given_back_unattempted(
    payment: Agent, clock: Clock
) -> None:
    called: list[StepRequest] = []
    payment.performs(charge_card)(called.append)
    answer = reply(payment, clock, function_ends_at=NOW + 2_000)
    assert (answer.outcome, answer.retry_after) == (Outcome.HELD, 1_000)
    assert answer.error is not None
    assert not answer.outcome_unknown
    assert "the requests before it in its batch left no time for it" in answer.error.message
    assert not called


@pytest.mark.parametrize(
    ("operation", "left", "outcome"),
    [
        ("perform", 30_000, Outcome.SUCCEEDED),
        ("perform", 29_999, Outcome.HELD),
        ("undo", 30_000, Outcome.SUCCEEDED),
        ("undo", 29_999, Outcome.HELD),
    ],
)
def test_a_request_that_lay_in_its_queue_for_most_of_its_time_is_given_back_unattempted(
    payment: Agent, clock: Clock, operation: str, left: int, outcome: Outcome
) -> None:
    called: list[StepRequest] = []
    payment.performs(charge_card)(called.append)
    payment.compensates(charge_card)(called.append)
    late = request(operation=operation, sent_at=NOW - 60_000 + left, complete_by=NOW + left)
    answer = reply(payment, clock, late)
    assert answer.outcome is outcome
    assert bool(called) is (outcome is Outcome.SUCCEEDED)
    if answer.error is not None:
        assert not answer.outcome_unknown
        assert (
            "read with 29 s of its 60 s left, because its queue has a backlog"
            in answer.error.message
        )


@pytest.mark.parametrize(("left", "outcome"), [(60_000, "succeeded"), (59_999, "held")])
def test_a_request_that_was_given_time_for_its_queue_is_begun_with_its_steps_whole_time_only(
    payment: Agent, clock: Clock, left: int, outcome: str
) -> None:
    payment.performs(charge_card)(lambda _: None)
    late = request(sent_at=NOW - 660_000 + left, complete_by=NOW + left)
    assert reply(payment, clock, late).outcome.value == outcome


def test_an_attempt_has_its_steps_time_from_when_it_begins_and_no_more(
    payment: Agent, clock: Clock
) -> None:
    seen: list[timedelta] = []
    payment.performs(charge_card)(lambda asked: seen.append(asked.time_left()))
    reply(payment, clock, request(sent_at=NOW - 200_000, complete_by=NOW + 460_000))
    assert seen == [timedelta(seconds=59)]


@pytest.mark.parametrize(
    ("left", "waited", "takes", "outcome"),
    [
        (44_999, 20_000, 60_000, Outcome.HELD),
        (45_000, 20_000, 60_000, Outcome.TRANSIENT),
        (44_999, 20_000, 43_000, Outcome.TRANSIENT),
        (44_000, 0, 60_000, Outcome.TRANSIENT),
    ],
    ids=["cut off", "had its time", "failed by itself", "of its task's end"],
)
def test_an_attempt_that_its_queue_left_too_little_time_is_not_failed_when_it_is_cut_off(
    payment: Agent, clock: Clock, left: int, waited: int, takes: int, outcome: Outcome
) -> None:
    @payment.performs(charge_card)
    def charge(asked: StepRequest) -> None:
        clock.now += min(takes, asked.time_left() // timedelta(milliseconds=1))
        raise TransientError("not answered in time")

    answer = reply(payment, clock, request(sent_at=NOW - waited, complete_by=NOW + left))
    assert answer.outcome is outcome
    if outcome is Outcome.HELD:
        assert answer.outcome_unknown
        assert answer.error is not None
        assert (
            answer.error.message
            == "the wait in the queue left too little time: not answered in time"
        )


def test_a_request_whose_task_left_it_little_time_is_attempted_with_what_it_has(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(lambda _: None)
    hurried = request(sent_at=NOW - 100, complete_by=NOW + 2_000)
    assert reply(payment, clock, hurried).outcome is Outcome.SUCCEEDED


def given_to(operation: str, clock: Clock, asked: AgentRequest) -> StepRequest:
    agent, seen = Agent("payment"), list[StepRequest]()
    bind = agent.performs if operation == "perform" else agent.compensates
    bind(charge_card)(seen.append)
    ask(agent, clock, asked)
    return seen[0]


def test_the_function_is_given_the_request_as_it_was_sent(clock: Clock) -> None:
    given = given_to("perform", clock, request())
    assert (given.task_id, given.workflow, given.step) == (
        "ord-1",
        "order_fulfilment",
        "charge_card",
    )
    assert (given.operation, given.attempt, given.outcome_unknown) == ("perform", 2, True)
    assert given.complete_by == NOW + 60_000
    assert given.input == {"orderId": "ord-1", "total": "39.80"}
    assert given.results == {"reserve_stock": {"reservationId": "r-1"}}


def test_the_idempotency_key_is_the_requests_whatever_the_attempt(clock: Clock) -> None:
    keys = {
        given_to(
            "perform", clock, request(attempt=n, lock=f"7f3a-{n}.{n}", complete_by=NOW + n * 1_000)
        ).idempotency_key
        for n in (1, 2, 9)
    }
    assert keys == {"ord-1/charge_card/perform"}


@pytest.mark.parametrize(
    ("key", "perform_key", "expected"),
    [
        ("ord-1/charge_card/undo", "ord-1/charge_card/perform/2", "ord-1/charge_card/perform/2"),
        ("ord-1/charge_card/undo", None, "ord-1/charge_card/perform"),
        ("ord-1/charge_card/undo/2", None, "ord-1/charge_card/perform/2"),
        ("ord-1/charge_card/undo/2/backup", None, "ord-1/charge_card/perform/2/backup"),
        ("undo/undo/undo", None, "undo/undo/perform"),
        ("strange", None, "strange"),
    ],
)
def test_an_undo_can_always_name_the_key_of_what_it_undoes(
    clock: Clock, key: str, perform_key: str | None, expected: str
) -> None:
    asked = request(operation="undo", idempotency_key=key, perform_key=perform_key)
    given = given_to("undo", clock, asked)
    assert (given.idempotency_key, given.perform_key) == (key, expected)


def test_a_perform_names_its_own_key(clock: Clock) -> None:
    given = given_to("perform", clock, request())
    assert given.perform_key == given.idempotency_key


@dataclass(frozen=True)
class Line:
    sku: str
    quantity: int = 1


@dataclass(frozen=True)
class Order:
    total: str
    lines: tuple[Line, ...] = ()
    currency: str = "EUR"


@dataclass(frozen=True)
class PaidOrder(Order):
    paid: bool = field(kw_only=True)


def test_an_order_is_read_as_a_dataclass_without_the_fields_that_it_does_not_have(
    payment: Agent, clock: Clock
) -> None:
    read: list[Order] = []
    payment.performs(charge_card)(lambda asked: read.append(asked.input_as(Order)))
    lines: Json = [{"sku": "KB-101", "note": "added by a later release"}]
    ask(payment, clock, request(input={"orderId": "ord-1", "total": "39.80", "lines": lines}))
    assert read == [Order("39.80", (Line("KB-101"),))]


def test_an_order_that_has_not_the_type_any_more_is_not_built(payment: Agent, clock: Clock) -> None:
    raised: list[InvalidInput] = []

    def charge(asked: StepRequest) -> None:
        with pytest.raises(InvalidInput) as refused:
            asked.input_as(PaidOrder)
        raised.append(refused.value)

    payment.performs(charge_card)(charge)
    ask(payment, clock, request(input={"total": 39.8}))
    (error,) = raised
    assert [problem.path for problem in error.problems] == ["paid", "total"]
