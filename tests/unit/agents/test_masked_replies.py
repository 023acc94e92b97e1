"""What an agent tells of an attempt has no value that its request says is masked."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from roundsman import Agent, PermanentError, Step, StepRequest, TransientError
from roundsman.agents.guard import NoGuard
from roundsman.errors import AccessError
from roundsman.model.json import Json
from roundsman.model.masked_values import MASK
from roundsman.model.record_limits import LONGEST_MESSAGE
from roundsman.model.task import StepError
from roundsman.wire.messages import AgentRequest, Reply, read_request
from tests.support.agent_samples import NOW, Clock, ask, charge_card, raising, request

T = TypeVar("T")
TOKEN = "tok_4711_secret"
ORDER: Json = {"orderId": "ord-1", "card": {"token": TOKEN}}
MASKED = request(input=ORDER, masked=("input.card.token",))
pack = Step(
    name="pack",
    agent="payment",
    complete_within=timedelta(minutes=1),
    heartbeat_within=timedelta(seconds=9),
)


def error_of(clock: Clock, error: Exception, asked: AgentRequest = MASKED) -> StepError | None:
    agent = Agent("payment")
    agent.performs(charge_card)(raising(error))
    answer = ask(agent, clock, asked)
    assert isinstance(answer, Reply)
    return answer.error


@pytest.mark.parametrize("kind", [TransientError, AccessError])
def test_an_error_is_told_without_the_value(clock: Clock, kind: Callable[[str], Exception]) -> None:
    error = error_of(clock, kind(f"{TOKEN} is blocked"))
    assert error is not None
    assert error.message.startswith(f"{MASK} is blocked")


def test_the_value_is_replaced_before_the_message_is_cut(clock: Clock) -> None:
    error = error_of(clock, PermanentError("No", "x" * (LONGEST_MESSAGE - 5) + TOKEN))
    assert error == StepError("No", ("x" * (LONGEST_MESSAGE - 5) + MASK)[:LONGEST_MESSAGE])


def test_what_is_masked_of_results_and_of_its_own_input_is_replaced_too(clock: Clock) -> None:
    asked = request(
        input=ORDER,
        results={"quote": {"number": "Q-778899"}, "open": "O-778899"},
        step_input={"passport": "P-112233", "city": "Rotterdam"},
        masked=("results.quote", "stepInput.passport"),
    )
    said = "Q-778899, O-778899, P-112233, Rotterdam"
    expected = StepError("No", f"{MASK}, O-778899, {MASK}, Rotterdam")
    assert error_of(clock, PermanentError("No", said), asked) == expected
    assert read_request(asked.body()) == asked


def test_a_request_of_an_older_scheduler_masks_nothing(clock: Clock) -> None:
    error = error_of(clock, PermanentError("No", TOKEN), request(input=ORDER))
    assert error == StepError("No", TOKEN)


def test_a_note_of_progress_is_logged_without_the_value(clock: Clock) -> None:
    def work(asked: StepRequest) -> None:
        asked.progress(f"sent {TOKEN}")

    agent, replies = Agent("payment"), list[Reply]()
    agent.performs(pack)(work)
    asked = request(
        step="pack",
        heartbeat_by=NOW + 9_000,
        sent_at=NOW,
        input=ORDER,
        masked=("input.card.token",),
    )
    ask(agent, clock, asked, send_now=replies.append)
    assert [one.result for one in replies] == [f"sent {MASK}"]


class Keeping(NoGuard):
    """A guard that keeps what the circuit breaker quotes of a failure."""

    def __init__(self) -> None:
        self.kept = list[str]()

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,
        order: str = "",
        tenant: str | None = None,
        asks: bool = False,
        follows: bool = False,
    ) -> T:
        try:
            return super().call(
                function, ends_at=ends_at, order=order, tenant=tenant, asks=asks, follows=follows
            )
        except TransientError as error:
            self.kept.append(f"{error} {error.cause}")
            raise


def test_the_circuit_breaker_gets_the_error_without_the_value(clock: Clock) -> None:
    agent, guard = Agent("payment"), Keeping()
    error = TransientError(f"no {TOKEN}", cause=f"of {TOKEN}", retry_after=timedelta(hours=1))
    agent.performs(charge_card)(raising(error))
    ask(agent, clock, MASKED, guard=guard)
    assert guard.kept == [f"no {MASK} of {MASK}"]
