"""Steps that end later: the function waits for a callback, and the token makes its reply."""

import re
from datetime import timedelta

import pytest

from roundsman import Agent, Callback, PermanentError, StepRequest, TransientError
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.errors import InvalidToken
from roundsman.model.events import Outcome
from roundsman.wire.messages import read_reply
from tests.support.agent_samples import NOW, Clock, charge_card, reply, request, returning

LATER = NOW + 86_400_000


def token_of(**changes: object) -> str:
    agent, tokens = Agent("payment"), list[str]()
    agent.performs(charge_card)(lambda asked: tokens.append(asked.callback_token))
    reply(agent, Clock(), request(**changes))
    return tokens[0]


def test_a_function_that_returns_a_callback_ends_its_attempt_waiting(
    payment: Agent, clock: Clock
) -> None:
    @payment.performs(charge_card)
    def charge(asked: StepRequest) -> Callback:
        clock.now += 250
        return Callback(within=timedelta(days=2))

    answer = reply(payment, clock)
    assert (answer.outcome, answer.until) == (Outcome.WAITING, NOW + 250 + 2 * 86_400_000)
    assert (answer.result, answer.error) == (None, None)


@pytest.mark.parametrize(
    "within", [timedelta(0), timedelta(-1), timedelta(seconds=0.9), timedelta(days=366)]
)
def test_a_callback_comes_within_a_second_to_a_year(within: timedelta) -> None:
    with pytest.raises(ValueError, match="within must be from 1 s to 365 days, not"):
        Callback(within=within)


def test_a_callbacks_time_is_a_timedelta() -> None:
    with pytest.raises(TypeError, match="within must be a timedelta, not an int"):
        Callback(within=60)  # type: ignore[arg-type]  # the mistake that is meant


def test_an_undo_cannot_wait_for_a_callback(payment: Agent, clock: Clock) -> None:
    payment.compensates(charge_card)(returning(Callback(within=timedelta(days=1))))
    answer = reply(payment, clock, request(operation="undo"))
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, 60_000)
    assert answer.error is not None
    assert answer.error.type == "CallbackInUndo"
    assert (
        answer.error.message
        == "the undo function returned a Callback, but an undo cannot wait for one"
    )


def test_the_token_makes_the_reply_that_says_it_was_done() -> None:
    answer = read_reply(succeeded_reply(token_of(), {"approvedBy": "j.doe"}, clock=lambda: LATER))
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"approvedBy": "j.doe"})
    assert (answer.task_id, answer.step, answer.operation) == ("ord-1", "charge_card", "perform")
    assert (answer.lock, answer.idempotency_key) == ("7f3a-0c1d.2", "ord-1/charge_card/perform")
    assert (answer.agent, answer.finished_at) == ("payment", LATER)


def test_the_token_makes_the_reply_that_says_it_failed_for_good() -> None:
    error = PermanentError("Rejected", "the limit is exceeded")
    answer = read_reply(failed_reply(token_of(), error, clock=lambda: LATER))
    assert answer.outcome is Outcome.PERMANENT
    assert answer.error is not None
    assert (answer.error.type, answer.error.message) == ("Rejected", "the limit is exceeded")


def test_the_token_makes_the_reply_that_asks_for_another_attempt() -> None:
    error = TransientError("nobody is there", retry_after=timedelta(hours=1))
    answer = read_reply(failed_reply(token_of(), error))
    assert (answer.outcome, answer.retry_after) == (Outcome.TRANSIENT, 3_600_000)
    assert answer.finished_at > NOW - 400 * 86_400_000  # by the real clock


def test_a_token_is_of_its_attempt_and_its_item() -> None:
    tokens = {
        token_of(),
        token_of(lock="7f3a-0c1d.3"),
        token_of(step="charge_card[3]"),
        token_of(task_id="ord-2"),
    }
    assert len(tokens) == 4


def test_a_token_can_stand_in_a_url_or_a_mail() -> None:
    longest = token_of(task_id="o" * 128, idempotency_key="o" * 400)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", longest)
    assert len(longest) < 1_000
    assert read_reply(succeeded_reply(longest)).task_id == "o" * 128


@pytest.mark.parametrize(
    "token",
    [
        "",
        "token",
        "caf\u00e9",
        "e30",
        "bnVsbA",
        "W10",
        token_of()[:-1],
        token_of()[4:],
        "a b",
        None,
    ],
)
def test_what_is_no_token_is_refused_in_words(token: str) -> None:
    with pytest.raises(InvalidToken, match="this is not a callback token"):
        succeeded_reply(token)


def test_a_result_that_could_not_be_kept_is_refused_where_it_is_given() -> None:
    with pytest.raises(ValueError, match="result is an object, which is not JSON"):
        succeeded_reply(token_of(), object())
    with pytest.raises(ValueError, match="the result has 40002 bytes; 32768 fit"):
        succeeded_reply(token_of(), "x" * 40_000)


def test_only_the_two_errors_of_agents_say_that_it_failed() -> None:
    with pytest.raises(TypeError, match="must be a PermanentError or a TransientError"):
        failed_reply(token_of(), ValueError())  # type: ignore[arg-type]  # the mistake that is meant


def test_a_reply_can_be_sent_whatever_characters_are_in_it() -> None:
    body = succeeded_reply(token_of(), {"note": "\uffff"})
    assert "\uffff" not in body
    assert read_reply(body).result == {"note": "\uffff"}
