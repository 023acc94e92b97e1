"""The services of a proof honour keys, fence what was undone, and fail as the order says."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from roundsman import DidNotHappen, Happened, PermanentError, StepRequest, TransientError
from roundsman_dev.prove.application.agents import AGENTS, agent
from roundsman_dev.prove.application.ledger import EffectLedger
from roundsman_dev.prove.application.orders import (
    STEPS,
    ProofOrder,
    Treatment,
    order_id,
    order_of,
)
from roundsman_dev.prove.application.services import HANGS, LATE, SLOW, ProofServices
from roundsman_dev.prove.application.workflows import WORKFLOWS
from roundsman_dev.prove.document import LedgerRow
from roundsman_dev.prove.reading import read_ledger

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOW = 1_800_000_000_000
TABLE = "ledger"


class Left(BaseException):
    """The process has ended."""


class Room:
    """The services of the agent `stock`, with a clock that moves by their sleeps."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self.client = client
        self.now = NOW
        self.slept: list[float] = []
        self.services = ProofServices(EffectLedger(client, TABLE), "stock", self.sleep, self.leave)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * 1_000)

    def leave(self, status: int) -> None:
        raise Left(status)

    def request(self, order: str, step: str = "reserve", **changes: object) -> StepRequest:
        key = f"{order}/{step}/perform"
        made = StepRequest(
            task_id=order,
            workflow="line",
            step=step,
            operation="perform",
            idempotency_key=key,
            perform_key=key,
            attempt=1,
            complete_by=NOW + 60_000,
            outcome_unknown=False,
            input={"items": ["a"]},
            results={},
            callback_token="token",
            ends_at=NOW + 10_000,
            clock=lambda: self.now,
            show_progress=lambda _: None,
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    def row(self) -> LedgerRow:
        [found] = read_ledger(self.client, TABLE)
        return found


@pytest.fixture
def room() -> Iterator[Room]:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": "Key", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "Key", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield Room(client)


def an_order(treatment: Treatment, workflow: str = "line", struck: str = "reserve") -> str:
    """The id of an order of the workflow whose step is treated so."""
    for number in range(10_000):
        found = ProofOrder(number)
        if (found.treatment, found.workflow, found.struck) == (treatment, workflow, struck):
            return order_id("prove-1", number)
    raise AssertionError(f"no order of {workflow} is treated so at {struck}")


def test_a_repeated_call_has_no_second_effect(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    assert room.services.perform(request) == room.services.perform(request)
    assert (room.row().calls, room.row().effects, room.row().stands) == (2, 1, True)
    assert room.row().agent == "stock"


def test_a_key_that_was_undone_is_refused_for_ever(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    room.services.perform(request)
    room.services.undo(request)
    with pytest.raises(PermanentError, match="Undone"):
        room.services.perform(request)
    assert (room.row().stands, room.row().fenced, room.row().undone_at) == (False, 1, NOW)


def test_a_key_is_fenced_by_an_undo_that_comes_before_its_perform(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    room.services.undo(request)
    with pytest.raises(PermanentError, match="Undone"):
        room.services.perform(request)
    assert (room.row().effects, room.row().fenced) == (0, 1)


def test_a_second_undo_does_not_move_the_time_of_the_first(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    room.services.undo(request)
    room.now += 5
    room.services.undo(request)
    assert (room.row().undone_at, room.row().undo_calls) == (NOW, 2)


def test_an_answer_is_lost_once_and_its_effect_stands(room: Room) -> None:
    request = room.request(an_order(Treatment.LOST))
    with pytest.raises(TransientError):
        room.services.perform(request)
    assert room.row().stands
    room.services.perform(request)
    assert room.row().effects == 1


def test_a_busy_service_fails_twice_without_an_effect(room: Room) -> None:
    request = room.request(an_order(Treatment.BUSY))
    for _ in range(2):
        with pytest.raises(TransientError):
            room.services.perform(request)
    assert not room.row().stands
    room.services.perform(request)
    assert room.row().stands


def test_the_process_ends_after_the_effect(room: Room) -> None:
    request = room.request(an_order(Treatment.EXITS))
    with pytest.raises(Left):
        room.services.perform(request)
    assert room.row().stands
    room.services.perform(request)


@pytest.mark.parametrize(
    ("treatment", "seconds"),
    [(Treatment.SLOW, SLOW), (Treatment.HANGS, HANGS), (Treatment.REFUSED_LATE, LATE)],
)
def test_a_service_takes_its_time_at_the_first_call(
    room: Room, treatment: Treatment, seconds: float
) -> None:
    request = room.request(an_order(treatment))
    room.services.perform(request)
    room.services.perform(request)
    assert room.slept == [seconds]
    assert room.row().took_at == NOW + round(seconds * 1_000)


def test_a_call_after_complete_by_is_noted(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    room.services.perform(request)
    assert room.row().late == 0
    room.services.perform(replace(request, complete_by=NOW - 1))
    assert room.row().late == 1


def test_another_input_under_the_same_key_is_noted(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    room.services.perform(request)
    room.services.perform(request)
    assert len(room.row().inputs) == 1
    room.services.perform(replace(request, input={"items": ["b"]}))
    assert len(room.row().inputs) == 2


def test_the_last_step_of_a_refused_order_has_no_effect(room: Room) -> None:
    refused = an_order(Treatment.REFUSED)
    for _ in range(2):
        with pytest.raises(PermanentError, match="Refused"):
            room.services.perform(room.request(refused, "ship"))
    assert room.row().effects == 0


def test_the_answer_of_the_first_undo_of_a_refused_order_is_lost(room: Room) -> None:
    request = room.request(an_order(Treatment.REFUSED))
    room.services.perform(request)
    with pytest.raises(TransientError):
        room.services.undo(request)
    assert not room.row().stands
    room.services.undo(request)


def test_a_probe_says_whether_the_effect_stands(room: Room) -> None:
    request = room.request(an_order(Treatment.ANSWERED))
    assert room.services.probe(request) == DidNotHappen()
    room.services.perform(request)
    assert isinstance(room.services.probe(request), Happened)
    room.services.undo(request)
    assert room.services.probe(request) == DidNotHappen()


def test_an_order_that_is_not_of_a_proof_is_refused(room: Room) -> None:
    with pytest.raises(PermanentError, match="NotOfAProof"):
        room.services.perform(room.request("order-of-somebody"))


# --- The orders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_has_a_function_for_each_of_its_steps(name: str) -> None:
    agent(name).check_functions()


def test_the_steps_that_ends_are_made_of_are_those_of_the_workflows() -> None:
    assert STEPS.keys() == WORKFLOWS.keys()
    for name, steps in STEPS.items():
        assert [step.name for step in WORKFLOWS[name].steps] == list(steps)


def test_two_hundred_orders_are_every_workflow_under_every_treatment() -> None:
    orders = [ProofOrder(number) for number in range(200)]
    found = {(one.workflow, one.treatment) for one in orders}
    assert len(found) == len(WORKFLOWS) * len(Treatment)


def test_forty_orders_have_every_treatment_and_every_end() -> None:
    """So many are sent on a machine that is small."""
    orders = [ProofOrder(number) for number in range(40)]
    assert {one.treatment for one in orders} == set(Treatment)
    assert {one.end.state for one in orders} == {"Completed", "Undone", "Archived"}


@pytest.mark.parametrize("name", ["prove-1a2b3c-000017", "prove-17"])
def test_an_order_is_known_by_the_number_at_the_end_of_its_id(name: str) -> None:
    assert order_of(name) == ProofOrder(17)


@pytest.mark.parametrize("name", ["", "prove-", "prove-1a2b3c", "prove-²"])
def test_an_id_without_a_number_is_no_order_of_a_proof(name: str) -> None:
    assert order_of(name) is None


def test_the_step_that_is_struck_is_one_that_the_order_has() -> None:
    for number in range(1_000):
        order = ProofOrder(number)
        performed = set(order.end.standing) or {STEPS[order.workflow][0], "pick[0]"}
        assert order.struck in performed
