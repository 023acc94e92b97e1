"""Every entry of both tables is reached through `decide`, and every other pair is refused."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo, Wait
from roundsman.engine import decision_builder as building
from roundsman.engine import transitions
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import (
    STEPS,
    TASKS,
    MayBecome,
    Refusal,
    Stay,
    StepEvent,
    TaskEvent,
    Transition,
    check_step_move,
    check_task_move,
    step_transition,
    task_transition,
)
from roundsman.errors import NoTransition, Refused
from roundsman.model.events import (
    AgentView,
    Cancel,
    Erase,
    Event,
    Extend,
    Inspect,
    Move,
    Outcome,
    Reconcile,
    Replied,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    Start,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.situations import NotBegun
from roundsman.model.states import ProcessState, SituationName, TaskState
from tests.support.closing_stories import CLOSING_STORIES
from tests.support.coping_stories import COPING_STORIES
from tests.support.ended_wait_stories import ENDED_WAIT_STORIES
from tests.support.erased_stories import ERASED_STORIES
from tests.support.fan_out_stories import FAN_OUT_STORIES
from tests.support.left_out_stories import LEFT_OUT_STORIES
from tests.support.machine_world import REPLY_TO, T0, World, plan, reached, step
from tests.support.move_stories import MOVE_STORIES
from tests.support.operator_stories import extended, heard_late
from tests.support.quorum_moves import QUORUM_MOVES
from tests.support.quorum_stories import QUORUM_STORIES
from tests.support.restored_stories import RESTORED_STORIES
from tests.support.signal_stories import SIGNAL_STORIES
from tests.support.situations import RECORDS
from tests.support.sleep_stories import SLEEP_STORIES
from tests.support.step_table_stories import STEP_TABLE_STORIES
from tests.support.undo_stories import UNDO_STORIES

ONCE = Retry(max_attempts=1)
FALSE, FAILING = "input.wanted", "abs(input.total)"
ORDER: Json = {"wanted": False, "total": "1.00"}
TOO_LONG = "x" * 20  # more than the 10 bytes that `one` may answer with
ENDED_BY_FAILURE = (TaskState.ARCHIVED, TaskState.UNDONE, TaskState.CANCELLED)
LATER = ProcessingOptions(start_at=T0 + 60 * SECOND, reply_to=REPLY_TO)


def chain() -> World:
    a = step("a")
    return World(plan(a, step("b", a)))


def one(options: ProcessingOptions | None = None, when: str | None = None) -> World:
    """One step, conditional where a `when` is given."""
    return World(
        plan(step("a", when=when, result_limit=10)), options or ProcessingOptions(), order=ORDER
    )


def completes() -> World:
    world = chain()
    world.start()
    world.succeeds("a")
    world.succeeds("a")  # PROCESSED, STALE
    world.succeeds("b")
    world.start()
    world.succeeds("b")
    world.inspect()
    return world


def is_refused() -> World:
    world = one()
    world.start()
    world.is_refused("a")
    world.start()
    world.is_refused("a")
    world.inspect()
    return world


def retries() -> World:
    world = chain()
    world.start()
    world.fails("a")
    world.wait_until(world.record("a").not_before)
    world.inspect()
    world.start()
    return world


def is_retried_by_a_late_start() -> World:
    world = one()
    world.start()
    world.fails("a")
    world.wait(2).start()
    return world


def is_overdue_and_unclaimed() -> World:
    world = one()
    world.start()
    world.overdue("a")
    world.overdue("a")  # nobody claimed it: UNCLAIMED
    return world


def is_unclaimed_past_its_deadline() -> World:
    world = World(plan(step("a"), deadline=timedelta(hours=1)))
    world.start()
    world.overdue("a")
    world.wait(3600).inspect()
    return world


def waits_in_vain(event: str) -> World:
    world = one()
    world.start()
    world.fails("a", retry_after=7200 * SECOND)
    world.wait(3600)
    world.inspect() if event == "inspect" else world.start()
    return world


def is_never_read() -> World:
    world = one()
    world.start()
    world.agents = {"worker/normal": AgentView(read_up_to=world.now - 1)}
    world.overdue("a")
    return world


def waits_and_exhausts() -> World:
    waits = Wait(timedelta(minutes=5), times=1, then=Archive())
    world = World(plan(step("a", retry=ONCE, on_failure=waits)))
    world.start()
    world.overdue("a")
    world.wait(300).start()
    world.overdue("a")
    return world


def late_success(*, in_retry: bool, last: bool = True, result: str = "") -> World:
    """Attempt 1 is overdue; its success comes while nothing of the step is under way."""
    world = one() if last else chain()
    world.start()
    first = world.lock("a")
    world.overdue("a")
    if in_retry:
        world.start()
        world.fails("a")
    world.succeeds("a", lock=first, result=result)
    return world


def late_refusal(*, in_retry: bool) -> World:
    """An outside system refuses by the token of attempt 1, while nothing is under way."""
    world = one()
    world.start()
    first = world.lock("a")
    world.overdue("a")
    if in_retry:
        world.start()
        world.fails("a")
    world.reply("a", Outcome.PERMANENT, lock=first, callback=True)
    return world


def stale_replies() -> World:
    a, b = step("a", retry=ONCE), step("b")
    world = World(plan(a, b, step("c", when=FALSE)), order=ORDER)
    world.start()
    first = world.lock("b")
    world.fails("b", lock="sched-earlier.1")  # PROCESSING, STALE
    world.reply("c", Outcome.TRANSIENT)  # SKIPPED, STALE
    world.fails("b")
    world.fails("b", lock=first)  # PENDING, STALE
    world.wait(3).start()
    world.fails("a")
    world.fails("a")  # ERROR, STALE
    return world


def without_its_plan() -> World:
    world = one()
    world.start()
    world.stored_plan = False
    world.start()
    world.until_overdue("a").start()
    return world


def started(when: str) -> World:
    world = one(when=when)
    world.start()
    return world


def scheduled(then: str, when: str | None = None, wait: int = 60) -> World:
    world = one(LATER, when)
    world.succeeds("a")  # SCHEDULED, Replied: it has not started
    world.wait(wait)
    world.inspect() if then == "inspect" else world.start()
    return world


def scheduled_past_its_deadline(on_failure: Archive | Undo) -> World:
    limited = plan(step("a"), on_failure=on_failure, deadline=timedelta(hours=1))
    world = World(limited, LATER)
    world.wait(3700).inspect()
    return world


STORIES: list[Callable[[], World]] = [
    completes,
    is_refused,
    retries,
    is_retried_by_a_late_start,
    is_overdue_and_unclaimed,
    is_unclaimed_past_its_deadline,
    lambda: waits_in_vain("inspect"),
    lambda: waits_in_vain("start"),
    is_never_read,
    waits_and_exhausts,
    lambda: late_success(in_retry=False),
    lambda: late_success(in_retry=False, last=False),
    lambda: late_success(in_retry=False, result=TOO_LONG),
    lambda: late_success(in_retry=True),
    lambda: late_success(in_retry=True, last=False),
    lambda: late_success(in_retry=True, result=TOO_LONG),
    lambda: late_refusal(in_retry=False),
    lambda: late_refusal(in_retry=True),
    stale_replies,
    without_its_plan,
    lambda: started(FALSE),
    lambda: started(FAILING),
    lambda: scheduled("inspect"),
    lambda: scheduled_past_its_deadline(Archive()),
    lambda: scheduled_past_its_deadline(Undo()),
    lambda: scheduled("start"),
    lambda: scheduled("start", when=FALSE),
    lambda: scheduled("start", when=FAILING),
    *UNDO_STORIES,
    *COPING_STORIES,
    lambda: extended(undo=False),
    lambda: extended(undo=True),
    *(lambda state=state: heard_late(state) for state in ENDED_BY_FAILURE),
    *FAN_OUT_STORIES,
    *QUORUM_STORIES,
    *QUORUM_MOVES,
    *CLOSING_STORIES,
    *RESTORED_STORIES,
    *ERASED_STORIES,
    *ENDED_WAIT_STORIES,
    *LEFT_OUT_STORIES,
    *MOVE_STORIES,
    *SIGNAL_STORIES,
    *SLEEP_STORIES,
    *STEP_TABLE_STORIES,
]


def test_every_entry_of_the_task_table_is_reached_and_nothing_else() -> None:
    triples = reached([story() for story in STORIES])
    table = {
        (state, event, after)
        for (state, event), entry in TASKS.items()
        if isinstance(entry, MayBecome)
        for after in entry.states
    }
    assert table - triples == set(), "listed, and nothing leads there"
    assert {triple for triple in triples if triple[0] is not triple[2]} == table
    refused = {pair for pair, entry in TASKS.items() if isinstance(entry, Refusal)}
    assert {(state, event) for state, event, _ in triples} == set(TASKS) - refused


def test_every_entry_of_the_step_table_is_reached_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed: set[tuple[SituationName, StepEvent, SituationName]] = set()
    stale: set[tuple[SituationName, StepEvent]] = set()

    def move(before: SituationName, event: StepEvent, after: SituationName) -> None:
        check_step_move(before, event, after)
        changed.add((before, event, after))

    def look_up(situation: SituationName, event: StepEvent) -> Transition | Stay:
        found = step_transition(situation, event)
        if isinstance(found, Stay):
            stale.add((situation, event))
        return found

    monkeypatch.setattr(building, "check_step_move", move)
    monkeypatch.setattr(building, "step_transition", look_up)
    for story in STORIES:
        story()
    table = {
        (before, event, after)
        for (before, event), entry in STEPS.items()
        if isinstance(entry, Transition)
        for after in entry.to
    }
    assert sorted(table - changed) == [], "listed, and no story of `STORIES` leads there"
    assert changed == table
    assert stale == {pair for pair, entry in STEPS.items() if isinstance(entry, Stay)}


MISSING_STEPS = sorted(set(product(SituationName, StepEvent)) - set(STEPS))


def test_a_step_is_in_the_situation_that_its_record_says() -> None:
    assert {situation: record.situation_name for situation, record in RECORDS.items()} == {
        situation: situation for situation in SituationName
    }


@pytest.mark.parametrize(("situation", "event"), MISSING_STEPS)
def test_a_step_pair_that_is_not_in_the_table_is_refused_and_changes_nothing(
    situation: SituationName, event: StepEvent
) -> None:
    world = one()
    task = replace(world.task, steps={"a": RECORDS[situation]})
    written = DecisionBuilder(task, T0)
    with pytest.raises(NoTransition, match=f"no entry for a step {situation} and .*{event.value}"):
        written.move("a", event, NotBegun(), step_values(failure_count=7))
    assert written.steps == task.steps == {"a": RECORDS[situation]}


def test_a_situation_that_the_table_does_not_list_is_refused_and_changes_nothing() -> None:
    task = replace(one().task, steps={"a": RECORDS[SituationName.AT_AGENT]})
    written = DecisionBuilder(task, T0)
    with pytest.raises(NoTransition, match="may not change a step from at its agent to not begun"):
        written.move("a", StepEvent.FAILED, NotBegun())
    assert written.steps == task.steps


def events(world: World) -> dict[TaskEvent, Event]:
    who = world.claimant()
    key = "ord-1/a/perform"
    return {
        TaskEvent.START: Start(who),
        TaskEvent.REPLIED: Replied(who, "a", "perform", "token", key, Outcome.SUCCEEDED),
        TaskEvent.INSPECT: Inspect(),
        TaskEvent.RESUBMIT: Resubmit(world.asked()),
        TaskEvent.UNDO_ASKED: UndoAsked(world.asked()),
        TaskEvent.UNDO_PART: UndoPart(world.asked(), ("a",)),
        TaskEvent.CANCEL: Cancel(world.asked()),
        TaskEvent.RESOLVE: Resolve(world.asked(), "a", did=True),
        TaskEvent.EXTEND: Extend(world.asked(), 60),
        TaskEvent.RUN_NOW: RunNow(world.asked()),
        TaskEvent.MOVE: Move(world.asked(), "0" * 64),
        TaskEvent.RECONCILE: Reconcile(world.asked(), T0),
        TaskEvent.SIGNALLED: Signalled(world.asked(), "paid"),
        TaskEvent.ERASE: Erase(world.asked()),
    }


def test_every_state_has_an_answer_to_every_event() -> None:
    assert set(product(TaskState, TaskEvent)) == set(TASKS)


def test_a_pair_that_were_missing_would_be_a_defect_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = one()
    world.start()
    before = replace(world.task, steps=dict(world.task.steps))
    monkeypatch.setattr(transitions, "TASKS", {})
    with pytest.raises(NoTransition, match="no entry for a task that is Active and Inspect"):
        world.inspect()
    assert world.task == before


@pytest.mark.parametrize(
    ("state", "event"),
    sorted(pair for pair, entry in TASKS.items() if isinstance(entry, Refusal)),
)
def test_what_makes_no_sense_in_a_state_is_refused_in_a_sentence_and_changes_nothing(
    state: TaskState, event: TaskEvent
) -> None:
    world = one()
    world.start()
    world.task = replace(world.task, state=state)
    before = replace(world.task, steps=dict(world.task.steps))
    entry = TASKS[state, event]
    assert isinstance(entry, Refusal)
    with pytest.raises(Refused) as refusal:
        world.apply(events(world)[event])
    assert str(refusal.value) == entry.why
    assert world.task == before


@pytest.mark.parametrize(
    ("state", "event"), sorted(pair for pair, entry in TASKS.items() if isinstance(entry, Stay))
)
def test_an_event_that_comes_too_late_or_too_early_returns_the_very_task(
    state: TaskState, event: TaskEvent
) -> None:
    world = one()
    world.task = replace(world.task, state=state)
    before = world.task
    decision = world.apply(events(world)[event])
    assert decision.task is before
    assert decision.actions == ()
    entry = TASKS[state, event]
    assert isinstance(entry, Stay)
    assert decision.reason == entry.why


MOVES_MISSING = sorted(
    (before, event, after)
    for (before, event), entry in TASKS.items()
    for after in TaskState
    if after is not before and not (isinstance(entry, MayBecome) and after in entry.states)
)


@pytest.mark.parametrize(("before", "event", "after"), MOVES_MISSING)
def test_a_derived_state_that_the_table_does_not_list_is_refused(
    before: TaskState, event: TaskEvent, after: TaskState
) -> None:
    with pytest.raises(
        NoTransition, match=f"{event.value} cannot change a task from {before} to {after}"
    ):
        check_task_move(before, event, after)


def test_looking_up_a_pair_says_what_it_leads_to() -> None:
    assert task_transition(TaskState.COMPLETED, TaskEvent.START) == Stay("the task is completed")


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([(ProcessState.PENDING, None)], TaskState.PENDING),
        ([(ProcessState.PENDING, T0)], TaskState.PENDING),
        ([(ProcessState.PENDING, T0 + 1)], TaskState.RETRY),
        ([(ProcessState.PROCESSED, T0 + 1)], TaskState.PENDING),
        ([(ProcessState.PENDING, T0 + 1), (ProcessState.PROCESSING, None)], TaskState.ACTIVE),
        ([(ProcessState.PROCESSING, None), (ProcessState.UNDOING, None)], TaskState.UNDOING),
    ],
)
def test_the_state_of_a_task_is_that_of_its_steps(
    steps: list[tuple[ProcessState, int | None]], state: TaskState
) -> None:
    assert transitions.live_state(steps, T0) is state
