"""Long steps: what shows that they are alive, and items of a fan-out."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Agent, Step, StepRequest
from roundsman.agents.agent import NoReply
from roundsman.model.events import Outcome
from roundsman.wire.messages import AgentRequest, Reply, read_reply
from tests.support.agent_samples import NOW, Clock, ask, charge_card, raising, reply, request

pack = Step(
    name="pack",
    agent="warehouse",
    complete_within=timedelta(minutes=1),
    heartbeat_within=timedelta(seconds=9),
)
ASKED = request(step="pack", heartbeat_by=NOW + 9_000, sent_at=NOW)


def progress_of(
    clock: Clock,
    work: Callable[[StepRequest], object],
    asked: AgentRequest = ASKED,
    step: Step = pack,
) -> list[Reply]:
    """The progress that was reported during the work."""
    agent, replies = Agent("warehouse"), list[Reply]()
    agent.performs(step)(work)
    ask(agent, clock, asked, send_now=replies.append)
    return replies


def every_second(clock: Clock, seconds: int) -> Callable[[StepRequest], None]:
    def work(asked: StepRequest) -> None:
        for second in range(seconds):
            asked.progress(f"parcel {second}")
            clock.now += 1_000

    return work


def test_progress_is_reported_at_once_and_then_three_times_in_a_heartbeat(clock: Clock) -> None:
    progress = progress_of(clock, every_second(clock, 12))
    assert [each.finished_at - NOW for each in progress] == [0, 3_000, 6_000, 9_000]
    assert {each.outcome for each in progress} == {Outcome.PROGRESS}


def test_progress_names_its_attempt_and_keeps_its_note_for_the_log(clock: Clock) -> None:
    [progress] = progress_of(clock, every_second(clock, 1))
    assert (progress.task_id, progress.step, progress.operation, progress.agent) == (
        "ord-1",
        "pack",
        "perform",
        "warehouse",
    )
    assert (progress.lock, progress.idempotency_key) == (ASKED.lock, ASKED.idempotency_key)
    assert progress.result == "parcel 0"
    sent = read_reply(progress.body())
    assert sent.result is None
    assert replace(sent, result="parcel 0") == progress


def test_a_step_that_nobody_waits_to_hear_of_says_nothing(clock: Clock) -> None:
    assert progress_of(clock, every_second(clock, 3), replace(ASKED, heartbeat_by=None)) == []


def test_a_plan_with_a_heartbeat_is_kept_by_code_that_has_none(clock: Clock) -> None:
    plain = replace(pack, heartbeat_within=None)
    progress = progress_of(clock, every_second(clock, 12), step=plain)
    assert [each.finished_at - NOW for each in progress] == [0, 3_000, 6_000, 9_000]


def test_no_progress_is_reported_after_complete_by(clock: Clock) -> None:
    progress = progress_of(clock, every_second(clock, 70))
    assert progress[-1].finished_at == NOW + 57_000


def test_progress_that_cannot_be_sent_does_not_stop_the_work(clock: Clock) -> None:
    agent, reported = Agent("warehouse"), list[Exception]()
    agent.performs(pack)(every_second(clock, 4))
    lost = ConnectionError()

    def send_now(_: Reply) -> None:
        raise lost

    answer = ask(agent, clock, ASKED, send_now=send_now, report=reported.append)
    assert isinstance(answer, Reply)
    assert answer.outcome is Outcome.SUCCEEDED
    assert reported == [lost, lost]


def test_progress_does_not_begin_anew_with_each_try(clock: Clock) -> None:
    def work(asked: StepRequest) -> None:
        asked.progress()
        raise ConnectionError

    assert len(progress_of(clock, work)) == 1


def test_a_strange_note_never_spoils_the_work(clock: Clock) -> None:
    [progress] = progress_of(clock, lambda asked: asked.progress("\ud800" * 5_000))
    assert len(str(progress.result).encode()) <= 1_000


def test_a_function_bound_to_a_step_is_called_for_each_item(clock: Clock) -> None:
    agent, seen = Agent("payment"), list[StepRequest]()
    agent.performs(charge_card)(seen.append)
    key = "ord-1/charge_card[3]/perform"
    asked = request(step="charge_card[3]", idempotency_key=key, item={"sku": "KB-101"})
    answer = reply(agent, clock, asked)
    assert (answer.outcome, answer.step, answer.idempotency_key) == (
        Outcome.SUCCEEDED,
        "charge_card[3]",
        key,
    )
    [given] = seen
    assert (given.step, given.index, given.item) == ("charge_card[3]", 3, {"sku": "KB-101"})
    assert given.perform_key == key


def test_the_undo_of_an_item_names_the_items_own_perform(clock: Clock) -> None:
    agent, seen = Agent("payment"), list[StepRequest]()
    agent.compensates(charge_card)(seen.append)
    key = "ord-1/charge_card[12]/undo"
    reply(agent, clock, request(step="charge_card[12]", operation="undo", idempotency_key=key))
    assert (seen[0].perform_key, seen[0].index) == ("ord-1/charge_card[12]/perform", 12)


def test_any_other_step_has_neither_item_nor_index(clock: Clock) -> None:
    agent, seen = Agent("payment"), list[StepRequest]()
    agent.performs(charge_card)(seen.append)
    reply(agent, clock)
    assert (seen[0].item, seen[0].index) == (None, None)


@pytest.mark.parametrize("step", ["charge_card[]", "charge_card[ ]", "charge_card[1", "[1]"])
def test_a_name_that_is_no_items_is_a_step_without_handler(clock: Clock, step: str) -> None:
    agent = Agent("payment")
    agent.performs(charge_card)(raising(AssertionError()))
    answer = reply(agent, clock, request(step=step))
    assert answer.error is not None
    assert answer.error.type == "NoHandler"


def test_work_that_outlasts_complete_by_ends_in_silence_whatever_it_showed(clock: Clock) -> None:
    agent = Agent("warehouse")
    agent.performs(pack)(every_second(clock, 61))
    assert isinstance(ask(agent, clock, ASKED), NoReply)
