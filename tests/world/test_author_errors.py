"""Calls that fail side by side, and calls that Roundsman refuses, in orders as a whole."""

import asyncio
import re
import sys
from datetime import timedelta

import pytest

from roundsman import Agent, Busy, Done, PermanentError, StepRequest, TransientError
from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Retry
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.why import diagnose
from roundsman_testing import FOR_EVER, TaskState, World
from roundsman_testing.faults import FunctionExits
from roundsman_testing.world.agents import UntypedError
from tests.world.shop import FENCED, a_step, a_workflow, since_morning

SOLD_OUT = PermanentError("SoldOut", "no seat is left")
DOWN = TransientError("answered 503")
NOTHING = TransientError("answered 429", no_effect=True)
book = a_step("book", compensation=FENCED, retry=Retry())
leg = a_step("leg")
TRIP = a_workflow(book, complete_within=timedelta(hours=9))


def test_a_refusal_beside_a_failure_undoes_the_order_at_once() -> None:
    world = World(TRIP)
    world.on("book").fails_side_by_side(DOWN, SOLD_OUT, in_part=True)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    sentence = "SoldOut: no seat is left; also failed: TransientError: answered 503"
    assert world.history(order)[0].reason == f"book: failed for good: {sentence}"
    assert since_morning(world) < timedelta(minutes=1)
    assert world.standing(order) == [], "the call beside had its effect"


def test_failures_side_by_side_open_the_circuit_as_failures_alone_do() -> None:
    world = World(TRIP)
    world.on("book").fails_side_by_side(DOWN, Busy("answered 429"), times=6)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    [opened] = [row.reason for row in world.history(order) if row.kind == "held"][:1]
    assert "circuit is open: 5 calls in a row failed" in opened


def test_the_next_agent_begins_only_if_each_call_side_by_side_did_nothing() -> None:
    two = a_workflow(a_step("book", agent="", agents=("a", "b"), compensation=FENCED))
    for errors, went in (((NOTHING, NOTHING), "/b"), ((NOTHING, DOWN), "")):
        world = World(two)
        world.on("book").fails_side_by_side(*errors, times=3, in_part=not went)
        order = world.submit()
        world.run()
        assert [one.key for one in world.services.ledger.standing(order)] == [
            f"{order}/book/perform{went}"
        ]


def test_a_wrong_call_of_roundsman_is_in_the_alert_and_in_why() -> None:
    shop = Agent("book")

    @shop.performs(book)
    async def perform(_: StepRequest) -> Done:
        await asyncio.sleep(0)
        return Done(then=(leg.named("KB 101"),))

    shop.compensates(book)(lambda _: None)
    world = World(a_workflow(book, may_add=(leg,)), agents=[shop])
    order = world.submit()
    world.run(for_=timedelta(minutes=1))
    line = perform.__code__.co_firstlineno + 3
    sentence = (
        f"test_author_errors.py, line {line}: the name of an added step must be 1 to 40 characters"
    )
    [row] = [row for row in world.history(order) if row.attempt == 1]
    assert sentence in row.reason
    [alert] = world.post.alerts
    assert sentence in alert.text
    assert sentence in alert.body
    assert "KB 101" not in f"{alert.text}{alert.body}"
    plan = plan_of(world.workflows["story"])
    why = diagnose(OrderFacts(world.task(order), plan, at=world.now))
    assert sentence in " ".join(why.evidence)
    assert world.task(order).state is TaskState.RETRY, "it is retried as an unexpected error is"


def test_a_stand_in_calls_wrongly() -> None:
    world = World(TRIP)
    world.on("book").calls_wrongly(lambda: leg.named("KB 101"), times=FOR_EVER)
    order = world.submit()
    world.run(until=lambda: bool(world.post.alerts))
    error = world.task(order).step("book").error
    assert error is not None
    assert (error.type, error.unexpected) == ("ValueError", True)
    assert error.message.startswith("test_author_errors.py, line ")


def test_a_refusal_without_a_type_is_refused_in_a_group_too() -> None:
    shop = Agent("book")

    @shop.performs(book)
    def perform(_: StepRequest) -> None:
        raise ExceptionGroup("of calls", [SOLD_OUT, PermanentError("no seat is left")])

    shop.compensates(book)(lambda _: None)
    world = World(TRIP, agents=[shop])
    world.submit()
    with pytest.raises(UntypedError, match="has a sentence in place of its type"):
        world.run()


def test_a_function_that_ends_its_process_is_named_with_what_to_write_instead() -> None:
    shop = Agent("leg")

    @shop.performs(leg)
    def perform(_request: StepRequest) -> None:
        sys.exit(0)

    world = World(a_workflow(leg), agents=[shop])
    world.submit()
    with pytest.raises(FunctionExits) as found:
        world.run()
    said = str(found.value)
    assert re.search(r"test_author_errors.py, line \d+, has called sys.exit\(0\)\. On Lambda", said)
    assert "Raise PermanentError or TransientError instead" in said
