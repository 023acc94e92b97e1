"""What an agent replies for each way in which a function can end."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from roundsman import Agent, PermanentError, StepRequest, TransientError
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.record_limits import LARGEST_KEPT_RESULT
from roundsman.model.task import Effect
from roundsman.wire.messages import Reply, read_reply
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


def test_a_success_is_answered_with_its_result_and_the_requests_own_tokens(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(returning({"chargeId": "c-1"}))
    answer = reply(payment, clock)
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"chargeId": "c-1"})
    assert (answer.task_id, answer.step, answer.operation) == ("ord-1", "charge_card", "perform")
    assert (answer.lock, answer.idempotency_key) == ("7f3a-0c1d.2", "ord-1/charge_card/perform")
    assert (answer.agent, answer.finished_at, answer.error) == ("payment", NOW, None)


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
def test_a_result_that_is_not_json_is_an_unexpected_error(
    payment: Agent, clock: Clock, value: object
) -> None:
    payment.performs(charge_card)(returning(value))
    answer = reply(payment, clock)
    assert answer.outcome is Outcome.TRANSIENT
    assert answer.effect is Effect.STANDS
    assert answer.error is not None
    assert answer.error.type == "ResultNotJson"
    assert answer.error.unexpected


@pytest.mark.parametrize(
    ("error", "unexpected"),
    [
        (KeyError("price"), True),
        (FileNotFoundError("rates.json"), True),
        (ConnectionResetError("by the service"), False),
        (TimeoutError("after 3 s"), False),
        (OSError("no route to the host"), False),
        (TransientError("503"), False),
        (PermanentError("CardDeclined"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_a_defect_of_the_code_is_unexpected(
    payment: Agent, clock: Clock, error: Exception, unexpected: bool
) -> None:
    payment.performs(charge_card)(raising(error))
    answer = reply(payment, clock)
    assert answer.error is not None
    assert answer.error.unexpected is unexpected


def test_a_step_without_a_function_is_an_unexpected_error(payment: Agent, clock: Clock) -> None:
    answer = reply(payment, clock)
    assert answer.error is not None
    assert (answer.error.type, answer.error.unexpected) == ("NoHandler", True)


HOW = ", which is not JSON; return text, finite numbers, true, false, None, lists, dicts"
AT = datetime(2027, 1, 1, tzinfo=UTC)


@dataclass
class Charge:
    charge_id: str


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (AT, "result is a datetime"),
        (Charge("ch_1"), "result is a Charge"),
        (OSError(), "result is an OSError"),
        (math.nan, "result is nan"),
        ({"price": -math.inf}, "result.price is -inf"),
        ({"price": Decimal("19.90")}, "result.price is a Decimal"),
        ({"items": [{"at": 1}, {"at": [], "when": AT}]}, "result.items[1].when is a datetime"),
        ({"pair": (1, {2})}, "result.pair[1] is a set"),
        ({"by": {"ann@example.com": AT}}, "result.by[key 1] is a datetime"),
        ({"by": {1: "a", 2: AT}}, "result.by[key 2] is a datetime"),
        ({"a" * 65: AT}, "result[key 1] is a datetime"),
        ({"by": {(1, 2): 3}}, "result.by has a key that is a tuple"),
        ({"by": {"a": 1, 2: 3}}, "result.by has keys of several types"),
        ({"name": "half \ud800 a pair"}, "result.name is text with half of a surrogate pair"),
        ({"half \ud800 a pair": 1}, "result has a key with half of a surrogate pair"),
        (nested(21), "result is nested deeper than 20 levels"),
        ({"a": nested(20)}, "result is nested deeper than 20 levels"),
    ],
)
def test_the_place_and_the_type_of_what_is_not_json_are_named(
    payment: Agent, clock: Clock, value: object, message: str
) -> None:
    payment.performs(charge_card)(returning(value))
    error = reply(payment, clock).error
    assert error is not None
    assert (error.type, error.message) == ("ResultNotJson", message + HOW)


def test_a_result_that_contains_itself_is_refused(payment: Agent, clock: Clock) -> None:
    value: list[object] = []
    value.append(value)
    payment.performs(charge_card)(returning(value))
    error = reply(payment, clock).error
    assert error is not None
    assert error.message == "result is nested deeper than 20 levels" + HOW


@pytest.mark.parametrize("value", [nested(20), {1: "a", 2: "b"}, {None: 1}, (True, None, 1.5)])
def test_what_json_can_say_is_a_result(payment: Agent, clock: Clock, value: object) -> None:
    payment.performs(charge_card)(returning(value))
    assert reply(payment, clock).outcome is Outcome.SUCCEEDED


def test_a_result_of_256_kib_is_sent_and_one_byte_more_is_a_success_without_it(
    payment: Agent, clock: Clock
) -> None:
    sizes = iter([LARGEST_KEPT_RESULT - 2, LARGEST_KEPT_RESULT - 1])  # without the quotes around it
    payment.performs(charge_card)(lambda _: "x" * next(sizes))
    assert reply(payment, clock).left_out is None
    answer = reply(payment, clock)
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, None)
    assert answer.left_out == "the result has 262145 bytes; at most 262144 are kept"


def test_a_transient_error_is_answered_with_its_words_and_the_wait_asked_for(
    payment: Agent, clock: Clock
) -> None:
    error = TransientError("503 from acquirer", retry_after=timedelta(seconds=2.5))
    payment.performs(charge_card)(raising(error))
    answer = reply(payment, clock)
    assert answer.outcome is Outcome.TRANSIENT
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("TransientError", "503 from acquirer")
    assert answer.retry_after == 2_500


def test_a_kind_of_transient_error_is_named_by_its_class(payment: Agent, clock: Clock) -> None:
    class AcquirerDown(TransientError):
        pass

    payment.performs(charge_card)(raising(AcquirerDown("")))
    answer = reply(payment, clock)
    assert answer.error is not None
    assert (answer.error.type, answer.retry_after) == ("AcquirerDown", None)


@pytest.mark.parametrize(
    ("asked", "expected"), [(timedelta(-1), 0), (timedelta.max, 365 * 86_400_000)]
)
def test_a_strange_wait_never_spoils_the_reply(
    payment: Agent, clock: Clock, asked: timedelta, expected: int
) -> None:
    payment.performs(charge_card)(raising(TransientError("later", retry_after=asked)))
    assert reply(payment, clock).retry_after == expected


@pytest.mark.parametrize("asked", [5, 1.5, "5"])
def test_a_wait_that_is_no_timedelta_is_refused_where_it_is_given(
    payment: Agent, clock: Clock, asked: object
) -> None:
    def charge(_: StepRequest) -> Json:
        raise TransientError("later", retry_after=asked)  # type: ignore[arg-type]

    payment.performs(charge_card)(charge)
    answer = reply(payment, clock)
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, None)
    assert answer.error is not None
    assert answer.error.type == "TypeError"


def test_a_permanent_error_is_answered_with_its_type(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(raising(PermanentError("CardDeclined", "insufficient funds")))
    answer = reply(payment, clock)
    assert answer.outcome is Outcome.PERMANENT
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("CardDeclined", "insufficient funds")


def test_a_sentence_in_place_of_a_type_is_the_message_and_the_failure_is_permanent(
    payment: Agent, clock: Clock
) -> None:
    payment.performs(charge_card)(raising(PermanentError("the bank refused")))
    answer = reply(payment, clock)
    assert answer.outcome is Outcome.PERMANENT
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("PermanentError", "the bank refused")


@pytest.mark.parametrize(
    ("error", "untyped"),
    [
        (PermanentError("the bank refused"), True),
        (PermanentError("CardDeclined"), False),
        (PermanentError("CardDeclined", "the bank refused"), False),
        (PermanentError("card declined", "the bank refused"), False),  # as a service may say it
        (PermanentError(""), False),
    ],
)
def test_an_error_knows_whether_its_type_is_missing(error: PermanentError, untyped: bool) -> None:
    assert error.untyped is untyped


@pytest.mark.parametrize(
    "error",
    [PermanentError(""), PermanentError("A" * 5_000, "\ud800\uffff" * 5_000)],
    ids=["empty", "endless"],
)
def test_a_strange_error_never_spoils_the_reply(
    payment: Agent, clock: Clock, error: PermanentError
) -> None:
    payment.performs(charge_card)(raising(error))
    answer = reply(payment, clock)
    assert answer.outcome is Outcome.PERMANENT
    assert len(answer.body().encode()) < 10_000


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
    assert answer.error.message == "unexpected error; see the log of the payment agent"
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
    answer = reply(payment, clock, request(step=step, operation=operation))
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, 60_000)
    assert answer.error is not None
    assert answer.error.type == "NoHandler"
    assert "deploy the agent with it: an order keeps the steps" in answer.error.message


def test_an_order_that_is_no_object_fails_for_good(payment: Agent, clock: Clock) -> None:
    payment.performs(charge_card)(returning(None))
    answer = reply(payment, clock, request(input=["not", "an", "order"]))
    assert answer.outcome is Outcome.PERMANENT
    assert answer.error is not None
    assert answer.error.type == "InputNotObject"


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
