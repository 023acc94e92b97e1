"""Whole orders with a fault at every single call of every part.

Submission, scheduler, agent and supervisor run in one process, over queues that redeliver what
was not acknowledged, and on a clock that jumps to whatever comes next. For each story, one run
without faults counts the calls; then each call in turn fails in each way there is.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from roundsman.birth import Wishes
from roundsman.due import Lane
from roundsman.states import ProcessState, TaskState
from roundsman.task import PERFORM, idempotency_key
from roundsman.testing.faults import CONDITIONAL_WRITES, MESSAGES, Fault, Faults
from roundsman.values import SECOND, canonical_json
from roundsman.workflow import Archive, Compensation, Undo, Wait
from tests.unit.crash_world import TWO_SECONDS, Story, System
from tests.unit.machine_world import REPLY_TO, step, workflow
from tests.unit.shell_world import ORDER_ID

reserve = step("reserve", retry=TWO_SECONDS)
charge = step("charge", reserve, retry=TWO_SECONDS)
ship = step("ship", charge, retry=TWO_SECONDS)
pack = step("pack", reserve, retry=TWO_SECONDS)
gift = step("gift", reserve, retry=TWO_SECONDS, when="input.total > `1000`")
confirm = step("confirm", charge, pack, gift, retry=TWO_SECONDS)
patient = step(
    "charge", reserve, retry=TWO_SECONDS, on_failure=Wait(timedelta(minutes=1), 1, Archive())
)

FENCED, UNFENCED = Compensation(fences_late_performs=True), Compensation()
held = step("reserve", retry=TWO_SECONDS, compensation=FENCED)
paid = step("charge", held, retry=TWO_SECONDS, compensation=FENCED)
sent = step("ship", paid, retry=TWO_SECONDS, compensation=UNFENCED)

picked = step(
    "pick",
    held,
    for_each="[input.orderId, input.total]",
    tolerate=0.5,
    retry=TWO_SECONDS,
    compensation=FENCED,
)
PICKING = workflow(held, picked, step("ship", picked, retry=TWO_SECONDS), on_failure=Undo())

LINE = workflow(reserve, charge, ship)
UNDOABLE = workflow(held, paid, sent, on_failure=Undo())
PAIR = workflow(reserve, charge)
SLOW = workflow(
    reserve,
    step(
        "charge",
        reserve,
        retry=TWO_SECONDS,
        complete_within=timedelta(minutes=10),
        heartbeat_within=timedelta(seconds=30),
    ),
)
TWO_AGENTS = workflow(
    reserve,
    step("charge", reserve, retry=TWO_SECONDS, agents=("worker", "second"), compensation=FENCED),
    on_failure=Undo(),
)
DIAMOND = workflow(reserve, charge, pack, gift, confirm)

STORIES = {
    "success": Story(LINE, TaskState.COMPLETED),
    "success without replyTo": Story(LINE, TaskState.COMPLETED, wishes=Wishes()),
    "success with retention zero": Story(
        workflow(reserve, retain_for=timedelta(milliseconds=1)),
        TaskState.COMPLETED,
        wishes=Wishes(reply_to=REPLY_TO, retain_for=0),
    ),
    "branches and a condition": Story(DIAMOND, TaskState.COMPLETED),
    "a transient fault": Story(PAIR, TaskState.COMPLETED, {"charge": ["unavailable", "done"]}),
    "an agent that hangs": Story(PAIR, TaskState.COMPLETED, {"charge": ["hangs", "done"]}),
    "an answer that is lost": Story(PAIR, TaskState.COMPLETED, {"charge": ["answer lost", "done"]}),
    "a scheduled start": Story(
        PAIR, TaskState.COMPLETED, wishes=Wishes(reply_to=REPLY_TO, start_at=1_800_000_600_000)
    ),
    "a start in a day": Story(
        PAIR, TaskState.COMPLETED, wishes=Wishes(reply_to=REPLY_TO, start_at=1_800_086_400_000)
    ),
    "a declined card": Story(PAIR, TaskState.ARCHIVED, {"charge": ["refused"]}, failed="charge"),
    "a declined card beside a step": Story(
        workflow(reserve, charge, pack, on_failure=Archive()),
        TaskState.ARCHIVED,
        {"charge": ["refused"]},
        failed="charge",
    ),
    "exhausted attempts": Story(
        workflow(reserve, patient, on_failure=Archive()),
        TaskState.ARCHIVED,
        {"charge": ["unavailable"]},
        failed="charge",
    ),
    "an undo": Story(UNDOABLE, TaskState.UNDONE, {"ship": ["refused"]}, failed="ship"),
    "an undo of a lost answer": Story(
        UNDOABLE, TaskState.UNDONE, {"charge": ["answer lost"]}, failed="charge"
    ),
    "an undo that fails at first": Story(
        UNDOABLE,
        TaskState.UNDONE,
        {"ship": ["refused"], "undo charge": ["unavailable", "answer lost", "done"]},
        failed="ship",
    ),
    "an undo that fails for good": Story(
        UNDOABLE,
        TaskState.ARCHIVED,
        {"ship": ["refused"], "undo charge": ["refused"]},
        failed="charge",
    ),
    "a step for each item": Story(
        PICKING, TaskState.COMPLETED, {"pick[1]": ["unavailable", "answer lost", "done"]}
    ),
    "an item that is left out": Story(
        PICKING, TaskState.COMPLETED, {"pick[1]": ["answer lost", "refused"]}
    ),
    "more items fail than may": Story(
        PICKING,
        TaskState.UNDONE,
        {"pick[0]": ["refused"], "pick[1]": ["answer lost", "refused"]},
        failed="pick[1]",
    ),
    "a breaker that opens for a while": Story(
        PAIR, TaskState.COMPLETED, {"charge": ["held", "held", "done"]}
    ),
    "a breaker that opens before an undo": Story(
        UNDOABLE,
        TaskState.UNDONE,
        {"ship": ["refused"], "undo charge": ["held", "done"]},
        failed="ship",
    ),
    "a step that shows progress": Story(
        SLOW, TaskState.COMPLETED, {"charge": ["progress", "hangs", "progress", "done"]}
    ),
    "a callback": Story(SLOW, TaskState.COMPLETED, {"charge": ["waits", "done"]}),
    "an agent that another one stands in for": Story(
        TWO_AGENTS, TaskState.COMPLETED, {"charge": ["unavailable"] * 4 + ["done"]}
    ),
    "an agent that did it before another one stands in": Story(
        TWO_AGENTS, TaskState.COMPLETED, {"charge": ["answer lost"] * 4 + ["done"]}
    ),
    "two agents that fail": Story(
        TWO_AGENTS, TaskState.UNDONE, {"charge": ["unavailable"]}, failed="charge"
    ),
    "a service that hangs for ever": Story(
        PAIR, TaskState.ARCHIVED, {"charge": ["hangs"]}, failed="charge"
    ),
}


def check(story: Story, system: System) -> None:
    """All that must be so at the end, whatever failed on the way."""
    shells, task = system.shells, system.shells.task()
    assert task.state is story.end
    assert not shells.unwatched, "an open task always has a due entry that is early enough"
    assert not shells.troubles, "no record was taken for a broken one"
    assert not task.owed
    lane = Lane.ARCHIVED if story.end is TaskState.ARCHIVED else Lane.DONE
    assert task.lane.startswith(f"{lane}#")
    check_messages(story, system)
    check_effects(story, system)
    check_steps(story, system)


def check_steps(story: Story, system: System) -> None:
    """Of a task that failed, a step beside the one that failed may have lost its answer."""
    done = {ProcessState.PROCESSED, ProcessState.SKIPPED}
    if story.workflow is TWO_AGENTS and story.end is TaskState.UNDONE:
        assert not any("/charge/" in key for key in system.remote.standing)
        return
    if story.workflow is UNDOABLE or (story.workflow is PICKING and story.failed):
        check_undo(story, system)
        return
    for name, record in system.shells.task().steps.items():
        if name == story.failed:
            assert record.process_state is ProcessState.ERROR
        elif story.failed is None:
            assert record.process_state in done
        else:
            assert record.process_state in done | {ProcessState.ERROR}


def check_undo(story: Story, system: System) -> None:
    """Undone means that nothing stands; a failed undo leaves just its own step's effect."""
    failed_undo = story.end is TaskState.ARCHIVED
    for name, record in system.shells.task().steps.items():
        undo_error = failed_undo and name == story.failed
        expected = ProcessState.UNDO_ERROR if undo_error else ProcessState.UNDONE
        left_out = record.process_state is ProcessState.SKIPPED  # and undone before
        assert record.process_state is expected or left_out
    stands = {f"{ORDER_ID}/{story.failed}/perform"} if failed_undo else set[str]()
    assert system.remote.standing == stands


def check_messages(story: Story, system: System) -> None:
    """Each status and alert came at least once; a repeated one is the same; `seq` rises."""
    seqs = {str(status["status"]): status["seq"] for status in system.statuses}
    assert sorted(seqs, key=lambda name: int(str(seqs[name]))) == story.statuses
    assert len(set(seqs.values())) == len(seqs)
    assert all(status["seq"] == seqs[str(status["status"])] for status in system.statuses)
    archived = ["task_archived"] if story.end is TaskState.ARCHIVED else []
    assert sorted(set(system.alerts)) == archived


def check_effects(story: Story, system: System) -> None:
    """One key for each step, in every attempt: so its effect happened once at most."""
    effects = system.remote.effects
    steps = system.shells.task().steps
    keys = {f"{ORDER_ID}/{name}/perform" for name in steps}
    assert effects <= keys | {f"{ORDER_ID}/charge/perform/second"}
    for name, record in steps.items():
        if record.process_state is ProcessState.PROCESSED:
            key = idempotency_key(ORDER_ID, name, PERFORM, record)
            stands = {other for other in system.remote.standing if f"/{name}/" in other}
            assert stands == {key}, "at one agent, and once"
        if record.process_state is ProcessState.SKIPPED:
            assert f"{ORDER_ID}/{name}/perform" not in system.remote.standing


def variants(calls: Sequence[str]) -> Iterator[tuple[int, Fault]]:
    """Each call, with each way in which it can fail."""
    for number, name in enumerate(calls, start=1):
        for fault in Fault:
            if fault is Fault.REFUSED:
                continue  # not a fault that passes
            if fault is Fault.ANSWER_LOST and name not in CONDITIONAL_WRITES:
                continue
            if fault is Fault.SWALLOWED and name not in MESSAGES:
                continue
            yield number, fault


def undisturbed(story: Story) -> System:
    system = System(story, Faults()).run()
    check(story, system)
    return system


@pytest.mark.parametrize("name", STORIES)
def test_every_order_comes_to_its_end_whatever_single_call_fails(name: str) -> None:
    story = STORIES[name]
    plain = undisturbed(story)
    failures = {n: r.failure_count for n, r in plain.shells.task().steps.items()}
    for number, fault in variants(plain.faults.calls):
        system = System(story, Faults().at(number, fault)).run()
        said = f"{fault} at call {number}, {plain.faults.calls[number - 1]}"
        try:
            check(story, system)
        except AssertionError as error:
            raise AssertionError(f"{said}: {error}") from error
        for each, record in system.shells.task().steps.items():
            assert record.failure_count <= failures.get(each, 0) + 1, f"{said}: {each}"


def test_where_redelivery_comes_before_complete_by_no_fault_of_a_scheduler_costs_an_attempt() -> (
    None
):
    slow = step("reserve", complete_within=timedelta(minutes=5))
    story = Story(
        workflow(slow, step("charge", slow, complete_within=timedelta(minutes=5))),
        TaskState.COMPLETED,
    )
    for number, fault in variants(undisturbed(story).faults.calls):
        system = System(story, Faults().at(number, fault)).run()
        if fault is Fault.SWALLOWED or system.faults.calls[number - 1] == "reply":
            continue  # lost on the way, or the agent's own
        check(story, system)
        counts = [record.failure_count for record in system.shells.task().steps.values()]
        assert counts == [0, 0], f"{fault} at call {number}, {system.faults.calls[number - 1]}"


@pytest.mark.parametrize("name", ["a transient fault", "an agent that hangs", "a declined card"])
def test_every_order_comes_to_its_end_when_recovery_is_hit_as_well(name: str) -> None:
    story = STORIES[name]
    for number in range(1, len(undisturbed(story).faults.calls) + 1):
        for later in (1, 2, 3, 5):
            for first in (Fault.CRASH_AFTER, Fault.UNKNOWN):
                faults = Faults().at(number, first).at(number + later, Fault.CRASH_AFTER)
                try:
                    check(story, System(story, faults).run())
                except AssertionError as error:
                    said = f"{first} at call {number}, a crash {later} calls later"
                    raise AssertionError(f"{said}: {error}") from error


@pytest.mark.parametrize("skew", [-20 * SECOND, -SECOND, SECOND, 20 * SECOND])
def test_clocks_that_differ_cost_a_retry_and_nothing_else(skew: int) -> None:
    for story in STORIES.values():
        check(story, System(story, Faults(), skew=skew).run())


def test_without_faults_each_thing_is_said_and_sent_once() -> None:
    for story in STORIES.values():
        system = undisturbed(story)
        assert [status["status"] for status in system.statuses] == story.statuses
        assert len(system.alerts) == (story.end is TaskState.ARCHIVED)


def test_a_healthy_order_is_carried_by_messages_alone() -> None:
    system = undisturbed(STORIES["success without replyTo"])
    assert system.remote.calls == ["reserve", "charge", "ship"]
    assert "due" not in system.faults.calls, "no supervisor was needed"
    assert system.shells.store.history(ORDER_ID) == []
    assert canonical_json(system.shells.task().results()) == (
        '{"charge":{"done":"charge"},"reserve":{"done":"reserve"},"ship":{"done":"ship"}}'
    )
