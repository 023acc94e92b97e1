"""Each invariant is found broken, by its name, where a part of the stack is broken."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from roundsman.alerts.group import opened
from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine import compensation, due, machine, overdue
from roundsman.engine import steps as ready_steps
from roundsman.engine.decision_context import DecisionContext
from roundsman.model.events import Claimant, HistoryRow
from roundsman.model.failure import Failure
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task, Termination
from roundsman.ports import NO_INPUTS, Saved, Superseded
from roundsman.scheduler.arrived import Arrived
from roundsman.scheduler.scheduler import Scheduler
from roundsman.supervisor.supervisor import PassReport, Supervisor
from roundsman.wire.alert import Alert
from roundsman.wire.messages import Reply
from roundsman_testing import (
    FOR_EVER,
    Fault,
    Invariant,
    InvariantBroken,
    Mishaps,
    ProcessingOptions,
    World,
)
from roundsman_testing.ledger import EffectKey, Ledger, Moment
from roundsman_testing.memory import MemoryStore
from roundsman_testing.world.agents import RequestRun
from roundsman_testing.world.outbox import WorldOutbox
from tests.support.planted import no_version_condition
from tests.support.plants import PLANTS
from tests.support.steps import changed_step
from tests.unit.testing.samples import BESIDE, SHOP

Patch = pytest.MonkeyPatch
Change = Callable[[Task], Task]


def stores(patch: Patch, change: Change) -> None:
    """A store that keeps another record than it was given."""
    save = MemoryStore.save

    def changed(
        self: MemoryStore,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        task = change(task)
        return save(self, task, seen=seen, history=history, inputs=inputs, search=search)

    patch.setattr(MemoryStore, "save", changed)


def knows_no_hurry(patch: Patch, _: World) -> None:
    patch.setattr(due, "START_WITHIN", 10 * MINUTE)


def counts_what_was_never_sent(patch: Patch, world: World) -> None:
    patch.setattr(overdue, "_may_be_unsent", lambda *_: False)
    world.faults.on("send_requests", Fault.CRASH_BEFORE, nth=1)


def takes_silence_for_a_no(patch: Patch, world: World) -> None:
    def known(task: Task) -> Task:
        steps = {
            name: replace(record, outcome_unknown=False, effect=None)
            if record.process_state is ProcessState.ERROR
            else record
            for name, record in task.steps.items()
        }
        return replace(task, steps=steps)

    stores(patch, known)
    world.on("mail").loses_answer(times=FOR_EVER)


def looks_late(patch: Patch, _: World) -> None:
    stores(patch, lambda task: replace(task, due_at=task.due_at + 10 * MINUTE))


def gives_one_lock_twice(patch: Patch, world: World) -> None:
    patch.setattr(Claimant, "token", lambda self, attempt, version: "the-lock.1.1")
    world.on("reserve").hangs()


def waits_beyond_the_tasks_end(patch: Patch, world: World) -> None:
    def extended(task: Task) -> Task:
        steps = {
            name: changed_step(record, complete_by=task.complete_by + 1)
            if record.under_way
            else record
            for name, record in task.steps.items()
        }
        return replace(task, steps=steps)

    stores(patch, extended)
    world.on("charge").hangs()


def corrects_under_the_same_key(patch: Patch, world: World) -> None:
    def corrected(task: Task) -> Task:
        steps = {
            name: replace(record, corrections=record.failure_count)
            for name, record in task.steps.items()
        }
        return replace(task, steps=steps)

    stores(patch, corrected)
    world.on("charge").hangs()


def starts_everything(patch: Patch, _: World) -> None:
    def pending(context: DecisionContext, _: Plan, step: StepPlan) -> bool:
        return context.decision.step(step.name).process_state is ProcessState.PENDING

    patch.setattr(ready_steps, "_is_ready", pending)


def undoes_in_any_order(patch: Patch, world: World) -> None:
    patch.setattr(compensation, "_with_successors_unfinished", lambda context: frozenset())
    world.on("charge").refuses()


def forgets_what_it_saves(patch: Patch, _: World) -> None:
    patch.setattr(MemoryStore, "save", lambda self, task, **_: Saved())


def repeats_what_it_did(patch: Patch, world: World) -> None:
    perform = Ledger.perform

    def again(self: Ledger, effect: EffectKey, *, fenced: bool, when: Moment) -> bool:
        done = perform(self, effect, fenced=fenced, when=when)
        self.count[effect.key] += effect.step == "charge"
        return done

    patch.setattr(Ledger, "perform", again)


def knows_no_fence(patch: Patch, world: World) -> None:
    perform = Ledger.perform
    patch.setattr(
        Ledger,
        "perform",
        lambda self, effect, **others: perform(self, effect, **{**others, "fenced": False}),
    )
    world.on("charge").lands_late(timedelta(minutes=30)).refuses()


def completes_at_once(patch: Patch, _: World) -> None:
    stores(patch, lambda task: replace(task, state=TaskState.COMPLETED, ended_at=task.created_at))


def says_that_a_part_was_taken_back(patch: Patch, _: World) -> None:
    part = Termination(TaskState.COMPLETED, "", undo=True, part=("reserve",))

    def partly(task: Task) -> Task:
        return replace(task, ending=part) if task.state is TaskState.COMPLETED else task

    stores(patch, partly)


def alerts_nobody(patch: Patch, world: World) -> None:
    def nothing(self: WorldOutbox, alert: Alert) -> None: ...

    patch.setattr(WorldOutbox, "publish", nothing)
    world.on("charge").refuses()
    world.on("charge", "undo").refuses()


def alerts_for_nothing(_: Patch, world: World) -> None:
    failure = Failure("shop", "charge", "archived", "CardDeclined", "")
    group = opened(failure, agent="", task_id="order-1", since=world.now, now=world.now)
    world.processes.groups.open(group)


def sends_no_status(patch: Patch, _: World) -> None:
    patch.setattr(WorldOutbox, "send_status", lambda self, queue_url, body: True)


def looks_and_does_nothing(patch: Patch, world: World) -> None:
    patch.setattr(machine, "_inspect", lambda context: None)
    world.on("charge").hangs(FOR_EVER)


def sleeps(patch: Patch, world: World) -> None:
    patch.setattr(Supervisor, "make_pass", lambda self, *, stop_at: PassReport())
    world.on("charge").hangs(FOR_EVER)


def leaves_what_is_over(patch: Patch, _: World) -> None:
    stores(patch, lambda task: replace(task, lane="done#0"))


def counts_no_version(patch: Patch, _: World) -> None:
    stores(patch, lambda task: replace(task, version=task.version - 1))


def raises(patch: Patch, _: World) -> None:
    handle = Scheduler.handle

    def raising(self: Scheduler, arrived: Sequence[Arrived]) -> object:
        if isinstance(arrived[0].message, Reply):
            raise ZeroDivisionError("by nought")
        return handle(self, arrived)

    patch.setattr(Scheduler, "handle", raising)


def erases_what_goes_on(patch: Patch, _: World) -> None:
    stores(patch, lambda task: replace(task, erased_at=task.created_at, erased_by="nobody"))


BREAK = {
    Invariant.ALWAYS_DUE: looks_late,
    Invariant.READY: knows_no_hurry,
    Invariant.LOOKED_AT: sleeps,
    Invariant.SENT: counts_what_was_never_sent,
    Invariant.ONE_LOCK: gives_one_lock_twice,
    Invariant.ONE_INPUT: corrects_under_the_same_key,
    Invariant.IN_TIME: waits_beyond_the_tasks_end,
    Invariant.IN_ORDER: starts_everything,
    Invariant.UNDO_IN_ORDER: undoes_in_any_order,
    Invariant.EXPLAINED: forgets_what_it_saves,
    Invariant.ONCE: repeats_what_it_did,
    Invariant.KNOWN: takes_silence_for_a_no,
    Invariant.UNDONE: knows_no_fence,
    Invariant.COMPLETED: completes_at_once,
    Invariant.TAKEN_BACK: says_that_a_part_was_taken_back,
    Invariant.ALERTED: alerts_nobody,
    Invariant.CAUSED: alerts_for_nothing,
    Invariant.REPORTED: sends_no_status,
    Invariant.ENDS: looks_and_does_nothing,
    Invariant.AGREES: completes_at_once,
    Invariant.NOT_LOST: counts_no_version,
    Invariant.HANDLED: raises,
    Invariant.ERASED: erases_what_goes_on,
}


def broken_run(world: World) -> InvariantBroken:
    world.submit(options=ProcessingOptions(reply_to="https://queue.example/replies"))
    with pytest.raises(InvariantBroken) as caught:
        world.run()
    return caught.value


def test_each_invariant_has_a_planted_fault_here_or_in_the_list_for_random_worlds() -> None:
    assert BREAK.keys() | {plant.invariant for plant in PLANTS} == set(Invariant)


@pytest.mark.parametrize("invariant", BREAK)
def test_each_invariant_is_found_broken_where_a_part_of_the_stack_is(
    invariant: Invariant, monkeypatch: Patch
) -> None:
    world = World(SHOP, seed=8)
    BREAK[invariant](monkeypatch, world)
    broken = broken_run(world)
    assert invariant in {found.invariant for found in broken.broken}
    report = str(broken)
    assert str(broken.broken[0]) in report
    assert "seed=8" in report
    assert len(report.splitlines()) <= 10
    whole = Path(report.rpartition("the whole trace: ")[2]).read_text(encoding="utf-8")
    assert f"{invariant.name}: {invariant}" in whole
    assert "message-1 of orders: accepted" in whole, "and all that happened"


def test_an_effect_that_is_reported_and_was_not_done_is_unexplained(monkeypatch: Patch) -> None:
    monkeypatch.setattr(RequestRun, "leave_effect", lambda self: None)
    world = World(SHOP)
    broken = broken_run(world)
    assert [found.invariant for found in broken.broken] == [Invariant.EXPLAINED]
    assert "reserve is Processed" in broken.broken[0].what


def test_a_task_that_is_not_over_never_leaves_its_open_lane(monkeypatch: Patch) -> None:
    world = World(SHOP)
    leaves_what_is_over(monkeypatch, world)
    assert Invariant.ALWAYS_DUE in {found.invariant for found in broken_run(world).broken}


def test_a_handler_that_breaks_says_by_what(monkeypatch: Patch) -> None:
    world = World(SHOP)
    raises(monkeypatch, world)
    broken = broken_run(world)
    assert "ZeroDivisionError: by nought" in str(broken)
    assert isinstance(broken.cause, ZeroDivisionError)


def test_a_store_that_minds_no_version_is_found_by_processes_that_meet(monkeypatch: Patch) -> None:
    def found(seed: int) -> bool:
        world = World(BESIDE, seed=seed, mishaps=Mishaps(meetings=0.3))
        world.submit()
        try:
            world.run()
        except InvariantBroken as broken:
            return Invariant.NOT_LOST in {one.invariant for one in broken.broken}
        return False

    assert not any(found(seed) for seed in range(30))
    no_version_condition(monkeypatch)
    assert any(found(seed) for seed in range(30))


def test_an_order_that_was_taken_and_has_not_ended_is_named() -> None:
    world = World(SHOP)
    order_id = world.submit()
    world.run(for_=timedelta(milliseconds=12))
    with pytest.raises(InvariantBroken, match=f"ENDS.*{order_id}: it is Active"):
        world.check_all_ended()
