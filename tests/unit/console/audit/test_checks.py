"""Each check finds a planted violation of its promise, and says when it cannot judge."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Signal, Strategy, Undo
from roundsman.engine.history import SIGNAL_UNREAD
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Claimant, HistoryRow
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.situations import End, Ended
from roundsman.model.states import TaskState
from roundsman.model.task import UNDO, Effect, SettledRow, StepError, StepToAdd
from roundsman_console.facts.audit import effect_checks, history_checks, record_checks
from roundsman_console.facts.audit.checks import CHECKS, EFFECT_CHECKS, Verdict, judge
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.stored_order import (
    StandingEffect,
    StoredOrder,
    Unknown,
)
from tests.support import erased_stories, fan_out_stories, operator_stories, undo_stories
from tests.support.fan_out_stories import FENCED
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import changed_step
from tests.unit.console.audit.stored import stored, stored_of

Alter = Callable[[StoredOrder], StoredOrder]
P = Promise


# --- Orders -------------------------------------------------------------------------------------


def under_way() -> World:
    """`a` is done, and `b` is at its agent."""
    a = step("a")
    world = World(plan(a, step("b", a)))
    world.start()
    world.succeeds("a")
    return world


def ready() -> World:
    """`a` is done, and `b` can be claimed since then."""
    world = under_way()
    world.overdue("b")
    return world


def takes_two_attempts() -> World:
    """`a` has failed once, and then it is done."""
    world = World(plan(step("a")))
    world.start()
    world.fails("a")
    world.wait(60).start()
    world.succeeds("a")
    return world


def late() -> World:
    """The task was archived because its hour was over."""
    world = World(plan(step("a")))
    world.start()
    world.wait(3_700).inspect()
    world.deliver_owed()
    return world


def undone_twice() -> World:
    """`b` was refused, and then both steps were undone, `b` first."""
    return operator_stories.undone()


def partly_undone() -> World:
    """`a` is undone, `b` after it has no compensation, and `c` beside them stands."""
    a = step("a", compensation=FENCED)
    world = World(plan(a, step("b", a), step("c", compensation=FENCED)))
    world.start()
    for name in ("a", "b", "c"):
        world.succeeds(name)
    world.ask_undo("a", "b")
    world.start()
    world.succeeds("a")
    world.deliver_owed()
    return world


def cancelled() -> World:
    return erased_stories.cancelled()


def unread() -> World:
    """A signal was accepted, and the order was cancelled before a step could read it."""
    first = step("a")
    paid = Signal("paid", within=timedelta(minutes=30), after=(first,))
    world = World(plan(first, paid))
    world.start()
    world.signal("paid", 7, "pay-7")
    world.cancel(undo=False)
    world.succeeds("a")
    return world


def erased() -> World:
    world = erased_stories.erased(erased_stories.completed())
    world.wait(3_600)
    return world


def wants_undo() -> World:
    """The plan undoes the order, because `b` was refused."""
    a = step("a", compensation=operator_stories.FENCED)
    world = World(plan(a, step("b", a), on_failure=Undo()))
    world.start()
    world.succeeds("a")
    world.is_refused("b")
    return world


def both_to_undo() -> World:
    """`b` is being undone, and `a` after it."""
    world = operator_stories.archived()
    world.ask_undo()
    world.start()
    return world


# --- Changes ------------------------------------------------------------------------------------


def as_it_is(order: StoredOrder) -> StoredOrder:
    return order


def no_plan(order: StoredOrder) -> StoredOrder:
    return replace(order, plan=None)


def task(**changes: object) -> Alter:
    return lambda order: replace(order, task=replace(order.task, **changes))  # type: ignore[arg-type]


def record(name: str, **changes: object) -> Alter:
    """Other stored attributes of a step."""

    def alter(order: StoredOrder) -> StoredOrder:
        changed = changed_step(order.task.step(name), **changes)
        return replace(order, task=replace(order.task, steps={**order.task.steps, name: changed}))

    return alter


def values(name: str, **changes: object) -> Alter:
    """Other values of the record of a step."""

    def alter(order: StoredOrder) -> StoredOrder:
        changed = replace(order.task.step(name), **changes)  # type: ignore[arg-type]
        return replace(order, task=replace(order.task, steps={**order.task.steps, name: changed}))

    return alter


def ending(**changes: object) -> Alter:
    def alter(order: StoredOrder) -> StoredOrder:
        assert order.task.ending is not None
        changed = replace(order.task.ending, **changes)  # type: ignore[arg-type]
        return replace(order, task=replace(order.task, ending=changed))

    return alter


def rows(change: Callable[[list[HistoryRow]], list[HistoryRow]]) -> Alter:
    return lambda order: replace(order, history=change(list(order.history or ())))


def without(*kinds: str) -> Alter:
    return rows(lambda found: [row for row in found if row.kind not in kinds])


def again(kind: str) -> Alter:
    """The command of this kind is carried out once more."""

    def change(found: list[HistoryRow]) -> list[HistoryRow]:
        (row,) = [one for one in found if one.kind == kind]
        return [*found, replace(row, seq=row.seq + 1)]

    return rows(change)


def later(order: StoredOrder) -> StoredOrder:
    return replace(order, at=order.at + 100 * 60 * MINUTE)


def row(**changes: object) -> Alter:
    def alter(order: StoredOrder) -> StoredOrder:
        assert order.row is not None
        return replace(order, row=replace(order.row, **changes))  # type: ignore[arg-type]

    return alter


def expires(sooner: int) -> Alter:
    """The record expires so many ms sooner."""

    def alter(order: StoredOrder) -> StoredOrder:
        assert order.task.expires_at is not None
        at = order.task.expires_at - sooner
        return replace(order, task=replace(order.task, expires_at=at))

    return alter


def undo_begins_first(order: StoredOrder) -> StoredOrder:
    """The undo of `a` begins before that of `b` is finished."""

    def change(found: list[HistoryRow]) -> list[HistoryRow]:
        (end,) = [one for one in found if (one.kind, one.step) == ("undone", "b")]
        begin = HistoryRow(end.seq - 1, end.at, "undo", "a", None, "")
        return sorted([*found, begin], key=lambda one: one.seq)

    return rows(change)(order)


def undo_claimed_first(order: StoredOrder) -> StoredOrder:
    """The undo of `a` is under way, and `b` is not undone."""
    under_way, done = order.task.step("b"), Ended(how=End.SUCCEEDED)
    steps = {"a": under_way, "b": replace(under_way, operation="perform", situation=done)}
    return replace(order, task=replace(order.task, steps=steps))


def lock_of_a_later_version(order: StoredOrder) -> StoredOrder:
    lock = Claimant("7f3a", "0c1d2e3f4a").token(1, order.task.version + 1)
    return record("b", locked_by=lock)(order)


def effects(*found: StandingEffect) -> Alter:
    return lambda order: replace(order, effects=found)


def key(name: str, *more: str) -> StandingEffect:
    return StandingEffect(name, "/".join(("ord-1", name, "perform", *more)))


@dataclass(frozen=True)
class Plant:
    """An order that is as it should be, and a change that breaks a promise to it."""

    promise: Promise
    what: str
    order: Callable[[], World]
    alter: Alter
    before: Alter = as_it_is

    def __str__(self) -> str:
        return f"{self.promise.name}, {self.what}"


TOO_LATE = 10 * MINUTE
PLANTS = [
    Plant(P.ALWAYS_DUE, "in the lane of archived ones", under_way, task(lane="archived#3")),
    Plant(P.ALWAYS_DUE, "looked at after its time", under_way, task(due_at=10**14)),
    Plant(
        P.READY,
        "a step that is ready is looked at much later",
        ready,
        lambda order: task(due_at=order.at + TOO_LATE)(order),
    ),
    Plant(P.ONE_LOCK, "under way without a lock", under_way, record("b", locked_by="")),
    Plant(P.ONE_LOCK, "a lock of a later version", under_way, lock_of_a_later_version),
    Plant(
        P.IN_TIME,
        "an attempt that may take longer than the task",
        under_way,
        lambda order: task(complete_by=order.at + SECOND)(order),
    ),
    Plant(
        P.IN_TIME,
        "begun after the task's time",
        erased_stories.completed,
        lambda order: values("a", started_at=order.task.perform_by + MINUTE)(order),
    ),
    Plant(
        P.IN_ORDER,
        "b is done, and a is not",
        erased_stories.completed,
        values("a", situation=Ended(how=End.FAILED)),
    ),
    Plant(
        P.IN_ORDER,
        "begun before its predecessor was done",
        erased_stories.completed,
        lambda order: values("a", finished_at=(order.task.step("b").started_at or 0) + MINUTE)(
            order
        ),
    ),
    Plant(P.UNDO_IN_ORDER, "by its rows", undone_twice, undo_begins_first),
    Plant(
        P.UNDO_IN_ORDER,
        "the undo of a is under way, and b is not undone",
        both_to_undo,
        undo_claimed_first,
    ),
    Plant(P.FAILED_BY, "nobody cancelled it", cancelled, without("cancel")),
    Plant(P.FAILED_BY, "its step has no failure", wants_undo, without("failed")),
    Plant(
        P.FAILED_BY,
        "its time was not over",
        late,
        lambda order: task(complete_by=order.task.complete_by + 2 * TOO_LATE)(order),
    ),
    Plant(P.BOUNDED, "more attempts than allowed", wants_undo, values("b", failure_count=4)),
    Plant(
        P.BOUNDED,
        "goes on after the last attempt",
        undo_stories.waiting,
        values("a", failure_count=3),
    ),
    Plant(
        P.AS_PLANNED,
        "archived though it was to be undone",
        wants_undo,
        ending(undo=False, how=TaskState.ARCHIVED),
    ),
    Plant(
        P.AS_PLANNED,
        "undone though it was to be archived",
        late,
        ending(undo=True, how=TaskState.UNDONE),
    ),
    Plant(P.AS_PLANNED, "undone, and to be archived", wants_undo, ending(how=TaskState.ARCHIVED)),
    Plant(
        P.UNDONE,
        "a step was not undone",
        undone_twice,
        values("a", operation="perform", situation=Ended(how=End.SUCCEEDED)),
    ),
    Plant(
        P.UNDONE, "an undo has failed", undone_twice, values("a", situation=Ended(how=End.FAILED))
    ),
    Plant(P.UNDONE, "its effect stands", undone_twice, effects(key("a")), effects()),
    Plant(
        P.COMPLETED,
        "a step has failed",
        erased_stories.completed,
        values("b", situation=Ended(how=End.FAILED)),
    ),
    Plant(
        P.COMPLETED,
        "a step never began",
        erased_stories.completed,
        lambda order: task(steps={"a": order.task.step("a")})(order),
    ),
    Plant(
        P.COMPLETED,
        "a step has failed, and the plan is not stored",
        erased_stories.completed,
        values("b", situation=Ended(how=End.FAILED)),
        no_plan,
    ),
    Plant(
        P.COMPLETED,
        "a step beside the part has failed",
        partly_undone,
        values("c", situation=Ended(how=End.FAILED)),
    ),
    Plant(P.TAKEN_BACK, "a step of the part stands", partly_undone, ending(part=("a", "b", "c"))),
    Plant(P.TAKEN_BACK, "a step beside the part is undone", partly_undone, ending(part=("b",))),
    Plant(
        P.TAKEN_BACK,
        "a step without compensation is undone",
        partly_undone,
        values("b", operation=UNDO),
    ),
    Plant(
        P.TAKEN_BACK,
        "a step beside the part is undone, and the plan is not stored",
        partly_undone,
        ending(part=("b",)),
        no_plan,
    ),
    Plant(P.AGREES, "it ends in part, and is undone", partly_undone, task(state=TaskState.UNDONE)),
    Plant(
        P.CARRIED_OUT,
        "all of it was to be undone",
        partly_undone,
        ending(how=TaskState.UNDONE, part=()),
    ),
    Plant(P.ENDS, "hours after its time", under_way, later),
    Plant(P.AGREES, "in the open lane", erased_stories.completed, task(lane="open#3")),
    Plant(P.AGREES, "it has no end", erased_stories.completed, task(ended_at=None)),
    Plant(P.AGREES, "Pending with an attempt under way", under_way, task(state=TaskState.PENDING)),
    Plant(
        P.AGREES,
        "ended with an attempt under way",
        under_way,
        task(state=TaskState.COMPLETED, ended_at=1, lane="done#3"),
    ),
    Plant(P.AGREES, "Undoing without an undo", under_way, task(state=TaskState.UNDOING)),
    Plant(P.AGREES, "it was to end otherwise", undone_twice, ending(how=TaskState.CANCELLED)),
    Plant(P.NOT_LOST, "a row of a later version", undone_twice, task(version=3)),
    Plant(P.ACTS_ONCE, "cancelled twice", cancelled, again("cancel")),
    Plant(P.CARRIED_OUT, "the record does not know it", cancelled, task(command_ids=())),
    Plant(P.CARRIED_OUT, "it ends as if nobody asked", cancelled, ending(how=TaskState.ARCHIVED)),
    Plant(P.ACCOUNTED, "a signal without a trace", unread, without(SIGNAL_UNREAD)),
    Plant(P.HISTORY, "a command without a row", cancelled, without("cancel")),
    Plant(P.HISTORY, "a failure without a row", takes_two_attempts, without("failed")),
    Plant(
        P.ROWS,
        "a row expires, and its record does not",
        under_way,
        task(settled=(SettledRow(1, 900, {}, 10**12),)),
    ),
    Plant(
        P.ROWS,
        "a row of a later version",
        under_way,
        task(settled=(SettledRow(10**6, 900, {}, None),)),
    ),
    Plant(P.KEPT, "it does not expire", erased_stories.completed, task(expires_at=None)),
    Plant(P.KEPT, "an open task expires", under_way, task(expires_at=10**14)),
    Plant(
        P.KEPT, "it expires before its retention is over", erased_stories.completed, expires(MINUTE)
    ),
    Plant(P.ORDER_KEPT, "there is no row", under_way, lambda order: replace(order, row=None)),
    Plant(P.ORDER_KEPT, "the row of an open task expires", under_way, row(expires_at=10**14)),
    Plant(
        P.ORDER_KEPT,
        "the row expires before the record",
        erased_stories.completed,
        row(expires_at=10**12),
    ),
    Plant(P.ERASED, "a result is left", erased, values("a", result="(left out)")),
    Plant(P.ERASED, "a message is left", erased, values("a", error=StepError("Odd", "(left out)"))),
    Plant(P.ERASED, "it goes on", erased, task(state=TaskState.ARCHIVED)),
    Plant(P.ERASED_BESIDE, "the order row", erased, row(has_content=True)),
    Plant(
        P.ERASED_BESIDE,
        "a row of its history",
        erased,
        rows(lambda found: [HistoryRow(1_000, 1, "failed", "a", 1, "(left out)"), *found]),
    ),
    Plant(
        P.EXPLAINED,
        "done, and nothing stands",
        erased_stories.completed,
        effects(key("a")),
        effects(key("a"), key("b")),
    ),
    Plant(
        P.EXPLAINED,
        "a step that was never claimed stands",
        erased_stories.completed,
        effects(key("a"), key("b"), key("c")),
        effects(key("a"), key("b")),
    ),
    Plant(
        P.ONCE,
        "it stands under two keys",
        erased_stories.completed,
        effects(key("a"), key("a", "2"), key("b")),
        effects(key("a"), key("b")),
    ),
    Plant(
        P.ONCE,
        "it came about twice",
        erased_stories.completed,
        effects(replace(key("a"), times=2), key("b")),
        effects(key("a"), key("b")),
    ),
    Plant(
        P.KNOWN,
        "no effect, it says, and it stands",
        erased_stories.completed,
        lambda order: values("a", effect=Effect.NONE)(effects(key("a"), key("b"))(order)),
        effects(key("a"), key("b")),
    ),
]


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_planted_violation_is_found(plant: Plant) -> None:
    order = plant.before(stored_of(plant.order()))
    assert judge(order).verdict(plant.promise) is not Verdict.BROKEN
    assert judge(plant.alter(order)).verdict(plant.promise) is Verdict.BROKEN


def test_each_check_has_a_planted_violation() -> None:
    assert {plant.promise for plant in PLANTS} == CHECKS.keys() | EFFECT_CHECKS.keys()


@pytest.mark.parametrize(
    ("promise", "order", "alter", "kinds"),
    [
        (P.UNDO_IN_ORDER, undone_twice, undo_begins_first, ["undo", "undo"]),
        (P.ACTS_ONCE, cancelled, again("cancel"), ["cancel", "cancel"]),
        (P.CARRIED_OUT, cancelled, task(command_ids=()), ["cancel"]),
        (P.AS_PLANNED, wants_undo, ending(undo=False), ["failed"]),
        (P.FAILED_BY, late, task(complete_by=10**14), ["failed"]),
    ],
)
def test_a_violation_names_the_rows_that_show_it(
    promise: Promise, order: Callable[[], World], alter: Alter, kinds: list[str]
) -> None:
    altered = alter(stored_of(order()))
    (found,) = [one for name, one in judge(altered).broken if name is promise]
    kind_of = {row.seq: row.kind for row in altered.history or ()}
    assert [kind_of[seq] for seq in found.rows] == kinds


def lost_after_its_time(on_failure: Strategy) -> World:
    """The attempt under way when the task ended has added steps that cannot be added."""
    a = step("a", compensation=Compensation(fences_late_performs=True))
    world = World(plan(a, on_failure=on_failure))
    world.start()
    world.wait_until(world.task.complete_by)
    world.adds("a", StepToAdd("other[a]"))
    while not world.task.ended:
        world.start()
        world.succeeds("a")
    return world


def test_a_task_that_lacks_a_result_may_be_archived_or_undone_if_its_plan_undoes() -> None:
    order = stored_of(lost_after_its_time(Undo()))
    assert order.task.state is TaskState.UNDONE
    assert judge(order).verdict(P.AS_PLANNED) is Verdict.FOLLOWED
    archived = ending(undo=False, how=TaskState.ARCHIVED)(order)
    assert judge(archived).verdict(P.AS_PLANNED) is Verdict.FOLLOWED
    order = stored_of(lost_after_its_time(Archive()))
    assert judge(order).verdict(P.AS_PLANNED) is Verdict.FOLLOWED
    undone = ending(undo=True, how=TaskState.UNDONE)(order)
    assert judge(undone).verdict(P.AS_PLANNED) is Verdict.BROKEN


# --- What cannot be judged ----------------------------------------------------------------------


def no_history(order: StoredOrder) -> StoredOrder:
    return replace(order, history=None)


def troubled(order: StoredOrder) -> StoredOrder:
    return replace(task(due_at=10**14)(order), troubled=True)


def commanded(kind: str, alter: Alter) -> Alter:
    """A person has given this command since."""

    def change(order: StoredOrder) -> StoredOrder:
        at = HistoryRow(
            order.task.version * 1_000 + 90, order.at, kind, None, None, "", None, "c-9"
        )
        return rows(lambda found: [*found, at])(alter(order))

    return change


PLAN_CHECKS = (P.IN_ORDER, P.BOUNDED, P.UNDO_IN_ORDER)
UNKNOWN: list[tuple[Promise, Unknown, Callable[[], World], Alter]] = [
    *((promise, record_checks.NO_PLAN, under_way, no_plan) for promise in (*PLAN_CHECKS, P.READY)),
    (P.COMPLETED, record_checks.NO_PLAN, erased_stories.completed, no_plan),
    (P.UNDONE, record_checks.NO_PLAN, undone_twice, no_plan),
    (P.TAKEN_BACK, record_checks.NO_PLAN, partly_undone, no_plan),
    (
        P.TAKEN_BACK,
        record_checks.OTHER_PLAN,
        partly_undone,
        ending(part=("a", "b", "of another plan")),
    ),
    (P.AS_PLANNED, record_checks.NO_PLAN, wants_undo, no_plan),
    *(
        (promise, history_checks.NO_HISTORY, wants_undo, no_history)
        for promise in (
            P.FAILED_BY,
            P.AS_PLANNED,
            P.HISTORY,
            P.NOT_LOST,
            P.ACTS_ONCE,
            P.CARRIED_OUT,
            P.ACCOUNTED,
        )
    ),
    (P.ALWAYS_DUE, record_checks.TROUBLED, under_way, troubled),
    (P.READY, record_checks.TROUBLED, ready, troubled),
    (P.ENDS, record_checks.NOT_ENDED, under_way, as_it_is),
    (P.IN_ORDER, record_checks.FORWARD_FORGOTTEN, undone_twice, as_it_is),
    (
        P.IN_ORDER,
        record_checks.BY_HAND,
        erased_stories.completed,
        commanded("move", values("a", situation=Ended(how=End.FAILED))),
    ),
    (
        P.IN_TIME,
        record_checks.BY_HAND,
        erased_stories.completed,
        commanded(
            "resolve",
            lambda order: values("a", started_at=order.task.perform_by + MINUTE)(order),
        ),
    ),
    (
        P.BOUNDED,
        record_checks.OTHER_PLAN,
        wants_undo,
        commanded("resubmit", values("b", failure_count=4)),
    ),
    (P.UNDO_IN_ORDER, record_checks.OTHER_PLAN, undone_twice, commanded("move", undo_begins_first)),
    (P.FAILED_BY, history_checks.NO_FAILURE, late, commanded("extend", task(complete_by=10**14))),
    (P.AS_PLANNED, record_checks.OTHER_PLAN, wants_undo, ending(step="gone")),
    (
        P.AS_PLANNED,
        history_checks.PLAN_WAS_MISSING,
        wants_undo,
        ending(undo=False, error=StepError("PlanNotStored", "")),
    ),
    (
        P.ERASED_BESIDE,
        history_checks.JUST_ERASED,
        lambda: erased_stories.erased(erased_stories.completed()),
        row(has_content=True),
    ),
]


@pytest.mark.parametrize(("promise", "why", "order", "alter"), UNKNOWN)
def test_what_cannot_be_judged_is_said_with_its_reason(
    promise: Promise, why: Unknown, order: Callable[[], World], alter: Alter
) -> None:
    judgement = judge(alter(stored_of(order())))
    assert judgement.verdict(promise) is Verdict.UNKNOWN
    assert [one for name, one in judgement.unknown if name is promise] == [why]


def test_an_order_that_is_undone_after_it_was_cancelled_is_kept_from_its_second_end() -> None:
    world = World(plan(step("a")), ProcessingOptions(start_at=T0 + MINUTE))
    world.cancel()
    world.wait(3_600)
    world.ask_undo()
    assert world.task_state() is TaskState.UNDONE
    order = stored_of(world)
    assert judge(order).verdict(P.KEPT) is Verdict.FOLLOWED
    too_soon = task(expires_at=(order.task.expires_at or 0) - 3_600 * SECOND)(order)
    assert judge(too_soon).verdict(P.KEPT) is Verdict.BROKEN


def test_an_item_that_is_undone_after_its_time_was_not_begun_then() -> None:
    order = stored_of(fan_out_stories.one_is_left_out_and_undone())
    (name,) = order.task.left_out()
    late = values(name, started_at=order.task.perform_by + MINUTE)(order)
    assert judge(late).verdict(P.IN_TIME) is Verdict.FOLLOWED


def test_the_attempts_of_an_item_that_was_left_out_are_those_of_its_undo() -> None:
    order = stored_of(fan_out_stories.its_undo_is_made_by_hand())
    (name,) = order.task.left_out()
    twice = values(name, failure_count=2)(order)
    assert judge(twice).verdict(P.BOUNDED) is Verdict.BROKEN
    assert judge(with_two_undos("pick")(twice)).verdict(P.BOUNDED) is Verdict.FOLLOWED


def with_two_undos(name: str) -> Alter:
    def alter(order: StoredOrder) -> StoredOrder:
        assert order.plan is not None
        step = order.plan.steps[name]
        assert step.compensation is not None
        retry = replace(step.compensation.retry, max_attempts=2)
        step = replace(step, compensation=replace(step.compensation, retry=retry))
        return replace(order, plan=replace(order.plan, steps={**order.plan.steps, name: step}))

    return alter


def test_an_attempt_that_ended_without_its_plan_has_its_row() -> None:
    world = World(plan(step("a")))
    world.start()
    world.cancel()
    world.stored_plan = False
    world.until_overdue("a")
    world.inspect()
    assert judge(stored_of(world)).verdict(P.HISTORY) is Verdict.FOLLOWED


def test_effects_are_judged_only_if_they_are_known() -> None:
    order = stored_of(erased_stories.completed())
    assert not judge(order).findings.keys() & {P.EXPLAINED, P.ONCE, P.KNOWN}


@pytest.mark.parametrize("promise", EFFECT_CHECKS)
def test_a_check_of_effects_says_what_it_lacks(promise: Promise) -> None:
    order = stored_of(erased_stories.completed())
    assert list(EFFECT_CHECKS[promise](order)) == [effect_checks.NO_EFFECTS]
    if promise is not P.KNOWN:  # which needs no plan
        lacks = list(EFFECT_CHECKS[promise](no_plan(effects()(order))))
        assert lacks == [record_checks.NO_PLAN]


# --- Contents -----------------------------------------------------------------------------------


def test_nothing_of_an_order_is_left_in_what_the_checks_see() -> None:
    world = operator_stories.archived()
    world.cancel(undo=False)
    order = stored_of(world)
    assert world.task.step("a").result == "r"
    assert order.task.step("a").result == "(left out)"
    seen = repr((order.task, order.row, order.history))
    assert "insufficient" not in seen
    assert "A. Reader" not in seen
    assert "ann" not in seen
    assert all(one.reason in ("", "(left out)") for one in order.history or ())


def test_rows_of_an_earlier_task_with_the_same_id_are_left_out() -> None:
    world = erased_stories.completed()
    old = HistoryRow(99_000, world.task.created_at - 1, "failed", "a", 1, "")
    order = stored(world.task, world.plan, [old], world.now)
    assert order.history == ()
    assert judge(order).verdict(P.NOT_LOST) is Verdict.FOLLOWED
