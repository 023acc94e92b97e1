"""Which time-outs may count, what is to be looked at and when, and what was known of an effect."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Archive, Retry, Step, Workflow
from roundsman.definition.plan import StepPlan, plan_of
from roundsman.engine import operator
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.step_values import step_values
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import Claimant, Resubmit
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, Owed, StepError, StepRecord, Task, Termination
from roundsman.model.wakes import EndedHolds
from roundsman.supervisor.parked import ParkedOrders
from roundsman.supervisor.supervisor import Supervisor
from roundsman.wire.messages import AgentRequest
from roundsman_console.facts.audit.effect_checks import round_of
from roundsman_console.facts.audit.needs import SOON, needs
from roundsman_console.facts.audit.stored_order import StandingEffect
from roundsman_testing import Crash, Fault, Faults, Invariant, InvariantBroken, World
from roundsman_testing.faults import ABLE, CALLS, FaultyOutbox
from roundsman_testing.invariants.claims import Claims
from roundsman_testing.invariants.looks import OWN_LOOK_WITHIN, WITHIN, Looks
from roundsman_testing.invariants.rules import Broken, of_knowledge, of_record
from roundsman_testing.world.outbox import WorldOutbox
from roundsman_testing.world.queues import REQUESTS
from tests.support.steps import changed_step, step_record, stored_step
from tests.unit.testing.samples import SHOP, charge

Patch = pytest.MonkeyPatch
NOW = 1_800_000_000_000
PLAN = plan_of(SHOP)
OVERDUE = StepError("Overdue", "no answer in time")
LOCK = Claimant("0001", "abcdef0123").token(1, 2)

TASK = Task(
    task_id="ord-1",
    workflow="shop",
    plan=PLAN.hash,
    state=TaskState.ACTIVE,
    version=3,
    created_at=NOW,
    start_at=NOW,
    complete_by=NOW + 60 * MINUTE,
    retain_for=0,
    shard=0,
    lane="open#0",
    due_at=NOW,
)
CLAIMED = step_record(
    process_state=ProcessState.PROCESSING,
    locked_by=LOCK,
    started_at=NOW,
    complete_by=NOW + 30 * SECOND,
)
AFTERWARDS = NOW + MINUTE


def having(task: Task = TASK, **steps: StepRecord) -> Task:
    return replace(task, steps={**task.steps, **steps})


def requeued(record: StepRecord = CLAIMED, **changes: object) -> StepRecord:
    return changed_step(record, process_state=ProcessState.PENDING, locked_by=None, **changes)


def counted(record: StepRecord = CLAIMED) -> StepRecord:
    return requeued(record, failure_count=record.failure_count + 1, error=replace(OVERDUE))


def a_request() -> AgentRequest:
    return AgentRequest(
        task_id="ord-1",
        workflow="shop",
        step="reserve",
        operation="perform",
        lock=LOCK,
        idempotency_key="ord-1/reserve/perform",
        attempt=1,
        complete_by=NOW,
        input={},
        results={},
        sent_at=NOW,
    )


# --- SENT ---------------------------------------------------------------------------------------


class Course:
    """Records of one step that follow each other, held against its claims."""

    def __init__(self) -> None:
        self.claims = Claims()
        self.task: Task | None = None

    def goes(self, record: StepRecord, at: int = AFTERWARDS, **changes: object) -> list[Invariant]:
        task = replace(having(reserve=record), **changes)  # type: ignore[arg-type]  # its own
        found = list(self.claims.of_change(None, self.task, task, at))
        self.task = task
        return [broken.invariant for broken in found]


def claimed(token: str = LOCK) -> Course:
    course = Course()
    assert course.goes(changed_step(CLAIMED, locked_by=token)) == []
    return course


def test_a_time_out_of_a_request_that_no_queue_took_does_not_count() -> None:
    assert claimed().goes(counted()) == [Invariant.SENT]


def test_it_may_be_sent_again_uncounted_and_the_next_may_count() -> None:
    course = claimed()
    again = changed_step(CLAIMED, locked_by="0001-abcdef0123.2.4")
    assert course.goes(requeued()) == []
    assert course.goes(again) == []
    assert course.goes(counted(again)) == []


def test_after_one_that_counted_the_next_is_spared_first() -> None:
    course = claimed()
    for lock in ("a-b.2", "a-b.3"):
        course.goes(requeued())
        course.goes(changed_step(CLAIMED, locked_by=lock))
    once = counted(changed_step(CLAIMED, locked_by="a-b.3"))
    assert course.goes(once) == []
    course.goes(changed_step(CLAIMED, locked_by="a-b.4", failure_count=1, error=once.error))
    assert course.goes(counted(requeued(once))) == [Invariant.SENT]


def test_a_message_that_dies_twice_may_have_its_claim_counted() -> None:
    for deaths, broken in ((0, [Invariant.SENT]), (1, [Invariant.SENT]), (2, [])):
        course = claimed()
        for _ in range(deaths):
            course.claims.handling_failed("abcdef0123")
        assert course.goes(counted()) == broken


def test_an_attempt_of_a_restored_record_may_count_since_its_queue_was_emptied() -> None:
    course = claimed()
    course.claims.begin_anew([having(reserve=CLAIMED)])
    assert course.goes(counted()) == []


def test_after_a_time_out_that_a_restored_record_has_not_counted_the_next_may_count() -> None:
    for uncounted, broken in ((0, [Invariant.SENT]), (1, [])):
        course = claimed()
        course.claims.begin_anew([having(reserve=requeued(uncounted_timeouts=uncounted))])
        again = changed_step(CLAIMED, locked_by="0001-abcdef0123.2.4")
        course.task = having(reserve=requeued())
        course.goes(again)
        assert course.goes(counted(again)) == broken


def test_a_task_that_ends_for_another_reason_counts_what_it_likes() -> None:
    for step, broken in (("reserve", [Invariant.SENT]), ("mail", []), (None, [])):
        ending = Termination(TaskState.UNDONE, "asked", step, undo=True)
        assert claimed().goes(counted(), ending=ending) == broken


def test_what_failed_by_an_answer_is_no_time_out() -> None:
    after = requeued(failure_count=1, error=StepError("Busy", "503"))
    assert claimed().goes(after) == []


def test_an_undo_has_claims_of_its_own() -> None:
    undoing = changed_step(CLAIMED, process_state=ProcessState.UNDOING)
    course = claimed()
    course.goes(changed_step(CLAIMED, process_state=ProcessState.PROCESSED, locked_by=None))
    course.goes(undoing)
    failed = changed_step(
        undoing, process_state=ProcessState.UNDO_ERROR, locked_by=None, error=OVERDUE
    )
    assert course.goes(failed) == [Invariant.SENT]


@pytest.mark.parametrize(
    "fault", [None, *(fault for fault in Fault if "send_requests" in ABLE.get(fault, CALLS))]
)
def test_a_request_is_accepted_where_it_is_sent_lost_or_its_answer_is(fault: Fault | None) -> None:
    faults = Faults()
    if fault is not None:
        faults.on("send_requests", fault)
    world = World(SHOP, faults=faults)
    taken: list[str] = []
    office = WorldOutbox(lambda *_: None, ["stock"])
    outbox = FaultyOutbox(office, world.faults, lambda request: taken.append(request.lock))
    with suppress(Crash, CallRefused, TryAgain):
        outbox.send_requests([("stock", "normal", a_request())])
    never = (Fault.CRASH_BEFORE, Fault.NOT_DONE, Fault.REFUSED)
    assert taken == ([] if fault in never else [LOCK])


# --- What is needed, and when -------------------------------------------------------------------


def earliest(task: Task, now: int = NOW) -> int:
    return min(need.at for need in needs(task, now, PLAN))


def test_what_a_task_needs_first_is_read_from_its_plan_and_record() -> None:
    done = step_record(process_state=ProcessState.PROCESSED, started_at=NOW)
    waits = requeued(not_before=NOW + 10 * MINUTE)
    assert earliest(TASK) == NOW + SOON, "its first step can be started"
    assert earliest(having(reserve=CLAIMED)) == stored_step(CLAIMED).complete_by
    beats = changed_step(CLAIMED, heartbeat_by=NOW + SECOND)
    assert earliest(having(reserve=beats)) == NOW + SECOND
    assert earliest(having(reserve=waits)) == NOW + 10 * MINUTE
    assert earliest(having(reserve=waits), NOW + 11 * MINUTE) == NOW + 11 * MINUTE + SOON
    assert earliest(having(reserve=done)) == NOW + SOON, "a step without a record can be ready"
    later = replace(TASK, state=TaskState.SCHEDULED, start_at=NOW + 5 * MINUTE)
    assert earliest(later) == NOW + 5 * MINUTE
    owes = replace(later, owed=(Owed("status", "received", 1, NOW, ""),))
    assert earliest(owes) == NOW + SOON


def test_a_task_needs_a_look_at_its_deadline_if_that_is_earlier() -> None:
    waits = requeued(not_before=NOW + 90 * MINUTE)
    assert earliest(having(reserve=waits)) == NOW + 60 * MINUTE
    assert earliest(having(replace(TASK, deadline=NOW + 50 * MINUTE), reserve=waits)) == (
        NOW + 50 * MINUTE
    )


def test_a_perform_that_is_waited_for_beyond_the_deadline_is_found() -> None:
    by = stored_step(CLAIMED).complete_by
    assert by is not None
    limited = replace(having(reserve=CLAIMED), deadline=by, due_at=NOW)
    assert list(of_record(limited, NOW)) == []
    (found,) = of_record(replace(limited, deadline=by - 1), NOW)
    assert (found.invariant, found.what) == (
        Invariant.IN_TIME,
        "reserve has 1 ms more than the task",
    )


def test_an_ending_task_needs_its_undos_in_their_order_and_no_performs() -> None:
    undoing = changed_step(CLAIMED, process_state=ProcessState.UNDOING, locked_by=None)
    ending = replace(TASK, ending=Termination(TaskState.UNDONE, "asked", undo=True))
    behind = having(ending, reserve=undoing, charge=changed_step(undoing, not_before=NOW + MINUTE))
    assert [need.at for need in needs(behind, NOW, PLAN)] == [NOW + MINUTE], "charge is first"
    assert earliest(having(ending, reserve=undoing)) == NOW + SOON
    assert list(needs(having(ending, reserve=requeued()), NOW, PLAN)) == []


def test_a_step_that_becomes_ready_unwatched_is_found(monkeypatch: Patch) -> None:
    """The due entry says when something that has a record is due, and of the task's end."""

    def blind(task: Task, now: int) -> int:
        under_way = [r.overdue_at for r in task.steps.values() if r.under_way]
        return min([at for at in under_way if at], default=task.complete_by)

    monkeypatch.setattr("roundsman.engine.due.due", blind)
    monkeypatch.setattr("roundsman.supervisor.supervisor.due", blind)
    world = World(SHOP)
    world.submit()
    with pytest.raises(InvariantBroken) as found:
        world.run()
    assert {broken.invariant for broken in found.value.broken} == {Invariant.READY}


# --- LOOKED_AT ----------------------------------------------------------------------------------


def lateness(follows: Callable[[Looks], object], at: int) -> list[Broken]:
    looks = Looks(MINUTE)
    looks.written(PLAN, having(reserve=CLAIMED), NOW, is_open=True)
    follows(looks)
    return list(looks.late(at))


def test_a_task_that_nobody_looks_at_is_reported_once() -> None:
    looks = Looks(MINUTE)
    looks.written(PLAN, having(reserve=CLAIMED), NOW, is_open=True)
    bound = NOW + 30 * SECOND + WITHIN + MINUTE
    assert list(looks.late(bound)) == []
    assert [broken.invariant for broken in looks.late(bound + 1)] == [Invariant.LOOKED_AT]
    assert list(looks.late(bound + 1)) == []


def test_who_looks_too_late_is_found_as_well() -> None:
    looks = Looks(MINUTE)
    looks.written(PLAN, having(reserve=CLAIMED), NOW, is_open=True)
    assert list(looks.looked("ord-1", NOW + 75 * MINUTE)) != []
    assert list(looks.looked("ord-1", NOW + 76 * MINUTE)) == []


def test_a_look_a_fault_and_an_end_begin_the_time_anew() -> None:
    late = NOW + 20 * MINUTE
    assert lateness(lambda looks: None, late) != []
    assert lateness(lambda looks: list(looks.looked("ord-1", NOW + 10 * MINUTE)), late) == []
    assert lateness(lambda looks: looks.failed(NOW + 10 * MINUTE), late) == []
    over = having(reserve=CLAIMED)
    assert lateness(lambda looks: looks.written(PLAN, over, NOW, is_open=False), late) == []


def test_a_call_that_fails_while_nobody_looks_does_not_shorten_that_time() -> None:
    def fails_twice(looks: Looks) -> None:
        looks.failed(NOW + 60 * MINUTE)
        looks.failed(NOW + MINUTE)

    assert lateness(fails_twice, NOW + 60 * MINUTE + WITHIN) == []


def test_a_due_entry_that_was_put_off_for_hours_is_found(monkeypatch: Patch) -> None:
    """Where the supervisor may not read for ten minutes, and stays away for longer."""
    make_pass = Supervisor.make_pass
    world = World(SHOP)

    def away(self: Supervisor, *, stop_at: int) -> object:
        is_away = world.now < NOW + 120 * MINUTE
        return make_pass(self, stop_at=0 if is_away else stop_at)

    monkeypatch.setattr(Supervisor, "make_pass", away)
    world.mail(REQUESTS).is_lost()
    world.submit()
    with pytest.raises(InvariantBroken) as found:
        world.run()
    assert {broken.invariant for broken in found.value.broken} == {Invariant.LOOKED_AT}


# --- KNOWN and ONCE -----------------------------------------------------------------------------

STANDING = StandingEffect("reserve", "ord-1/reserve/perform")
FAILED = changed_step(CLAIMED, process_state=ProcessState.ERROR, locked_by=None)


@pytest.mark.parametrize(
    ("record", "broken"),
    [
        (replace(FAILED, outcome_unknown=True), []),
        (FAILED, [Invariant.KNOWN]),
        (replace(FAILED, effect=Effect.STANDS), []),
        (replace(FAILED, outcome_unknown=True, effect=Effect.NONE), [Invariant.KNOWN]),
        (requeued(effect=Effect.NONE), [Invariant.KNOWN]),
        (requeued(), []),
    ],
)
def test_only_a_step_that_is_reported_without_effect_must_be_without(
    record: StepRecord, broken: list[Invariant]
) -> None:
    found = of_knowledge(having(reserve=record), [STANDING])
    assert [each.invariant for each in found] == broken
    assert list(of_knowledge(having(reserve=record), [])) == []


def test_a_refusal_of_one_copy_is_no_proof_while_the_effect_of_another_stands(
    monkeypatch: Patch,
) -> None:
    def refused(task: Task, standing: Sequence[StandingEffect]) -> list[Broken]:
        errors = {
            name: replace(record, outcome_unknown=False, effect=None)
            for name, record in task.steps.items()
            if record.process_state is ProcessState.ERROR
        }
        blind = replace(task, steps={**task.steps, **errors})
        return list(of_knowledge(blind, standing))

    monkeypatch.setattr("roundsman_testing.invariants.watch.of_knowledge", refused)
    world = World(CHARGING)
    world.mail(REQUESTS).comes_twice(after=timedelta(seconds=5))
    world.on("charge").refuses("CardDeclined", times=1)
    world.submit()
    with pytest.raises(InvariantBroken, match=r"KNOWN.*charge is Error, without effect as it says"):
        world.run()


CHARGING = Workflow(
    name="charging",
    steps=(replace(charge, after=()),),
    complete_within=timedelta(hours=4),
    on_failure=Archive(),
    retain_for=timedelta(days=1),
)

note = Step(
    name="note",
    agent="clerk",
    complete_within=timedelta(seconds=30),
    retry=Retry(max_attempts=3),
)
NOTING = Workflow(
    name="noting",
    steps=(note,),
    complete_within=timedelta(hours=4),
    on_failure=Archive(),
    retain_for=timedelta(days=1),
)


def test_what_nothing_undoes_stands_once_whatever_people_repair(monkeypatch: Patch) -> None:
    real = operator._perform_under_fresh_key

    def believes(context: DecisionContext, step: StepPlan, event: Resubmit) -> None:
        context.decision.change(step.name, step_values(effect=Effect.NONE))
        real(context, step, event)

    monkeypatch.setattr(operator, "_perform_under_fresh_key", believes)
    world = World(NOTING)
    world.on("note").loses_answer(times=3)
    order_id = world.submit()
    world.run()
    assert world.task(order_id).state is TaskState.ARCHIVED
    assert world.standing(order_id) == ["note"]
    world.operator.resubmit(order_id, fresh_key=True)
    with pytest.raises(InvariantBroken, match=r"ONCE.*note stands as"):
        world.run()


def test_only_to_begin_all_over_does_it_once_more() -> None:
    world = World(NOTING)
    world.on("note").loses_answer(times=3)
    order_id = world.submit()
    world.run()
    world.operator.cancel(order_id)
    world.run()
    assert world.task(order_id).state is TaskState.CANCELLED
    world.operator.resubmit(order_id, again=True)
    assert world.run().task(order_id).state is TaskState.COMPLETED
    assert world.standing(order_id) == ["note", "note"]


@pytest.mark.parametrize(
    ("key", "number"),
    [("", 1), ("/2", 2), ("/12/backup", 12), ("/backup", 1)],
)
def test_the_round_of_a_key_is_read_from_it(key: str, number: int) -> None:
    assert round_of("ord-1", "pick[3]", f"ord-1/pick[3]/perform{key}") == number


def test_a_parked_task_that_nobody_looks_at_after_its_hold_has_ended_is_found() -> None:
    ended = [EndedHolds("payment", "released")]
    parked = step_record(held_since=NOW, not_before=NOW + 24 * 60 * MINUTE, held_for="payment")
    bound = WITHIN + MINUTE
    for holds, late in ((ended, True), ([replace(ended[0], on_trial=True)], False), ([], False)):
        looks = Looks(MINUTE)
        looks.written(PLAN, having(reserve=parked), NOW, is_open=True)
        looks.holds_ended(holds, NOW + MINUTE)
        looks.holds_ended(holds, NOW + 2 * MINUTE)
        assert list(looks.late(NOW + MINUTE + bound)) == []
        assert bool(list(looks.late(NOW + MINUTE + bound + 1))) is late
    looks = Looks(MINUTE)
    looks.written(PLAN, having(reserve=parked), NOW, is_open=True)
    looks.holds_ended(ended, NOW)
    looks.written(PLAN, having(reserve=CLAIMED), NOW, is_open=False)
    assert list(looks.late(NOW + 24 * 60 * MINUTE)) == []


def test_a_parked_task_is_looked_at_each_day_also_if_its_wake_is_lost() -> None:
    parked = step_record(held_since=NOW, not_before=NOW + 90 * DAY, held_for="payment")
    for wakes_are_lost in (False, True):
        looks = Looks(MINUTE)
        if wakes_are_lost:
            looks.wakes_are_lost()
        looks.written(PLAN, having(reserve=parked), NOW, is_open=True)
        looks.holds_ended([EndedHolds("payment", "released")] if wakes_are_lost else [], NOW)
        bound = OWN_LOOK_WITHIN + WITHIN + MINUTE
        assert list(looks.looked("ord-1", NOW + bound)) == []
        assert list(looks.late(NOW + 2 * bound)) == []
        assert [one.invariant for one in looks.late(NOW + 2 * bound + 1)] == [Invariant.LOOKED_AT]


def test_a_hold_whose_end_wakes_nobody_is_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(ParkedOrders, "waiting", lambda *_: iter(()))
    world = World(SHOP)
    world.hold("stock", timedelta(days=2))
    world.submit()
    world.run(for_=timedelta(hours=30))
    world.release("stock")
    with pytest.raises(InvariantBroken) as found:
        world.run()
    assert {broken.invariant for broken in found.value.broken} == {Invariant.LOOKED_AT}
