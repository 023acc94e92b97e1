"""What else stands before a call: a person's hold; and what happens without ControlTable."""

from dataclasses import replace
from typing import Never

import pytest

from roundsman import Agent, Compensation, DidNotHappen, StepRequest
from roundsman.agents.guard import CallHeld, RateLimited
from roundsman.aws.guard.guard import AgentGuard
from roundsman.errors import TransientError
from roundsman.model.events import Outcome
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE, SECOND
from tests.contract.circuits import FAILURES, Circuit, call, fresh_circuits, real_now
from tests.contract.samples import NOW
from tests.contract.test_breaker import DOWN, answers, circuit, never
from tests.contract.test_lost_answers import unreachable
from tests.contract.worlds import World
from tests.support.agent_samples import Clock, charge_card, reply, request, returning

__all__ = ["circuit", "fresh_circuits"]

pytestmark = pytest.mark.usefixtures("fresh_circuits")


# ---- where ControlTable cannot be reached ------------------------------------------------


def test_without_the_table_calls_pass(moto_world: World) -> None:
    guard = Circuit(moto_world, calls_per_second=0.1).instance()
    client = moto_world.client
    with (
        unreachable(client, "GetItem"),
        unreachable(client, "PutItem"),
        unreachable(client, "UpdateItem"),
    ):
        for _ in range(3):
            assert call(guard, answers) == "done"
        for _ in range(FAILURES - 1):
            with pytest.raises(TransientError):
                call(guard, DOWN)
        with pytest.raises(CallHeld):
            call(guard, DOWN)
        assert call(guard, answers) == "done", "nobody could store that it is open"


# ---- a person's hold ---------------------------------------------------------------------


def test_what_was_in_the_queue_when_somebody_held_the_agent_is_given_back(
    circuit: Circuit,
) -> None:
    until = real_now() + 30 * MINUTE
    hold = Hold("payment", OPERATOR, real_now(), until, "acquirer maintenance", "anna")
    circuit.world.holds(circuit.clock).hold(hold)
    with pytest.raises(CallHeld, match=r"payment is on hold by anna until .*: acquirer") as held:
        call(circuit.instance(), never)
    assert (held.value.until, held.value.called) == (until, False)


def test_an_order_that_the_hold_lets_pass_is_called_for(circuit: Circuit) -> None:
    hold = Hold("payment", OPERATOR, real_now(), real_now() + 30 * MINUTE, "repair", "anna")
    circuit.world.holds(circuit.clock).hold(hold.letting_pass("ord-1"))
    guard = circuit.instance()
    assert guard.call(answers, ends_at=real_now() + MINUTE, order="ord-1") == "done"
    with pytest.raises(CallHeld):
        guard.call(never, ends_at=real_now() + MINUTE, order="ord-2")


def test_a_hold_is_seen_within_five_seconds_and_over_at_its_end(circuit: Circuit) -> None:
    now = [real_now()]
    circuit.clock = lambda: now[0]
    guard = circuit.instance()
    assert call(guard, answers) == "done"
    until = now[0] + MINUTE
    hold = Hold("payment", OPERATOR, now[0], until, "", "anna")
    circuit.world.holds(circuit.clock).hold(hold)
    now[0] += 5 * SECOND - 1
    assert call(guard, answers) == "done"
    now[0] += 1
    with pytest.raises(CallHeld):
        call(guard, never)
    now[0] = until - 1
    with pytest.raises(CallHeld):
        call(guard, never)
    now[0] = until
    assert call(guard, answers) == "done"


def test_a_known_hold_goes_on_where_it_cannot_be_read_again(moto_world: World) -> None:
    circuit = Circuit(moto_world)
    now = [real_now()]
    circuit.clock = lambda: now[0]
    guard = circuit.instance()
    hold = Hold("payment", OPERATOR, now[0], now[0] + MINUTE, "", "anna")
    circuit.world.holds(circuit.clock).hold(hold)
    with pytest.raises(CallHeld):
        call(guard, never)
    now[0] += 10 * SECOND
    with unreachable(moto_world.client, "GetItem"), pytest.raises(CallHeld):
        call(guard, never)


def test_a_hold_on_another_agent_holds_nobody_else(circuit: Circuit) -> None:
    hold = Hold("mail", OPERATOR, real_now(), real_now() + MINUTE, "", "anna")
    circuit.world.holds(circuit.clock).hold(hold)
    assert call(circuit.instance(), answers) == "done"


def test_a_later_call_of_an_attempt_finds_its_turn_also_where_calls_queue(
    dynamo_world: World,
) -> None:
    slept: list[int] = []
    crowd = [Circuit(dynamo_world, calls_per_second=1, clock=lambda: NOW) for _ in range(3)]
    circuit = Circuit(dynamo_world, calls_per_second=1, clock=lambda: NOW, slept=slept)
    guard = circuit.instance()
    guard.call(lambda: "nothing", ends_at=NOW + MINUTE, asks=True)
    for other in crowd[:2]:
        other.instance().call(lambda: "done", ends_at=NOW + MINUTE)
    with pytest.raises(RateLimited):
        crowd[2].instance().call(lambda: "done", ends_at=NOW + MINUTE)
    assert guard.call(lambda: "done", ends_at=NOW + MINUTE, follows=True) == "done"
    assert slept == [3 * SECOND]
    with pytest.raises(RateLimited):
        guard.call(lambda: "of another attempt", ends_at=NOW + MINUTE)
    assert guard.call(lambda: "done", ends_at=NOW + MINUTE, follows=True) == "done"
    with pytest.raises(RateLimited):
        guard.call(lambda: "too far ahead", ends_at=NOW + MINUTE, follows=True)


def take_all_turns(guard: AgentGuard, ends_at: int) -> Never:
    """Take every turn that is near enough for a first call; the next one is RateLimited."""
    while True:
        guard.call(lambda: "done", ends_at=ends_at)


def test_the_probe_of_a_verified_undo_finds_its_turn_also_where_calls_queue(
    dynamo_world: World,
) -> None:
    step = replace(charge_card, compensation=Compensation(verify=True))
    agent, clock, undone = Agent("payment"), Clock(), list[str]()

    @agent.compensates(step)
    def refund(asked: StepRequest) -> None:
        undone.append(asked.idempotency_key)
        crowd = Circuit(dynamo_world, calls_per_second=1, clock=clock).instance()
        with pytest.raises(RateLimited):
            take_all_turns(crowd, ends_at=clock.now + MINUTE)

    def sleep(milliseconds: int) -> None:
        clock.now += milliseconds

    agent.probes(step)(returning(DidNotHappen()))
    guard = Circuit(dynamo_world, calls_per_second=1, clock=clock, sleep=sleep).instance()
    undo = request(
        operation="undo", idempotency_key="ord-1/charge_card/undo", outcome_unknown=False
    )
    began = clock.now
    assert reply(agent, clock, undo, guard=guard).outcome is Outcome.SUCCEEDED
    assert undone == ["ord-1/charge_card/undo"]
    assert clock.now == began + 3 * SECOND
