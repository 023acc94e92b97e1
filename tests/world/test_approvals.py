"""A person is asked, reminded, and answers: by any token of the wait, whatever fails meanwhile."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import cast

import pytest

from roundsman import Agent, Callback, Json, PermanentError, StepRequest, TransientError
from roundsman.agents.callbacks import succeeded_reply, token_of_wait
from roundsman.definition.workflow import Compensation, Retry, Undo, Workflow
from roundsman.errors import InvalidToken, NotWaiting
from roundsman.model.instants import MINUTE, milliseconds
from roundsman.wire.messages import read_reply
from roundsman_testing import FOR_EVER, Fault, Faults, TaskState, World, crash_everywhere
from roundsman_testing.world.queues import COMMANDS, REPLIES, REQUESTS
from tests.support.steps import stored_step
from tests.world.shop import FENCED, a_step, a_workflow

DAY = timedelta(days=1)
EIGHT_HOURS = timedelta(hours=8)
approve = a_step("approve", retry=Retry(max_attempts=2), compensation=FENCED)
pay = a_step("pay", approve, compensation=FENCED)
CLAIM = a_workflow(approve, pay, complete_within=timedelta(days=9))


def asking(
    *,
    within: timedelta = DAY,
    every: timedelta = EIGHT_HOURS,
    times: int = 2,
    compensation: Compensation = FENCED,
) -> World:
    asked = replace(approve, compensation=compensation)
    world = World(replace(CLAIM, steps=(asked, replace(pay, after=(asked,)))))
    world.on("approve").asks(within, times=times, remind_every=every)
    world.submit()
    return world.run(until=lambda: world.waits_for_answer("ord-1", "approve"))


def numbers(world: World) -> list[int | None]:
    return [request.reminder for request in world.reminders("ord-1", "approve")]


def reminded(times: int, *, within: timedelta = DAY) -> World:
    world = asking(within=within)
    world.run(until=lambda: len(numbers(world)) == times)
    return world


def token_by_name(world: World, step: str) -> str:
    """The token of a wait, found as the client and the operators' tools find it."""
    task = world.task("ord-1")
    return token_of_wait(task, world.processes.plans.plan(task.plan), step)


def test_the_token_of_a_wait_is_found_by_the_order_and_the_step() -> None:
    world = asking()
    world.run(until=lambda: world.task("ord-1").step("approve").waiting)
    world.answer_token(token_by_name(world, "approve"), {"by": "ann"})
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    with pytest.raises(NotWaiting, match="approve of ord-1 does not wait for a callback: it is Pr"):
        token_by_name(world, "approve")


def test_the_token_of_a_wait_is_that_of_the_last_attempt_and_needs_the_plan() -> None:
    world = asking()
    world.run(until=lambda: len(world.processes.tokens["ord-1", "approve"]) == 2)
    world.run(until=lambda: world.task("ord-1").step("approve").waiting)
    assert token_by_name(world, "approve") == world.processes.tokens["ord-1", "approve"][-1].token
    with pytest.raises(NotWaiting, match="approve of ord-1 has an agent that is not known"):
        token_of_wait(world.task("ord-1"), None, "approve")


def test_the_token_of_an_item_names_the_agent_at_which_the_item_waits() -> None:
    each = a_step("approve", for_each="input.lines", agents=("desk", "backup"), agent="")
    world = World(a_workflow(each))
    world.on("approve").asks(timedelta(hours=1), times=FOR_EVER)
    world.submit({"lines": [1, 2]})
    for item in ("approve[0]", "approve[1]"):
        world.run(until=partial(world.waits_for_answer, "ord-1", item))
        world.run(until=partial(lambda name: world.task("ord-1").step(name).waiting, item))
        tokens = world.processes.tokens["ord-1", item]
        assert token_by_name(world, item) == tokens[-1].token
    task = world.task("ord-1")
    at_backup = replace(task.step("approve[0]"), agent="backup")
    moved = replace(task, steps={**task.steps, "approve[0]": at_backup})
    token = token_of_wait(moved, world.processes.plans.plan(task.plan), "approve[0]")
    assert read_reply(succeeded_reply(token)).agent == "backup"


def test_reminders_come_at_their_times_and_count_as_no_failure() -> None:
    world = asking()
    asked_at = world.now
    instants = []
    for times in (1, 2):
        world.run(until=partial(lambda wanted: len(numbers(world)) == wanted, times))
        instants.append(world.now - asked_at)
    assert numbers(world) == [1, 2]
    for number, at in enumerate(instants, 1):
        late = at - number * 480 * MINUTE
        assert 0 <= late < 10_000, "seconds at most"
    record = world.task("ord-1").step("approve")
    assert (record.failure_count, record.reminders, record.waiting) == (0, 2, True)
    rows = [row for row in world.history("ord-1") if row.kind == "reminded"]
    assert [row.step for row in rows] == ["approve", "approve"]
    assert rows[0].reason.startswith("approve: reminder 1 sent; the next at ")


def test_a_reminder_carries_the_token_of_the_wait_and_a_key_of_its_own() -> None:
    world = reminded(2)
    (asked,) = world.processes.tokens["ord-1", "approve"]
    one, two = world.reminders("ord-1", "approve")
    assert one.callback_token == two.callback_token == asked.token
    assert one.idempotency_key == "ord-1/approve/perform/reminder/1"
    assert two.idempotency_key == "ord-1/approve/perform/reminder/2"
    assert one.perform_key == "ord-1/approve/perform"
    world.answer_token(two.callback_token, {"by": "ann"})
    assert world.run().task("ord-1").state is TaskState.COMPLETED
    assert numbers(world) == [1, 2], "nothing reminds of what was answered"


def test_a_world_shows_reminders_as_they_were_sent_whatever_the_function_did_to_them() -> None:
    agent = Agent("approve")

    def ask_boss(_: StepRequest) -> Callback:
        return Callback(within=DAY, remind_every=EIGHT_HOURS)

    def remind(request: StepRequest) -> None:
        cast("dict[str, Json]", request.input).clear()

    agent.performs(approve)(ask_boss)
    agent.compensates(approve)(remind)
    agent.reminds(approve)(remind)
    world = World(CLAIM, agents=[agent])
    order = world.submit()
    world.run(until=lambda: len(world.reminders(order, "approve")) == 2)
    assert [request.input["orderId"] for request in world.reminders(order, "approve")] == [
        order
    ] * 2


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("says_yes", [True, False])
def test_a_yes_and_a_no_to_any_token_of_the_wait_are_treated_alike(
    number: int, *, says_yes: bool
) -> None:
    world = asking()
    world.run(until=lambda: len(world.processes.tokens["ord-1", "approve"]) == 2)
    error = None if says_yes else PermanentError("Rejected", "by ann")
    world.answer("ord-1", "approve", {"by": "ann"}, error=error, asked=number)
    world.run(for_=timedelta(minutes=1))
    expected = TaskState.COMPLETED if says_yes else TaskState.UNDONE
    assert world.task("ord-1").state is expected
    assert world.standing("ord-1") == (["approve", "pay"] if says_yes else [])


@pytest.mark.parametrize("says_yes", [True, False])
def test_an_answer_between_two_attempts_counts_whichever_it_is(*, says_yes: bool) -> None:
    slow = replace(
        approve, retry=Retry(first_delay=timedelta(hours=2), max_delay=timedelta(days=1))
    )
    world = World(replace(CLAIM, steps=(slow, replace(pay, after=(slow,)))))
    world.on("approve").asks(DAY, times=2, remind_every=EIGHT_HOURS)
    world.submit()
    world.run(until=lambda: world.waits_for_answer("ord-1", "approve"))
    world.answer("ord-1", "approve", error=TransientError("ask again later"))
    world.run(until=lambda: world.task("ord-1").state is TaskState.RETRY)
    error = None if says_yes else PermanentError("Rejected", "by ann")
    world.answer("ord-1", "approve", {"by": "ann"}, error=error, asked=1)
    world.run(for_=timedelta(minutes=1))
    expected = TaskState.COMPLETED if says_yes else TaskState.UNDONE
    assert world.task("ord-1").state is expected


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("says_yes", [True, False])
def test_a_cancelled_order_stops_waiting_at_an_answer_to_any_token_and_is_not_reminded_of(
    number: int, *, says_yes: bool
) -> None:
    world = asking(compensation=Compensation())
    world.run(until=lambda: len(world.processes.tokens["ord-1", "approve"]) == 2)
    world.cancel("ord-1")
    before = numbers(world)
    world.run(for_=timedelta(hours=20))
    assert not world.task("ord-1").ended, "the request that waits is still under way"
    assert numbers(world) == before
    error = None if says_yes else PermanentError("Rejected", "by ann")
    world.answer("ord-1", "approve", {"by": "ann"}, error=error, asked=number)
    world.run(for_=timedelta(minutes=1))
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert world.standing("ord-1") == []


def test_an_order_is_undone_although_nobody_has_answered_if_its_service_fences() -> None:
    world = asking()
    world.operator.undo("ord-1")
    world.run(for_=timedelta(minutes=1))
    assert world.task("ord-1").state is TaskState.UNDONE
    before = numbers(world)
    for _ in range(2):
        world.answer("ord-1", "approve", {"by": "ann"})
        world.run(for_=timedelta(days=1))
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []
    assert numbers(world) == before
    late = [a for a in world.post.alerts if a.attributes["kind"] == "late_answer"]
    assert [alert.attributes["severity"] for alert in late] == ["warning"]
    answers = [row for row in world.history("ord-1") if row.kind == "answered"]
    assert len(answers) == 1


def test_reminders_go_on_when_it_is_asked_again_and_end_with_the_last_attempt() -> None:
    world = asking()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert numbers(world) == [1, 2, 3, 4], "two in each of two days"
    first, *_, last = (r.callback_token for r in world.reminders("ord-1", "approve"))
    one, two = (asked.token for asked in world.processes.tokens["ord-1", "approve"])
    assert (first, last) == (one, two)


def test_a_reminder_that_fails_does_not_disturb_the_wait_and_the_next_comes_at_its_time() -> None:
    world = asking()
    world.on("approve", "remind").refuses("NoSuchAddress", times=1)
    world.run(until=lambda: len(numbers(world)) == 1)
    record = world.task("ord-1").step("approve")
    assert (record.failure_count, record.reminders, record.waiting) == (0, 2, True)
    assert numbers(world) == [2]


def test_a_reminder_that_fails_for_now_is_tried_again_at_once() -> None:
    world = asking()
    world.on("approve", "remind").fails(times=2)
    world.run(until=lambda: len(numbers(world)) == 1)
    assert numbers(world) == [1]


@pytest.mark.parametrize("queue", [REQUESTS, COMMANDS])
def test_a_message_of_a_reminder_that_is_lost_costs_no_attempt(queue: str) -> None:
    world = asking()
    world.mail(queue).is_lost(times=1)
    world.run(until=lambda: len(numbers(world)) == 1)
    record = world.task("ord-1").step("approve")
    assert (record.failure_count, record.waiting) == (0, True)
    assert numbers(world) == ([2] if queue == REQUESTS else [1])


def test_a_reminder_that_comes_after_its_time_reminds_nobody() -> None:
    world = asking()
    world.mail(REQUESTS).is_late(timedelta(hours=9), times=1)
    world.run(until=lambda: len(numbers(world)) == 1)
    assert numbers(world) == [2]
    world.run(for_=timedelta(hours=2))
    assert numbers(world) == [2]


def test_a_request_that_comes_twice_reminds_under_the_same_key() -> None:
    world = asking()
    world.mail(REQUESTS).comes_twice(after=timedelta(minutes=1))
    world.run(for_=timedelta(hours=9))
    keys = [request.idempotency_key for request in world.reminders("ord-1", "approve")]
    assert keys == 2 * ["ord-1/approve/perform/reminder/1"]
    assert world.task("ord-1").step("approve").reminders == 1


@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.CRASH_BEFORE, Fault.NOT_DONE])
@pytest.mark.parametrize("call", ["save", "send_requests"])
def test_a_process_that_dies_before_the_reminder_is_sent_sends_it_when_its_message_comes_again(
    call: str, fault: Fault
) -> None:
    faults = Faults()
    world = World(CLAIM, faults=faults)
    world.on("approve").asks(DAY, remind_every=EIGHT_HOURS)
    world.submit()
    world.run(until=lambda: world.waits_for_answer("ord-1", "approve"))
    world.run(for_=timedelta(hours=1))
    faults.on(call, fault, nth=1)
    world.run(for_=timedelta(hours=8))
    assert [str(hit.name) for hit in faults.happened] == [call]
    assert set(numbers(world)) == {1}
    assert world.task("ord-1").step("approve").reminders == 1


def test_a_hold_delays_the_reminder_and_no_more() -> None:
    world = asking()
    world.run(for_=timedelta(hours=7, minutes=55))
    world.hold("approve", timedelta(minutes=30), "their maintenance")
    world.run(for_=timedelta(minutes=25))
    assert numbers(world) == []
    world.run(for_=timedelta(minutes=20))
    assert numbers(world) == [1]
    record = world.task("ord-1").step("approve")
    assert (record.failure_count, record.waiting) == (0, True)
    assert record.held_since is None


def test_an_agent_that_is_held_when_the_reminder_has_been_sent_does_not_call() -> None:
    world = asking()
    world.mail(REQUESTS).is_late(timedelta(minutes=2), times=1)
    world.run(until=lambda: world.task("ord-1").step("approve").reminders == 1)
    world.hold("approve", timedelta(minutes=30))
    world.run(for_=timedelta(hours=1))
    assert numbers(world) == []
    world.run(until=lambda: len(numbers(world)) == 1)
    assert numbers(world) == [2]


def test_a_wait_that_ends_between_two_reminders_is_not_reminded_of_again() -> None:
    world = reminded(1, within=timedelta(hours=12))
    world.answer("ord-1", "approve", error=PermanentError("Rejected", "by ann"))
    world.run(for_=timedelta(days=5))
    assert numbers(world) == [1]
    assert world.task("ord-1").state is TaskState.UNDONE


def test_more_time_for_the_step_is_reminded_of_too() -> None:
    world = asking(within=timedelta(hours=12))
    world.operator.extend("ord-1", timedelta(hours=12), "approve")
    world.run(for_=timedelta(hours=17))
    assert numbers(world) == [1, 2]


def test_each_item_of_a_list_has_reminders_of_its_own() -> None:
    each = a_step("approve", for_each="input.lines", compensation=FENCED)
    world = World(a_workflow(each, complete_within=timedelta(days=3)))
    for item, hours in ((0, 8), (1, 10)):
        every = timedelta(hours=hours)
        world.on(f"approve[{item}]").asks(DAY, remind_every=every)
    order = world.submit({"lines": [1, 2]})
    world.run(for_=timedelta(hours=21))
    found = {item: world.reminders(order, f"approve[{item}]") for item in (0, 1)}
    assert {item: [r.reminder for r in found[item]] for item in (0, 1)} == {0: [1, 2], 1: [1, 2]}
    assert found[1][0].index == 1
    for item in (0, 1):
        world.answer_token(found[item][0].callback_token, {"line": item})
    assert world.run().task(order).state is TaskState.COMPLETED


def an_agent_of_its_own(*, binds: bool) -> tuple[Agent, list[Json]]:
    desk, heard = Agent("approve"), list[Json]()

    @desk.performs(approve)
    def ask(request: StepRequest) -> Callback:
        return Callback(within=DAY, remind_every=EIGHT_HOURS)

    @desk.compensates(approve)
    def take_back(request: StepRequest) -> None:
        return None

    def remind(request: StepRequest) -> object:
        heard.append([request.operation, request.reminder, request.input["total"]])
        return object()  # it is ignored

    if binds:
        desk.reminds(approve)(remind)
    return desk, heard


def test_what_the_function_to_remind_is_given_and_returns() -> None:
    desk, heard = an_agent_of_its_own(binds=True)
    world = World(CLAIM, agents=(desk,))
    order = world.submit({"total": "39.80"})
    world.run(for_=timedelta(hours=17))
    assert heard == [["perform", 1, "39.80"], ["perform", 2, "39.80"]]
    world.answer(order, "approve", {"by": "ann"})
    assert world.run().task(order).state is TaskState.COMPLETED


def test_reminders_without_a_function_fail_the_attempt_with_a_sentence() -> None:
    desk, _ = an_agent_of_its_own(binds=False)
    world = World(CLAIM, agents=(desk,))
    order = world.submit({"total": "39.80"})
    world.run(for_=timedelta(seconds=5))
    assert world.task(order).step("approve").failure_count == 1
    error = world.task(order).step("approve").error
    assert error is not None
    assert error.type == "NoReminder"
    assert "bind one with @agent.reminds(step)" in error.message


def test_a_reminder_to_code_that_no_longer_has_the_function_is_ignored() -> None:
    desk, heard = an_agent_of_its_own(binds=True)
    world = World(CLAIM, agents=(desk,))
    order = world.submit({"total": "39.80"})
    world.run(until=lambda: world.waits_for_answer(order, "approve"))
    desk._functions.pop(("approve", "remind"))
    world.run(for_=timedelta(hours=9))
    record = world.task(order).step("approve")
    assert (record.failure_count, record.reminders, record.waiting) == (0, 1, True)
    assert heard == []
    assert "NoHandler" in str(world.trace)


def test_a_token_that_is_of_no_order_or_no_token_is_refused() -> None:
    world = asking()
    (asked,) = world.processes.tokens["ord-1", "approve"]
    with pytest.raises(InvalidToken, match="this is not a callback token"):
        world.answer_token(asked.token[:20])
    with pytest.raises(ValueError, match="this world has no step approve of ord-1"):
        World(CLAIM).answer_token(asked.token)


def test_a_token_that_was_handed_out_by_an_attempt_that_died_answers_it() -> None:
    desk, _ = an_agent_of_its_own(binds=True)
    world = World(CLAIM, agents=(desk,))
    world.on("approve").loses_answer()
    order = world.submit({"total": "39.80"})
    world.run(until=lambda: world.waits_for_answer(order, "approve"))
    world.answer(order, "approve", {"by": "ann"})
    assert world.run().task(order).state is TaskState.COMPLETED


def is_reminded(world: World) -> None:
    """Later than any message can be delayed, so that a supervisor sees to it."""
    every = timedelta(minutes=17)
    world.on("approve").asks(timedelta(minutes=40), times=FOR_EVER, remind_every=every)
    world.submit()
    world.run(until=lambda: len(numbers(world)) >= 1)
    world.answer("ord-1", "approve", {"by": "ann"})
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


@pytest.mark.verify
def test_a_fault_at_any_call_leaves_the_wait_and_its_reminders_as_they_are() -> None:
    once = Workflow(
        name="claim",
        steps=(approve,),
        complete_within=timedelta(days=9),
        on_failure=Undo(),
        retain_for=timedelta(days=30),
    )
    crashes = crash_everywhere(is_reminded, lambda faults: World(once, faults=faults))
    assert crashes.runs > 50, "in each of which it was reminded of, and answered"


def test_replies_that_come_twice_begin_no_second_row_of_reminders() -> None:
    world = World(CLAIM)
    world.on("approve").asks(DAY, remind_every=EIGHT_HOURS)
    world.mail(REPLIES).comes_twice(after=timedelta(hours=4))
    world.submit()
    world.run(for_=timedelta(hours=23))
    assert numbers(world) == [1, 2]
    assert (
        milliseconds(EIGHT_HOURS) == stored_step(world.task("ord-1").step("approve")).remind_every
    )
