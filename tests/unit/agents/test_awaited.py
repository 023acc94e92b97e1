"""Async functions of an agent: they are awaited, and end with the time of their attempt."""

import asyncio

import pytest

from roundsman import Agent, DidNotHappen, Happened, PermanentError, StepRequest, TransientError
from roundsman.agents.agent import Reminded
from roundsman.agents.request import Perform
from roundsman.model.events import Outcome
from tests.support.agent_samples import NOW, Clock, ask, charge_card, reply, request

HOUR = 3_600


async def charge(asked: StepRequest) -> object:
    await asyncio.sleep(0)
    return {"chargeId": asked.idempotency_key}


def test_what_an_async_function_returns_is_its_result() -> None:
    agent = Agent("payment")
    assert agent.performs(charge_card)(charge) is charge
    answer = reply(agent, Clock(), request())
    assert (answer.outcome, answer.result) == (
        Outcome.SUCCEEDED,
        {"chargeId": "ord-1/charge_card/perform"},
    )


class Charges:
    """A callable object whose call is async."""

    async def __call__(self, asked: StepRequest) -> object:
        return await charge(asked)


def decorated(asked: StepRequest) -> object:
    """An ordinary function that returns what an async function returned, as a decorator does."""
    return charge(asked)


@pytest.mark.parametrize("function", [Charges(), decorated])
def test_a_callable_that_does_not_look_async_is_awaited_too(function: Perform) -> None:
    agent = Agent("payment")
    agent.performs(charge_card)(function)
    answer = reply(agent, Clock(), request())
    assert answer.result == {"chargeId": "ord-1/charge_card/perform"}


def test_each_call_has_a_loop_of_its_own() -> None:
    agent, loops = Agent("payment"), list[object]()

    @agent.performs(charge_card)
    async def function(_: StepRequest) -> None:
        loops.append(asyncio.get_running_loop())
        if len(loops) < 2:
            raise TransientError("503")

    assert reply(agent, Clock(), request()).outcome is Outcome.SUCCEEDED
    assert loops[0] is not loops[1]


def test_what_it_raises_is_the_outcome() -> None:
    agent = Agent("payment")

    @agent.performs(charge_card)
    async def refused(_: StepRequest) -> None:
        raise PermanentError("CardDeclined", "no")

    answer = reply(agent, Clock(), request())
    assert answer.error is not None
    assert (answer.outcome, answer.error.type) == (Outcome.PERMANENT, "CardDeclined")


def test_a_function_that_hangs_is_cancelled_when_its_attempt_has_no_time_left() -> None:
    agent, ended = Agent("payment"), list[str]()

    @agent.performs(charge_card)
    async def hangs(_: StepRequest) -> None:
        try:
            await asyncio.sleep(HOUR)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    # The function itself ends so soon that two tenths of a second are left for the attempt.
    answer = reply(agent, Clock(), request(), function_ends_at=NOW + 2_200)
    assert answer.error is not None
    assert (answer.outcome, answer.error.type) == (Outcome.TRANSIENT, "TimeoutError")
    assert ended == ["cancelled"]


def test_a_probe_and_an_undo_are_awaited_too() -> None:
    agent, called = Agent("payment"), list[str]()

    @agent.compensates(charge_card)
    async def refund(asked: StepRequest) -> None:
        await asyncio.sleep(0)
        called.append(f"refund {asked.results['charge_card']}")

    @agent.probes(charge_card)
    async def find(_: StepRequest) -> Happened | DidNotHappen:
        await asyncio.sleep(0)
        called.append("find")
        return Happened("c-1")

    undo = request(
        operation="undo",
        idempotency_key="ord-1/charge_card/undo",
        perform_key="ord-1/charge_card/perform",
    )
    assert reply(agent, Clock(), undo).outcome is Outcome.SUCCEEDED
    assert called == ["find", "refund c-1"]


def test_a_function_that_reminds_is_awaited_too() -> None:
    agent, reminded = Agent("payment"), list[int | None]()

    @agent.reminds(charge_card)
    async def remind(asked: StepRequest) -> None:
        await asyncio.sleep(0)
        reminded.append(asked.reminder)

    assert ask(agent, Clock(), request(reminder=2)) == Reminded()
    assert reminded == [2]
