"""The history says which principal sent a command or answered; a foreign command is alerted."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import PermanentError, TransientError
from roundsman.agents.callbacks import failed_reply
from roundsman.definition.workflow import Retry
from roundsman.model.events import Cancel, CommandSource, HistoryRow
from roundsman.model.states import TaskState
from roundsman.wire.commands import command_of
from roundsman.wire.messages import read_reply
from roundsman_testing import FOR_EVER, Fault, World
from roundsman_testing.world.queues import (
    ANSWER_SENDER,
    APPLICATION_SENDER,
    COMMANDS,
    CONSOLE_PRINCIPAL,
    OPERATOR_SENDER,
    REPLIES,
    SUBMISSION_SENDER,
)
from tests.world.shop import FENCED, a_step, a_workflow

STRANGER = "AIDASTRANGER"


@pytest.fixture
def world() -> World:
    return World(a_workflow(a_step("charge", compensation=FENCED)))


def commands(world: World, order: str) -> list[HistoryRow]:
    return [row for row in world.history(order) if row.by is not None]


def foreign(world: World) -> list[str]:
    found = [alert for alert in world.post.alerts if alert.attributes["kind"] == "foreign_command"]
    return [alert.sms for alert in found]


def test_a_command_and_its_refusal_name_the_operators_principal(world: World) -> None:
    order = world.submit()
    world.operator.cancel(order)
    world.run()
    world.operator.cancel(order)
    world.run()
    assert [(row.kind, row.sender) for row in commands(world, order)] == [
        ("cancel", OPERATOR_SENDER),
        ("refused", OPERATOR_SENDER),
    ]
    assert foreign(world) == []


def test_a_cancellation_of_the_application_names_its_principal(world: World) -> None:
    order = world.submit()
    world.cancel(order)
    world.run()
    [row] = commands(world, order)
    assert (row.by, row.sender) == ("application", APPLICATION_SENDER)
    assert foreign(world) == []


@pytest.mark.parametrize("claimed", [None, OPERATOR_SENDER, SUBMISSION_SENDER])
def test_a_foreign_principal_is_in_the_history_and_in_an_alert_whatever_it_says_of_itself(
    world: World, claimed: str | None
) -> None:
    order = world.submit()
    source = CommandSource("c-1", "ann", forwarded_for=claimed)
    body = command_of(order, Cancel(source)).body()
    world.queues.send(COMMANDS, body, sender=STRANGER)
    world.run()
    assert world.task(order).state is TaskState.CANCELLED
    [row] = commands(world, order)
    assert (row.by, row.sender) == ("ann", STRANGER)
    [text] = foreign(world)
    assert STRANGER in text


@pytest.mark.parametrize(
    ("principal", "who"),
    [(CONSOLE_PRINCIPAL, "amy (through console)"), ("AROAOPERATOR", "AROAOPERATOR:task-1")],
)
def test_the_history_says_who_is_signed_in_only_if_the_consoles_role_does(
    world: World, principal: str, who: str
) -> None:
    order = world.submit()
    body = command_of(order, Cancel(CommandSource("c-1", "amy", forwarded_for="amy"))).body()
    world.queues.send(COMMANDS, body, sender=f"{principal}:task-1")
    world.run()
    [row] = commands(world, order)
    assert (row.kind, row.by, row.sender) == ("cancel", "amy", who)
    assert foreign(world) == []


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.CRASH_BEFORE, Fault.UNKNOWN])
def test_no_foreign_command_is_executed_without_its_alert(world: World, fault: Fault) -> None:
    order = world.submit()
    world.faults.on("publish", fault, nth=1)
    world.operator.sender = STRANGER
    world.operator.cancel(order)
    world.run(until=lambda: fault in world.faults.count)
    assert commands(world, order) == []
    world.run()
    assert [row.sender for row in commands(world, order)] == [STRANGER]
    assert len(foreign(world)) >= 1


def approvals() -> World:
    """A world with an order that waits for an answer from outside."""
    world = World(a_workflow(a_step("approve", retry=Retry(max_attempts=2), compensation=FENCED)))
    world.on("approve").asks(timedelta(hours=1), times=FOR_EVER)
    world.submit()
    return world.run(until=lambda: world.waits_for_answer("ord-1", "approve"))


def answers(world: World) -> list[tuple[str | None, int | None, str | None, str]]:
    rows = [row for row in world.history("ord-1") if row.kind == "answered"]
    return [(row.step, row.attempt, row.sender, row.reason.rpartition(": ")[2]) for row in rows]


@pytest.mark.parametrize(
    ("error", "outcome", "state"),
    [
        (None, "succeeded", TaskState.COMPLETED),
        (PermanentError("Rejected"), "permanent", TaskState.UNDONE),
    ],
)
def test_the_history_says_which_principal_answered_a_callback(
    error: PermanentError | None, outcome: str, state: TaskState
) -> None:
    world = approvals()
    assert answers(world) == []
    world.answer("ord-1", "approve", {"by": "ann"}, error=error)
    world.answer("ord-1", "approve", {"by": "ann"}, error=error)  # it changes nothing
    world.run()
    assert world.task("ord-1").state is state
    assert answers(world) == [("approve", 1, ANSWER_SENDER, outcome)]


def test_an_answer_that_claims_to_be_the_agents_names_its_own_principal() -> None:
    world = approvals()
    (asked,) = world.processes.tokens["ord-1", "approve"]
    body = failed_reply(asked.token, PermanentError("Rejected"), clock=world.clock)
    as_agent = replace(read_reply(body), callback=False)
    world.queues.send(REPLIES, as_agent.body(), sender=STRANGER)
    world.run()
    assert answers(world) == [("approve", 1, STRANGER, "permanent")]


def test_an_answer_between_two_attempts_and_one_after_the_end_name_their_principals() -> None:
    world = approvals()
    world.answer("ord-1", "approve", error=TransientError("ask again later"))
    world.run(until=lambda: world.task("ord-1").step("approve").failure_count == 1)
    assert answers(world) == [("approve", 1, ANSWER_SENDER, "transient")]
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert len(answers(world)) == 1


def test_a_reply_that_answers_no_callback_leaves_no_row() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED)))
    order = world.submit()
    world.run()
    assert world.history(order) == []


def test_a_command_without_a_sender_is_executed_as_before(world: World) -> None:
    order = world.submit()
    world.operator.sender = None
    world.operator.cancel(order)
    world.run()
    assert [row.sender for row in commands(world, order)] == [None]
