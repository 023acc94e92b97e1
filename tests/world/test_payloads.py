"""An order with large data: read and made by agents, erased with it, and found after a restore."""

import hashlib
import json
from datetime import timedelta
from typing import TypedDict, cast

import pytest

from roundsman import Agent, DidNotHappen, Payload, Retry, StepRequest
from roundsman.agents.payloads import PIECE
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing import Fault, World
from roundsman_testing.faults import Faults
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow

SCAN = b"a page " * PIECE  # 7 MB
LETTER = b"a letter that a person has scanned"
TEXT = b"what is written in the page"


class Claim(TypedDict):
    """The input."""

    scan: Payload


recognize = a_step("recognize", compensation=FENCED, retry=Retry())
wait = a_step("wait", recognize)
archive = a_step("archive", wait)
CLAIMS = a_workflow(recognize, wait, archive, input=Claim)


def agents() -> list[Agent]:
    """Agents that read the scan, what was made of it, and the answer."""
    recognizes, waits, archives = Agent("recognize"), Agent("wait"), Agent("archive")

    @recognizes.performs(recognize)
    def text_of(request: StepRequest) -> Json:
        claim = request.input_as(Claim)
        with request.open(claim["scan"]) as file:
            assert hashlib.sha256(file.read()).digest() == hashlib.sha256(SCAN).digest()
        return {"text": request.upload(TEXT)}

    @recognizes.compensates(recognize)
    def forget(_request: StepRequest) -> None:
        return None

    @waits.performs(wait)
    def asks(_request: StepRequest) -> Json:
        return None

    @archives.performs(archive)
    def keeps(request: StepRequest) -> Json:
        made = cast("dict[str, Json]", request.results["recognize"])
        with request.open(made["text"]) as text:
            assert text.read() == TEXT
        answer = request.results["wait"]
        if answer is not None:
            with request.open(answer) as letter:
                assert letter.read() == LETTER
        return None

    return [recognizes, waits, archives]


def a_world(faults: Faults | None = None) -> World:
    return World(CLAIMS, agents=agents(), faults=faults)


def submitted(world: World, order_id: str = "ord-1") -> str:
    world.submit({"orderId": order_id, "scan": world.upload(order_id, SCAN)})
    return order_id


def objects(world: World) -> set[bytes]:
    return set(world.processes.payloads.objects.values())


def story(world: World) -> None:
    submitted(world)
    world.submit({"orderId": "ord-10", "scan": world.upload("ord-10", LETTER)})
    world.cancel("ord-10")
    world.run()
    task = world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    result = cast("dict[str, Json]", task.step("recognize").result)
    assert world.download(result["text"]) == TEXT
    assert objects(world) == {SCAN, TEXT, LETTER}
    world.operator.erase("ord-1", "request 17")
    world.run()
    assert world.task("ord-1").erased_at is not None
    assert objects(world) == {LETTER}


def test_agents_read_and_make_large_data_and_it_is_erased_with_the_order() -> None:
    world = a_world()
    story(world)
    assert len(json.dumps(cast("dict[str, Json]", world.history("ord-1")), default=str)) < 10_000


@at_every_call
def test_whatever_call_fails_the_data_is_read_and_is_erased_in_the_end(kinds: Kinds) -> None:
    assert crash_everywhere(story, a_world, faults=kinds).runs


@pytest.mark.parametrize("call", ["open_payload", "put_payload"])
@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED, Fault.CRASH_BEFORE])
def test_a_call_to_the_bucket_that_fails_once_delays_the_order(call: str, fault: Fault) -> None:
    world = a_world(Faults().on(call, fault, nth=1))
    submitted(world)
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert [hit.name for hit in world.faults.happened] == [call]


def test_the_data_of_an_answer_is_read_by_the_next_step() -> None:
    world = a_world()
    world.on("wait").waits(within=10 * MINUTE)
    order = submitted(world)
    world.run(until=lambda: world.task(order).step("wait").waiting)
    world.answer(order, "wait", world.upload(order, LETTER))
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_an_agent_does_not_read_the_data_of_another_order() -> None:
    """It came in an answer, which is not checked before: the attempt fails, and the order is
    undone when its time is over."""
    world = a_world()
    world.on("wait").waits(within=10 * MINUTE)
    order = submitted(world)
    world.run(until=lambda: world.task(order).step("wait").waiting)
    world.answer(order, "wait", world.upload("ord-2", LETTER))
    world.run(for_=5 * MINUTE)
    record = world.task(order).step("archive")
    assert record.process_state is not ProcessState.PROCESSED
    assert record.error is not None
    assert (record.error.type, record.error.unexpected) == ("PayloadError", True)
    assert "of another order" in record.error.message


def test_a_bucket_that_is_gone_delays_steps_with_a_sentence_and_an_alert() -> None:
    world = a_world()
    submitted(world)
    world.processes.payloads.is_gone = True
    world.run(for_=30 * MINUTE)
    error = world.task("ord-1").step("recognize").error
    assert error is not None
    assert "is gone" in error.message
    [alert] = world.post.alerts
    assert alert.attributes["kind"] == "unexpected_error"
    assert "is gone" in alert.text
    world.processes.payloads.is_gone = False
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


def test_what_a_bucket_that_is_gone_had_is_erased_when_it_is_back() -> None:
    world = a_world()
    submitted(world)
    world.run()
    world.processes.payloads.is_gone = True
    world.operator.erase("ord-1", "request 17")
    world.run(for_=10 * MINUTE)
    assert world.task("ord-1").erased_at is not None
    assert objects(world) == {SCAN, TEXT}
    world.processes.payloads.is_gone = False
    world.run()
    assert objects(world) == set()
    assert world.queues.dead == []


def test_data_is_erased_after_the_record_of_its_order_was_removed() -> None:
    world = a_world()
    submitted(world)
    world.run()
    world.run(for_=timedelta(days=8))
    world.operator.erase("ord-1", "request 17")
    world.run()
    assert objects(world) == set()


def test_a_restored_order_finds_its_data() -> None:
    world = a_world()
    world.on("wait").waits(within=10 * MINUTE)
    order = submitted(world)
    world.run(until=lambda: world.task(order).step("wait").waiting)
    backup = world.backup()
    world.answer(order, "wait", world.upload(order, LETTER))
    world.run()
    world.restore(backup)
    world.answer(order, "wait", world.upload(order, LETTER))
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_a_step_of_one_attempt_whose_data_is_wrong_is_undone_as_if_it_had_acted() -> None:
    once = a_step("once", compensation=FENCED, retry=ONCE)
    agent = Agent("once")
    undone: list[str] = []

    @agent.performs(once)
    def reads(request: StepRequest) -> Json:
        return len(request.open(request.input["scan"]).read())

    @agent.compensates(once)
    def undo(request: StepRequest) -> None:
        undone.append(request.task_id)

    @agent.probes(once)
    def probe(_request: StepRequest) -> object:
        return DidNotHappen()

    world = World(a_workflow(once, input=Claim), agents=[agent])
    order = submitted(world)
    [key] = world.processes.payloads.objects
    world.processes.payloads.objects[key] = LETTER
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert undone == [order]
