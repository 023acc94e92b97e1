import json
import math
from collections.abc import Callable
from datetime import timedelta

import pytest

from roundsman import Agent, Compensation, DefinitionError, PermanentError, Step, TransientError
from roundsman.agent import Answer, Silence, StepRequest
from roundsman.events import Outcome
from roundsman.messages import AgentRequest, Reply, read_reply
from roundsman.values import Json
from roundsman.workflow import LARGEST_RESULT

NOW = 1_800_000_000_000

charge_card = Step(
    name="charge_card",
    agent="payment",
    complete_within=timedelta(seconds=60),
    compensation=Compensation(),
)


class Clock:
    """The present, moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def payment() -> Agent:
    return Agent("payment")


def request(**changes: object) -> AgentRequest:
    fields: dict[str, object] = {
        "task_id": "ord-1",
        "workflow": "order_fulfilment",
        "step": "charge_card",
        "operation": "perform",
        "lock": "7f3a-0c1d.2",
        "idempotency_key": "ord-1/charge_card/perform",
        "attempt": 2,
        "complete_by": NOW + 60_000,
        "input": {"orderId": "ord-1", "total": "39.80"},
        "results": {"reserve_stock": {"reservationId": "r-1"}},
        "sent_at": NOW - 100,
        "outcome_unknown": True,
    }
    return AgentRequest(**{**fields, **changes})  # type: ignore[arg-type]  # as the caller means it


def ask(agent: Agent, clock: Clock, asked: AgentRequest | None = None, **more: object) -> Answer:
    return agent.answer(
        asked or request(),
        clock=clock,
        function_ends_at=int(str(more.get("function_ends_at", NOW + 300_000))),
    )


def reply(agent: Agent, clock: Clock, asked: AgentRequest | None = None, **more: object) -> Reply:
    """The reply, as its reader sees it."""
    answer = ask(agent, clock, asked, **more)
    assert isinstance(answer, Reply)
    return read_reply(answer.body())


def returning(value: object) -> Callable[[StepRequest], object]:
    return lambda _: value


def raising(error: BaseException) -> Callable[[StepRequest], object]:
    def function(_: StepRequest) -> object:
        raise error

    return function


# ---- what is bound -----------------------------------------------------------------------


def test_a_bound_function_is_returned_unchanged(payment: Agent) -> None:
    def charge(_: StepRequest) -> Json:
        return None

    assert payment.performs(charge_card)(charge) is charge
    assert payment.compensates(charge_card)(charge) is charge


def test_a_step_is_bound_once(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    with pytest.raises(DefinitionError, match="perform of step 'charge_card' is bound already"):
        payment.performs(charge_card)(returning(None))


def test_a_step_of_another_agent_is_refused() -> None:
    with pytest.raises(DefinitionError, match="is of agent 'payment'; bind it there"):
        Agent("inventory").performs(charge_card)


def test_a_step_without_compensation_is_not_compensated(payment: Agent) -> None:
    plain = Step(name="charge_card", agent="payment", complete_within=timedelta(seconds=60))
    with pytest.raises(DefinitionError, match="has no compensation; give it"):
        payment.compensates(plain)


def test_two_different_steps_of_one_name_are_refused(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    slower = Step(
        name="charge_card",
        agent="payment",
        complete_within=timedelta(seconds=90),
        compensation=Compensation(),
    )
    with pytest.raises(DefinitionError, match="two different steps are named 'charge_card'"):
        payment.compensates(slower)


def test_an_equal_step_defined_elsewhere_is_the_same_step(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    again = Step(
        name="charge_card",
        agent="payment",
        complete_within=timedelta(seconds=60),
        compensation=Compensation(),
    )
    payment.compensates(again)(returning(None))


def test_an_async_function_is_refused(payment: Agent) -> None:
    async def charge(_: StepRequest) -> None:
        pass

    with pytest.raises(DefinitionError, match="is async; it is called, not awaited"):
        payment.performs(charge_card)(charge)


def test_something_that_is_no_step_is_refused(payment: Agent) -> None:
    with pytest.raises(DefinitionError, match="must be a Step"):
        payment.performs("charge_card")  # type: ignore[arg-type]  # the mistake that is meant


def test_an_agent_has_a_plain_name() -> None:
    with pytest.raises(DefinitionError, match="1 to 40 of a-z"):
        Agent("Payment Service")


# ---- complete-by -------------------------------------------------------------------------


@pytest.mark.parametrize("late", [0, 1, 3_600_000])
def test_a_request_read_after_complete_by_is_not_attempted_and_not_answered(
    payment: Agent, clock: Clock, late: int
) -> None:
    called: list[StepRequest] = []
    payment.performs(charge_card)(called.append)
    clock.now = NOW + 60_000 + late
    answer = ask(payment, clock)
    assert isinstance(answer, Silence)
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
    assert isinstance(answer, Silence)
    assert answer.reason == "finished 0 ms after complete-by"


def test_what_ends_just_before_complete_by_is_answered(payment: Agent, clock: Clock) -> None:
    @payment.performs(charge_card)
    def charge(given: StepRequest) -> Json:
        clock.now = given.complete_by - 1
        return "done"

    assert reply(payment, clock).outcome is Outcome.SUCCEEDED


def test_time_left_ends_at_complete_by(payment: Agent, clock: Clock) -> None:
    seen: list[timedelta] = []

    @payment.performs(charge_card)
    def charge(given: StepRequest) -> None:
        seen.append(given.time_left())
        clock.now += 59_000
        seen.append(given.time_left())
        clock.now += 2_000
        seen.append(given.time_left())

    ask(payment, clock)
    assert seen == [timedelta(seconds=60), timedelta(seconds=1), timedelta(0)]


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
    said = reply(payment, clock, function_ends_at=NOW + 2_000)
    assert (said.outcome, said.retry_after) == (Outcome.TRANSIENT, 1_000)
    assert said.error is not None
    assert said.error.type == "NoTimeLeft"
    assert not called


# ---- what the function is given ----------------------------------------------------------


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
            "perform", clock, request(attempt=n, lock=f"7f3a-{n}.{n}", complete_by=NOW + n)
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


# ---- how it ended ------------------------------------------------------------------------


def test_a_success_is_answered_with_its_result_and_the_requests_own_tokens(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(returning({"chargeId": "c-1"}))
    said = reply(payment, clock)
    assert (said.outcome, said.result) == (Outcome.SUCCEEDED, {"chargeId": "c-1"})
    assert (said.task_id, said.step, said.operation) == ("ord-1", "charge_card", "perform")
    assert (said.lock, said.idempotency_key) == ("7f3a-0c1d.2", "ord-1/charge_card/perform")
    assert (said.agent, said.finished_at, said.error) == ("payment", NOW, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("\uffff", "\uffff"),
        (("a", 1), ["a", 1]),
        ({1: "a"}, {"1": "a"}),
        (True, True),
    ],
)
def test_a_result_is_what_its_json_says(
    payment: Agent, clock: Clock, value: object, expected: Json
) -> None:
    payment.performs(charge_card)(returning(value))
    answer = ask(payment, clock)
    assert isinstance(answer, Reply)
    assert answer.result == expected
    assert read_reply(answer.body()) == answer


def circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def nested(depth: int) -> object:
    found: object = None
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    "value",
    [
        object(),
        timedelta(1),
        b"bytes",
        math.nan,
        circle(),
        nested(100_000),
        {1: "a", "1": "b"},
        "half \ud800 a pair",
        {(1, 2): 3},
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_that_is_not_json_fails_for_good(
    payment: Agent, clock: Clock, value: object
) -> None:
    payment.performs(charge_card)(returning(value))
    said = reply(payment, clock)
    assert said.outcome is Outcome.PERMANENT
    assert said.error is not None
    assert said.error.type == "ResultNotJson"


def test_a_result_of_32_kib_fits_and_one_byte_more_fails_for_good_with_the_sizes(
    payment: Agent, clock: Clock
) -> None:
    sizes = iter([LARGEST_RESULT - 2, LARGEST_RESULT - 1])  # without the quotes around it
    payment.performs(charge_card)(lambda _: "x" * next(sizes))
    assert reply(payment, clock).outcome is Outcome.SUCCEEDED
    said = reply(payment, clock)
    assert said.outcome is Outcome.PERMANENT
    assert said.error is not None
    assert said.error.type == "ResultTooLarge"
    assert said.error.message == "the result is 32769 bytes of JSON; at most 32768 fit"


def test_a_transient_error_is_answered_with_its_words_and_the_wait_asked_for(
    payment: Agent, clock: Clock
) -> None:
    error = TransientError("503 from acquirer", retry_after=timedelta(seconds=2.5))
    payment.performs(charge_card)(raising(error))
    said = reply(payment, clock)
    assert said.outcome is Outcome.TRANSIENT
    assert said.error is not None
    assert (said.error.type, said.error.message) == ("TransientError", "503 from acquirer")
    assert said.retry_after == 2_500


def test_a_kind_of_transient_error_is_named_by_its_class(payment: Agent, clock: Clock) -> None:
    class AcquirerDown(TransientError):
        pass

    payment.performs(charge_card)(raising(AcquirerDown("")))
    said = reply(payment, clock)
    assert said.error is not None
    assert (said.error.type, said.retry_after) == ("AcquirerDown", None)


@pytest.mark.parametrize(
    ("asked", "expected"), [(timedelta(-1), 0), (5, None), (timedelta.max, 365 * 86_400_000)]
)
def test_a_strange_wait_never_spoils_the_reply(
    payment: Agent, clock: Clock, asked: timedelta, expected: int | None
) -> None:
    payment.performs(charge_card)(raising(TransientError("later", retry_after=asked)))
    assert reply(payment, clock).retry_after == expected


def test_a_permanent_error_is_answered_with_its_type(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(raising(PermanentError("CardDeclined", "insufficient funds")))
    said = reply(payment, clock)
    assert said.outcome is Outcome.PERMANENT
    assert said.error is not None
    assert (said.error.type, said.error.message) == ("CardDeclined", "insufficient funds")


@pytest.mark.parametrize(
    "error",
    [PermanentError(""), PermanentError("A" * 5_000, "\ud800\uffff" * 5_000)],
    ids=["empty", "endless"],
)
def test_a_strange_error_never_spoils_the_reply(
    payment: Agent, clock: Clock, error: PermanentError
) -> None:
    payment.performs(charge_card)(raising(error))
    said = reply(payment, clock)
    assert said.outcome is Outcome.PERMANENT
    assert len(said.body().encode()) < 10_000


def test_any_other_exception_is_transient_and_its_text_stays_here(
    payment: Agent, clock: Clock
) -> None:
    error = ValueError("tok_visa is not a number")
    reported: list[Exception] = []
    payment.performs(charge_card)(raising(error))
    answer = payment.answer(
        request(), clock=clock, function_ends_at=NOW + 300_000, report=reported.append
    )
    assert isinstance(answer, Reply)
    assert answer.outcome is Outcome.TRANSIENT
    assert answer.error is not None
    assert answer.error.type == "ValueError"
    assert answer.error.message == "unexpected error, see the log of the payment agent"
    assert "tok_visa" not in answer.body()
    assert reported == [error]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
def test_what_ends_the_process_passes_through(
    payment: Agent, clock: Clock, error: BaseException
) -> None:
    payment.performs(charge_card)(raising(error))
    with pytest.raises(type(error)):
        ask(payment, clock)


@pytest.mark.parametrize(("step", "operation"), [("other", "perform"), ("charge_card", "undo")])
def test_a_step_without_handler_is_transient_and_tried_again_in_a_minute(
    payment: Agent, clock: Clock, step: str, operation: str
) -> None:
    payment.performs(charge_card)(returning(None))
    said = reply(payment, clock, request(step=step, operation=operation))
    assert (said.outcome, said.retry_after) == (Outcome.TRANSIENT, 60_000)
    assert said.error is not None
    assert said.error.type == "NoHandler"
    assert "deploy agent and plan of one version" in said.error.message


def test_an_order_that_is_no_object_fails_for_good(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(returning(None))
    said = reply(payment, clock, request(input=["not", "an", "order"]))
    assert said.outcome is Outcome.PERMANENT
    assert said.error is not None
    assert said.error.type == "InputNotObject"


def test_a_reply_is_the_documented_json(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(returning({"chargeId": "c-1"}))
    assert json.loads(reply(payment, clock).body()) == {
        "version": 1,
        "taskId": "ord-1",
        "step": "charge_card",
        "operation": "perform",
        "lock": "7f3a-0c1d.2",
        "idempotencyKey": "ord-1/charge_card/perform",
        "outcome": "succeeded",
        "result": {"chargeId": "c-1"},
        "agent": "payment",
        "finishedAt": NOW,
    }
